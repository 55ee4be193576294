"""Theory against simulation: the committed record, and a part of it run again."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from whonext.experiments import coverage, load_record, validation
from whonext.policies import registry
from whonext.theory import answer


@pytest.fixture(scope="module")
def runs():
    return load_record("validation")["data"]["runs"]


def test_the_record_passes_its_own_verdict(runs):
    # False alarms: 1e-5 for the whole record, at the time it is made.
    verdict = validation.judge(runs)
    assert verdict == load_record("validation")["data"]["verdict"]
    assert verdict["alarm"] == 1e-5
    assert verdict["cells"] >= 200
    assert verdict["passed"], verdict


@pytest.mark.slow
def test_the_record_has_every_case_and_its_theory_is_that_of_today(runs):
    everything = validation.cases()
    assert len({case.seed for case in everything}) == len(everything) == len(runs)
    for case, run in zip(everything, runs, strict=True):
        assert {name: run[name] for name in vars(case)} == vars(case)
        theory = answer(case.policy, case.workload, case.servers)
        cells = {cell["of"]: cell["theory"] for cell in run["cells"]}
        assert cells["all"] == pytest.approx(theory.response_mean, rel=1e-7)
        for name, each in theory.per_class.items():
            if len(theory.per_class) > 1:
                assert cells[name] == pytest.approx(each.response_mean, rel=1e-7)


def test_every_rule_that_has_a_formula_is_in_the_record(runs):
    from whonext import Workload

    workload = Workload("exp:1", load=0.5)
    has_one = {name for name in registry if answer(name, workload).reason is None}
    assert has_one <= {run["policy"] for run in runs}


@pytest.mark.slow
def test_a_part_run_again_agrees():
    # Other jobs than the record's: a twentieth of the length. False alarms: 1e-5.
    low = [case for case in validation.cases() if case.load == 0.5]
    chosen = np.random.default_rng(3).choice(len(low), 8, replace=False)
    again = [validation.measure(low[k], jobs=100_000) for k in chosen]
    verdict = validation.judge(again)
    assert verdict["passed"], verdict


def scores(values):
    return [{"cells": [{"z": float(z)}]} for z in values]


def test_the_verdict_lets_noise_pass():
    # 300 verdicts at a rate of 1e-3 each: more than 6 alarms come once in 1e6.
    generator = np.random.default_rng(1)
    alarms = sum(
        not validation.judge(scores(generator.normal(size=250)), 1e-3)["passed"] for _ in range(300)
    )
    assert alarms <= 6


@pytest.mark.parametrize(
    "spoil",
    [
        lambda z: z + 0.6,  # a small bias everywhere
        lambda z: z * 1.6,  # intervals too narrow
        lambda z: z * 0.5,  # intervals too wide
        lambda z: np.append(z, 8.0),  # one cell that is off
    ],
)
def test_the_verdict_sees_what_is_wrong(spoil):
    z = spoil(np.random.default_rng(2).normal(size=250))
    assert not validation.judge(scores(z))["passed"]


def test_cases_without_a_formula_or_an_interval_do_not_belong():
    with pytest.raises(ValueError, match="no formula is at hand"):
        validation.measure(validation.Case("edf", "one", "exp:1", 0.5), jobs=2_000)
    with pytest.raises(ValueError, match="no normal interval"):
        validation.measure(validation.Case("fcfs", "one", "pareto:alpha=2.5", 0.5), jobs=2_000)


# Coverage.


def test_what_is_covered_is_counted():
    found = coverage.covered([(0, 2), (2, 3), None, (-3, 0), (0.5, 1.5)], 1.0)
    assert found["given"] == 4
    assert (found["covered"], found["below"], found["above"]) == (0.5, 0.25, 0.25)
    assert found["half_width"] == 0.75
    assert coverage.covered([None], 1.0)["covered"] is None


def test_the_record_of_coverage_says_what_the_package_does():
    record = load_record("coverage")["data"]
    rows = {(row["policy"], row["law"]): row for row in record["rows"]}
    assert list(rows) == [(case.policy, case.law) for case in coverage.CASES]
    for row in rows.values():
        assert row["simulations"] == 1_000
        refused = row["mean"]["reason"] is not None
        assert refused == ("given" not in row["mean"] or row["mean"]["given"]["given"] == 0)
    # Where a mean gets an interval, it covers at least nine in ten of a thousand.
    light = [row["mean"]["given"] for row in rows.values() if row["mean"]["reason"] is None]
    assert min(each["covered"] for each in light) > 0.9
    assert rows["fcfs", "pareto:alpha=2.5"]["mean"]["plain"]["covered"] < 0.8


def test_a_few_simulations_again_cover_as_the_record_says():
    # 30 shorter simulations; false alarms: fewer hits than a share of 0.9 has once in 1e6.
    case = coverage.CASES[0]
    found = coverage.trials(case, 50_000, 30, jobs=50_000)
    row = coverage.summarise(case, found)
    hits = round(row["mean"]["given"]["covered"] * 30)
    assert hits >= stats.binom.ppf(1e-6, 30, 0.9)
