"""Intervals, scores, and how long a run must be."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats

from whonext import Exponential, Workload, simulate
from whonext.cli import main
from whonext.estimates import interval, jobs_needed, standard_score


def test_an_interval_needs_two_finite_values():
    assert interval([1.0]) is None
    assert interval([1.0, np.inf]) is None
    assert interval([]) is None


def test_scores_are_standard_normal_whatever_the_number_of_replications():
    # Kolmogorov-Smirnov on 4,000 scores each; false alarms once in 1e6 for each of the three.
    generator = np.random.default_rng(4)
    for replications in (3, 10, 40):
        samples = generator.normal(7, 2, (4000, replications))
        scores = [standard_score(values, 7).z for values in samples]
        assert stats.kstest(scores, "norm").pvalue > 1e-6


def test_the_interval_reaches_the_value_where_the_score_is_196():
    values = np.random.default_rng(5).normal(size=8)
    low, high = interval(values)
    edge = float(stats.norm.ppf(0.975))
    assert standard_score(values, low).z == pytest.approx(edge)
    assert standard_score(values, high).z == pytest.approx(-edge)
    assert standard_score(values, 0).half_width == pytest.approx((high - low) / 2)


def test_scores_of_replications_without_spread():
    assert standard_score([2.0, 2.0], 2.0).z == 0
    assert standard_score([2.0, 2.0], 1.0).z == np.inf
    with pytest.raises(ValueError, match="at least two finite replications"):
        standard_score([2.0], 2.0)


@pytest.fixture(scope="module")
def pilot():
    return simulate("fcfs", Workload(Exponential(1), load=0.5), jobs=400_000, replications=20)


def test_the_mean_of_a_known_queue_needs_the_known_number_of_jobs(pilot):
    # M/M/1 at load 1/2: the variance of the mean wait of n jobs is 29 / n, for large n.
    # Twenty replications have a spread more than eight times too small, in squares, once in 1e6;
    # one four times too large is rarer still.
    needed = jobs_needed(pilot, 0.01, measure="waiting")
    known = 29 * (stats.t.ppf(0.975, 19) / 0.01) ** 2 / 0.9
    assert known / 8 < needed.jobs < known * 4
    assert needed.range95[0] < needed.jobs < needed.range95[1]


def test_half_the_width_takes_four_times_the_jobs(pilot):
    for quantile in (None, 0.5, 0.99):
        wide, narrow = (jobs_needed(pilot, p, quantile).jobs for p in (0.02, 0.01))
        assert narrow / wide == pytest.approx(4, rel=0.1)


def test_the_number_of_jobs_is_enough(pilot):
    # The width itself is known to a factor of 2.5 or so, at twenty replications on both sides.
    needed = jobs_needed(pilot, 0.02, 0.99).jobs
    longer = simulate("fcfs", Workload(Exponential(1), load=0.5), jobs=needed, replications=20)
    low, high = longer.response.quantile_ci(0.99)
    assert 0.02 / 3 < (high - low) / 2 / longer.response.p99 < 0.02 * 3


def test_no_number_of_jobs_is_given_where_there_is_none():
    heavy = simulate("fcfs", Workload("pareto:alpha=1.5", load=0.5), jobs=20_000)
    assert "E[T] is infinite" in jobs_needed(heavy).reason
    assert "pilot" in jobs_needed(heavy, quantile=0.999).reason
    assert jobs_needed(heavy, quantile=0.999).jobs is None
    alone = simulate("fcfs", Workload(Exponential(1), load=0.5), jobs=20_000, replications=1)
    assert "one run" in jobs_needed(alone).reason


def test_median_wait_of_zero_has_no_relative_precision():
    idle = simulate("fcfs", Workload(Exponential(1), load=0.1), jobs=20_000)
    assert "the value is 0" in jobs_needed(idle, quantile=0.5, measure="waiting").reason


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"precision": 0}, "precision=0: must be a positive"),
        ({"precision": float("nan")}, "precision=nan"),
        ({"measure": "age"}, "measure='age': choose"),
        ({"quantile": 1.0}, "p=1.0"),
    ],
)
def test_bad_questions_are_named(pilot, settings, message):
    with pytest.raises(ValueError, match=message):
        jobs_needed(pilot, **settings)


def test_the_command_says_how_many_jobs(capsys):
    words = ["simulate", "fcfs", "--load", "0.5", "--size", "exp:1", "--jobs", "2e5"]
    words += ["--precision", "0.01"]
    assert main(words) == 0
    printed = capsys.readouterr().out
    assert "jobs for ±1 %" in printed
    assert printed.count("95 % interval [") >= 2
    assert main([*words, "--json"]) == 0
    needed = json.loads(capsys.readouterr().out)["jobs_needed"]
    assert list(needed) == ["mean", "p99", "p99.9"]
    assert needed["mean"]["jobs"] > 0
    assert main([*words[:-1], "0"]) == 2
