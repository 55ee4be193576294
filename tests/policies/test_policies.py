"""The rules by hand, and their names on the command line."""

from __future__ import annotations

import numpy as np
import pytest

from whonext import (
    Deterministic,
    Exponential,
    JobClass,
    JobTable,
    LogNormal,
    Pareto,
    Weibull,
    Workload,
    parse_policy,
    simulate,
)
from whonext.policies import Policy, Sjf, Wspt, registry
from whonext.policies.deadlines import decay_rate

# Three jobs wait while the first is served: sizes 3, 1, 2, weights 9, 1, 1.
BURST = JobTable.from_arrays(
    [0, 1, 2, 3], [4, 3, 1, 2], kind=[0, 1, 0, 1], weight=[1, 9, 1, 1], prediction=[4, 1, 3, 2]
)


@pytest.mark.parametrize(
    ("rule", "order"),
    [
        ("fcfs", [0, 1, 2, 3]),
        ("lcfs", [0, 3, 2, 1]),
        ("sjf", [0, 2, 3, 1]),
        ("sjf:by=prediction", [0, 1, 3, 2]),
        ("ljf", [0, 1, 3, 2]),
        ("wspt", [0, 1, 2, 3]),
        ("priority", [0, 2, 1, 3]),
        ("priority:order=class 1>class 0", [0, 1, 3, 2]),
    ],
)
def test_order_of_start(rule: str, order: list[int]) -> None:
    events = simulate(rule, Workload.from_table(BURST), trace=True).events
    assert events[events.event == "start"].job.tolist() == order


@pytest.mark.parametrize(
    ("rule", "response"),
    [
        ("lcfs-pr", [10, 6, 1, 2]),  # 1 interrupts 0, 2 interrupts 1, 3 comes as 2 leaves
        ("srpt", [5, 9, 1, 4]),
        ("psjf", [10, 6, 1, 2]),
        ("priority-pr", [4, 7, 3, 7]),
    ],
)
def test_interruptions(rule: str, response: list[float]) -> None:
    table = simulate(rule, Workload.from_table(BURST), trace=True).jobs_table
    assert table.response.tolist() == response


def test_c_mu_orders_classes_by_weight_over_mean_size() -> None:
    classes = [JobClass("slow", 0.5, Exponential(4), weight=4), JobClass("quick", 0.5, "exp:1", 2)]
    rule = parse_policy("c-mu")
    rule.bind(Workload(classes=classes, load=0.5), 1)
    assert rule.key(BURST).tolist() == [-1, -2, -1, -2]


@pytest.mark.parametrize("name", registry)
def test_names_round_trip(name: str) -> None:
    rule = parse_policy(name)
    assert rule.spec == name
    assert rule.name == name
    assert type(rule).__doc__


def test_parameters_round_trip() -> None:
    assert parse_policy("sjf:by=prediction").spec == "sjf:by=prediction"
    assert Sjf("prediction").needs == {"prediction"}
    assert Wspt("cost").needs == frozenset()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fcsf", "did you mean 'fcfs'"),
        ("", "unknown"),
        ("sjf:by=luck", "'size' or by 'prediction'"),
        ("sjf:d=3", "no parameter 'd'"),
        ("fcfs:d=3", "takes no parameters"),
        ("sjf:by", "importing 'sjf' failed|no parameter"),
        ("nowhere:Rule", "importing 'nowhere' failed"),
        ("json:JSONDecoder", "has no whonext.Policy class"),
        ("priority:order=z>class 0", "no class is called 'z'"),
    ],
)
def test_bad_names(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_policy(text).bind(Workload.from_table(BURST), 1)


def test_a_rule_from_the_current_folder(tmp_path, monkeypatch) -> None:
    (tmp_path / "house_rule.py").write_text(
        "import whonext\n\nclass Newest(whonext.Policy):\n"
        "    def key(self, jobs):\n        return -jobs.arrival\n"
    )
    monkeypatch.chdir(tmp_path)
    rule = parse_policy("house_rule:Newest")
    assert isinstance(rule, Policy)
    assert rule.key(BURST).tolist() == (-BURST.arrival).tolist()
    assert parse_policy(rule.spec).spec == rule.spec


def test_keys_are_arrays_in_and_arrays_out() -> None:
    workload = Workload.from_table(BURST, load=0.5)
    for name in registry:
        rule = parse_policy(name)
        rule.bind(workload, 1)
        whole = np.asarray(rule.key(BURST))
        each = [float(rule.key(_Row(BURST, i))) for i in range(len(BURST))]
        assert whole.tolist() == each, name


def test_gamma_is_the_decay_rate_of_fcfs() -> None:
    assert decay_rate(Exponential(1), 0.8) == pytest.approx(0.2, rel=1e-9)
    assert decay_rate(Exponential(2), 0.05) == pytest.approx(0.45, rel=1e-9)
    gamma = decay_rate(Deterministic(1), 0.5)
    assert 0.5 * np.expm1(gamma) == pytest.approx(gamma, rel=1e-9)


@pytest.mark.parametrize("law", [LogNormal(1, 1), Pareto(2.5), Weibull(0.5, 1)])
def test_gamma_needs_a_light_tail(law) -> None:
    with pytest.raises(ValueError, match="heavier than exponential"):
        decay_rate(law, 0.5)
    with pytest.raises(ValueError, match="below 1"):
        decay_rate(Exponential(1), 1.2)


class _Row:
    def __init__(self, table: JobTable, place: int) -> None:
        for column in ("arrival", "size", "kind", "weight", "prediction", "cost"):
            setattr(self, column, getattr(table, column)[place])
