"""One question to all of theory: the right formula, or the right reason for none."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from scipy import stats

from whonext import JobClass, Workload, simulate
from whonext.distributions import Exponential, LogNormal
from whonext.policies import Policy, registry
from whonext.theory import answer, markovian, size_based
from whonext.theory import pollaczek_khinchine as pk

CLASSES = [
    JobClass("chat", 0.6, LogNormal(0.5, 1), 4),
    JobClass("code", 0.3, Exponential(1), 2),
    JobClass("batch", 0.1, Exponential(3), 1),
]
THREE = Workload(classes=CLASSES, load=0.7)
ALIKE = [JobClass("gold", 0.3, Exponential(1)), JobClass("tin", 0.7, Exponential(1))]


@pytest.mark.parametrize("name", sorted(registry))
@pytest.mark.parametrize("servers", [1, 3])
@pytest.mark.parametrize(
    "workload",
    [
        Workload("exp:1", load=0.8),
        Workload("pareto:alpha=1.5", load=0.8),
        THREE,
        Workload("exp:1", load=0.8, prediction="lognormal:sigma=1"),
        Workload("exp:1", load=0.8, arrivals="diurnal:amplitude=0.5,period=100"),
    ],
    ids=["exponential", "heavy", "classes", "predicted", "diurnal"],
)
def test_a_value_or_a_reason_and_never_both(name, servers, workload):
    try:
        registry[name]().bind(workload, servers)
    except ValueError as error:  # not a rule for this workload
        with pytest.raises(ValueError, match=re.escape(str(error))):
            answer(name, workload, servers)
        return
    found = answer(name, workload, servers)
    assert (found.response_mean is None) == (found.reason is not None)
    assert (found.source is None) == (found.response_mean is None)
    if found.response_mean is not None:
        assert np.isfinite(found.response_mean)
        assert found.response_mean == pytest.approx(found.waiting_mean + workload.mean_size)
        shares = [each.share for each in workload.classes]
        each = [found.per_class[each.name].response_mean for each in workload.classes]
        assert np.dot(shares, each) == pytest.approx(found.response_mean)
    json.dumps(found.to_dict(), allow_nan=False)


def mean(policy, workload, servers=1):
    return answer(policy, workload, servers).response_mean


def test_each_rule_has_its_formula():
    one = Workload("lognormal:mean=1,sigma=1", load=0.8)
    law = one.size
    assert mean("fcfs", one) == mean("lcfs", one) == pytest.approx(pk.response_mean(law, load=0.8))
    assert mean("srpt", one) == size_based.shortest_remaining_processing_time(law, load=0.8)
    assert mean("sjf", one) == mean("wspt", one) == pytest.approx(mean("sjf:by=prediction", one))
    assert mean("lcfs-pr", one) == pytest.approx(5)


def test_rules_without_classes_or_sizes_to_tell_apart_are_fcfs():
    one = Workload("exp:1", load=0.8)
    for name in ("priority", "c-mu"):
        assert mean(name, one) == pytest.approx(5)
    guess = Workload("exp:1", load=0.8, prediction="class-mean")
    assert mean("sjf:by=prediction", guess) == pytest.approx(5)
    assert mean("wspt:by=cost", one) == pytest.approx(5)


def test_class_means_as_predictions_are_the_c_mu_rule():
    guess = Workload(classes=CLASSES, load=0.7, prediction="class-mean")
    assert mean("wspt:by=prediction", guess) == pytest.approx(mean("c-mu", THREE))
    sized = Workload(classes=CLASSES, load=0.7, cost="size")
    assert mean("wspt:by=cost", sized) == pytest.approx(mean("wspt", THREE))


def test_priority_goes_by_the_order_asked_for():
    first = answer("priority", THREE).per_class
    last = answer("priority:order=batch>code>chat", THREE).per_class
    assert first["chat"].waiting_mean < last["chat"].waiting_mean
    assert first["batch"].waiting_mean > last["batch"].waiting_mean


def test_many_servers_of_exponential_sizes():
    many = Workload(classes=ALIKE, load=0.8)
    wanted = markovian.response_mean(servers=3, load=0.8)
    for name in ("fcfs", "lcfs", "lcfs-pr", "priority", "priority-pr", "c-mu", "fb", "ps"):
        assert mean(name, many, 3) == pytest.approx(wanted), name


def test_batches_and_other_arrivals():
    pairs = Workload("exp:1", load=0.8, arrivals="batch:det:2")
    assert mean("fcfs", pairs) == pytest.approx(7.5)
    geometric = Workload("exp:1", load=0.8, arrivals="batch:2")  # E[X^2] = 6
    assert mean("fcfs", geometric) == pytest.approx(1 + 4 + (6 / 2 - 1) / 0.4)
    found = answer("fcfs", Workload("exp:1", load=0.8, arrivals="renewal:gamma:shape=0.5,mean=1"))
    assert "Kingman's bound, E[W] is at most" in found.reason
    found = answer("fcfs", Workload("exp:1", load=0.8, arrivals="renewal:pareto:alpha=1.5"))
    assert "Kingman's bound is infinite" in found.reason


@pytest.mark.parametrize(
    ("policy", "workload", "servers", "words"),
    [
        ("fcfs", Workload("pareto:alpha=1.5", load=0.5), 1, "E[W] is infinite: the second moment"),
        ("sjf", Workload("pareto:alpha=1.5", load=0.5), 1, "E[T] is infinite: the second moment"),
        ("sjf", Workload("exp:1", load=0.5), 3, "no closed form is known for sjf on 3 servers"),
        ("fcfs", Workload("det:1", load=0.5), 3, "unless all sizes are exponential"),
        (
            "srpt:by=prediction",
            Workload("exp:1", load=0.5, prediction="lognormal:sigma=1"),
            1,
            "predictions that can be wrong",
        ),
        ("fcfs", Workload.from_frame(THREE.table(5).to_frame()), 1, "a fixed list"),
    ],
)
def test_reasons(policy, workload, servers, words):
    found = answer(policy, workload, servers)
    assert words in found.reason
    assert found.per_class == {}


def test_a_rule_of_ones_own_has_no_formula():
    class Mine(Policy):
        pass

    assert "no formula is at hand for" in answer(Mine(), THREE).reason


def test_weights_of_zero_and_costs_of_ones_own_have_none():
    free = Workload(classes=[JobClass("free", 1.0, Exponential(1), 0)], load=0.5)
    assert "weight of 0" in answer("wspt", free).reason
    own = Workload("exp:1", load=0.5, cost=lambda jobs: jobs.size**2)
    assert "costs of one's own" in answer("wspt:by=cost", own).reason


def test_bad_input_is_named():
    with pytest.raises(ValueError, match=r"load=1.2: an M/G/1 queue is stable only below 1"):
        answer("fcfs", Workload("exp:1", load=1.2))
    with pytest.raises(ValueError, match="unknown"):
        answer("fcsf", THREE)
    with pytest.raises(ValueError, match="workload="):
        answer("fcfs", 0.8)


def test_the_policy_asked_about_is_not_bound():
    rule = registry["c-mu"]()
    answer(rule, THREE)
    assert rule._rank_of_kind is None


CELLS = [
    ("fcfs", Workload("lognormal:mean=1,sigma=1", load=0.5), 1),
    ("fcfs", Workload("exp:1", load=0.6), 3),
    ("fcfs", Workload("exp:1", load=0.6, arrivals="batch:2"), 1),
    ("lcfs-pr", Workload("hyperexp:p=0.9/0.1,mean=0.5/5.5", load=0.5), 1),
    ("ljf", Workload("uniform:low=0,high=2", load=0.6), 1),
    ("sjf:by=prediction", Workload("exp:1", load=0.7, prediction="lognormal:sigma=1"), 1),
    ("srpt", Workload("weibull:shape=0.6,mean=1", load=0.7), 1),
    ("psjf", Workload("gamma:shape=2,mean=1", load=0.7), 1),
    ("sjf", Workload("det:1", load=0.7), 1),
    ("fb", Workload("uniform:low=0,high=2", load=0.6), 1),
    ("ps", Workload("hyperexp:p=0.9/0.1,mean=0.5/5.5", load=0.6), 1),
    ("ps", Workload(classes=CLASSES, load=0.6), 2),
    ("lrpt", Workload("uniform:low=0,high=2", load=0.5), 1),
    ("srpt", Workload("mixture:0.8*(det:1)+0.2*(det:4)", load=0.7), 1),
    ("priority", Workload(classes=ALIKE, load=0.6), 3),
    ("priority-pr", Workload(classes=ALIKE, load=0.6), 3),
    ("priority-pr", THREE, 1),
    ("c-mu", THREE, 1),
    ("wspt", THREE, 1),
    (
        "wspt:by=prediction",
        Workload(classes=CLASSES, load=0.7, prediction="lognormal:sigma=1"),
        1,
    ),
]


def test_simulation_agrees_with_every_formula_jointly():
    """Student's t for each class of each cell, all of them judged at 1e-5 together."""
    parts = 16
    found = []
    for policy, workload, servers in CELLS:
        theory = answer(policy, workload, servers)
        result = simulate(policy, workload, servers, jobs=200_000, replications=parts, seed=3)
        for name, each in theory.per_class.items():
            summary = result.per_class[name].response
            low, high = summary.ci95
            error = (high - low) / 2 / stats.t.ppf(0.975, parts - 1)
            score = (summary.mean - each.response_mean) / error if error > 0 else 0.0
            found.append((abs(score), policy, name))
    limit = stats.t.ppf(1 - 1e-5 / len(found) / 2, parts - 1)
    assert max(found)[0] < limit, max(found)
