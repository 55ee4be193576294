"""The front door: randomness, windows, conservation, theory, and bad input."""

from __future__ import annotations

import math

import joblib
import numpy as np
import pytest
from scipy import stats

from whonext import (
    Deterministic,
    Exponential,
    HyperExponential,
    JobClass,
    JobTable,
    LogNormal,
    Pareto,
    Policy,
    Workload,
    compare,
    simulate,
)
from whonext.policies import registry
from whonext.workload import BLOCK

#: Chance that the joint test of theory against simulation raises a false alarm.
FALSE_ALARM = 1e-5

RULES = list(registry)


# Exact values.


def erlang_c_mean_response(load: float, servers: int) -> float:
    offered = load * servers
    blocking = 1.0
    for c in range(1, servers + 1):
        blocking = offered * blocking / (c + offered * blocking)
    waits = blocking / (1 - load * (1 - blocking))
    return 1 + waits / (servers * (1 - load))


def pollaczek_khinchine(law, load: float) -> float:
    return law.mean + load / law.mean * law.second_moment / (2 * (1 - load))


CASES = [
    ("fcfs", Exponential(1), 0.5, 1, 2.0),
    ("fcfs", Exponential(1), 0.8, 1, 5.0),
    ("lcfs", Exponential(1), 0.8, 1, 5.0),
    ("random", Exponential(1), 0.8, 1, 5.0),
    ("lcfs-pr", Exponential(1), 0.8, 1, 5.0),
    ("sjf", Exponential(1), 0.8, 1, 2.88222),
    ("psjf", Exponential(1), 0.8, 1, 2.65890),
    ("srpt", Exponential(1), 0.8, 1, 2.35277),
    ("srpt", Exponential(1), 0.5, 1, 1.42537),
    ("ps", Exponential(1), 0.8, 1, 5.0),
    ("ps", LogNormal(1, 1), 0.7, 1, 1 / 0.3),
    ("fb", Exponential(1), 0.8, 1, 5.0),
    ("lrpt", Exponential(1), 0.5, 1, 4.0),
    ("fcfs", Deterministic(2), 0.6, 1, pollaczek_khinchine(Deterministic(2), 0.6)),
    ("fcfs", LogNormal(1, 1), 0.7, 1, pollaczek_khinchine(LogNormal(1, 1), 0.7)),
    ("lcfs-pr", LogNormal(1, 1), 0.7, 1, 1 / 0.3),
    (
        "lcfs",
        HyperExponential((0.9, 0.1), (0.5, 5.5)),
        0.6,
        1,
        pollaczek_khinchine(HyperExponential((0.9, 0.1), (0.5, 5.5)), 0.6),
    ),
    ("fcfs", Exponential(1), 0.8, 3, erlang_c_mean_response(0.8, 3)),
    ("lcfs", Exponential(1), 0.9, 10, erlang_c_mean_response(0.9, 10)),
]


def test_simulation_agrees_with_theory() -> None:
    """One joint test over all cases: Student quantiles to z-scores, their squares summed."""
    scores = []
    for policy, law, load, servers, exact in CASES:
        result = simulate(policy, Workload(law, load=load), servers, jobs=1_000_000, seed=11)
        low, high = result.response.ci95
        error = (high - low) / 2 / stats.t.ppf(0.975, 9)
        t = (result.response.mean - exact) / error
        scores.append(stats.norm.isf(stats.t.sf(t, 9)))
    assert stats.chi2.sf(np.sum(np.square(scores)), len(CASES)) > FALSE_ALARM, scores


def test_time_averages_obey_littles_law_and_the_load() -> None:
    result = simulate("fcfs", Workload(Exponential(1), load=0.8), jobs=2_000_000, seed=2)
    low, high = result.number_in_system.ci95
    assert low - 0.02 < 4 < high + 0.02
    # Little on the same window: the boundary term is all that may differ
    rate = 0.8 * result.realised_load / result.load
    assert result.number_in_system.value == pytest.approx(rate * result.response.mean, rel=0.01)
    assert result.realised_load == pytest.approx(0.8, abs=0.01)
    assert result.work.value == pytest.approx(4, rel=0.05)


# Conservation.


def dyadic_table(seed: int, count: int = 400) -> JobTable:
    rng = np.random.default_rng(seed)
    return JobTable.from_arrays(
        np.cumsum(rng.integers(0, 8, count)) / 4,
        rng.integers(1, 12, count) / 8,
        kind=np.arange(count) % 2,
        weight=2.0 ** (np.arange(count) % 2),
    )


@pytest.mark.parametrize("seed", range(3))
def test_work_is_the_same_under_every_rule_on_one_server(seed: int) -> None:
    workload = Workload.from_table(dyadic_table(seed))
    work = {rule: simulate(rule, workload).work.value for rule in RULES}
    assert max(work.values()) == pytest.approx(min(work.values()), rel=1e-12), work


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("servers", [1, 2])
def test_little_holds_exactly_from_empty_to_empty(rule: str, servers: int) -> None:
    if rule == "gamma-boost":  # defined on one server
        servers = 1
    table = dyadic_table(5)
    result = simulate(rule, Workload.from_table(table), servers)
    (tally,) = result.tallies
    assert tally.number_area == pytest.approx(tally.moments[:, 1].sum(), rel=1e-12)
    assert tally.left_inside == 0
    assert tally.moments[:, 0].sum() == len(table)


def test_size_blind_waits_conserve_the_class_weighted_sum() -> None:
    classes = [JobClass("a", 0.6, Exponential(1)), JobClass("b", 0.4, Exponential(2))]
    workload = Workload(classes=classes, load=0.8)
    sums = []
    for rule in ("fcfs", "lcfs", "random", "priority", "priority:order=b>a", "c-mu"):
        parts = simulate(rule, workload, jobs=2_000_000, seed=4).per_class
        sums.append(0.6 * 1 * parts["a"].waiting.mean + 0.4 * 2 * parts["b"].waiting.mean)
    assert max(sums) / min(sums) < 1.02


# Randomness.


@pytest.mark.parametrize("rule", ["fcfs", "srpt"])
def test_a_seed_gives_the_same_bits_on_any_number_of_cores(rule: str) -> None:
    workload = Workload(Pareto(2.5), load=0.7)
    runs = [
        simulate(rule, workload, 2, jobs=60_000, seed=9, replications=4, cores=cores)
        for cores in (1, 2)
    ]
    for a, b in zip(runs[0].tallies, runs[1].tallies, strict=True):
        assert (a.moments == b.moments).all()
        assert (a.histograms == b.histograms).all()
        assert a.number_area == b.number_area


def test_joblib_backend_is_respected() -> None:
    with joblib.parallel_config(backend="threading", n_jobs=2):
        result = simulate("fcfs", Workload(Exponential(1), load=0.5), jobs=20_000, seed=9)
    alone = simulate("fcfs", Workload(Exponential(1), load=0.5), jobs=20_000, seed=9, cores=1)
    assert result.response.mean == alone.response.mean


def test_policies_see_the_same_jobs() -> None:
    workload = Workload(Exponential(1), load=0.7)
    tables = [simulate(p, workload, jobs=500, trace=True).jobs_table for p in ("fcfs", "sjf")]
    assert tables[0][["arrival", "size"]].equals(tables[1][["arrival", "size"]])


def test_streaming_equals_the_table_across_blocks() -> None:
    """Rebased clocks and block borders leave no trace."""
    jobs = BLOCK + 5_000
    for rule in ("fcfs", "lcfs", "random", "sjf", "srpt", "ps", "fb"):
        workload = Workload(Exponential(1), load=0.9, prediction="exact")
        streamed = simulate(rule, workload, jobs=jobs, seed=3, replications=1, warmup=0)
        seed = np.random.SeedSequence(3).spawn(1)[0]
        table = workload.table(jobs + 2_000, seed)
        whole = simulate(rule, Workload.from_table(table), seed=3, trace=True).jobs_table
        mine = whole.response[:jobs]
        assert streamed.response.count == jobs
        assert streamed.response.sample_mean == pytest.approx(mine.mean(), rel=1e-9)


# What is counted.


def test_every_counted_job_is_waited_for() -> None:
    result = simulate("srpt", Workload(Exponential(1), load=0.95), jobs=50_000, seed=1)
    assert result.left_inside == 0
    assert result.response.count == 45_000


def test_a_horizon_cuts_jobs_off_and_says_so() -> None:
    result = simulate("fcfs", Workload(Exponential(1), load=1.5), horizon=1_000, seed=1)
    assert result.left_inside > 300
    assert result.response.count + result.left_inside == result.jobs


def test_warmup_is_dropped() -> None:
    workload = Workload(Exponential(1), load=0.9)
    cold = simulate("fcfs", workload, jobs=20_000, replications=40, warmup=0, seed=3)
    warm = simulate("fcfs", workload, jobs=40_000, replications=40, warmup=500, seed=3)
    assert warm.response.count == 20_000
    assert cold.response.mean < warm.response.mean


# Honesty.


def test_no_mean_where_it_is_infinite() -> None:
    result = simulate("fcfs", Workload(Pareto(1.5), load=0.5), jobs=20_000)
    assert result.response.mean is None
    assert result.response.ci95 is None
    assert "infinite" in result.response.reason
    assert result.number_in_system.value is None
    assert math.isfinite(result.response.p50)
    assert result.response.quantile_ci(0.9) is not None


def test_a_mean_but_no_interval_where_the_variance_is_infinite() -> None:
    result = simulate("srpt", Workload(Pareto(1.5), load=0.5), jobs=20_000)
    assert result.response.mean is not None
    assert result.response.ci95 is None
    assert "Var T is infinite" in result.response.reason


def test_spare_servers_make_the_mean_finite() -> None:
    workload = Workload(Pareto(1.8), load=0.3)
    assert simulate("fcfs", workload, 1, jobs=20_000).response.mean is None
    assert simulate("fcfs", workload, 4, jobs=20_000).response.mean is not None


def test_the_slowdown_is_refused_where_short_jobs_are_held_up() -> None:
    workload = Workload(Exponential(1), load=0.5)
    slowdown = {p: simulate(p, workload, jobs=20_000).slowdown for p in ("fcfs", "lcfs-pr", "ps")}
    assert slowdown["fcfs"].mean is None
    assert slowdown["lcfs-pr"].mean is not None
    assert slowdown["lcfs-pr"].ci95 is None
    assert slowdown["ps"].ci95 is not None


def test_one_replication_has_no_interval() -> None:
    result = simulate("fcfs", Workload(Exponential(1), load=0.5), jobs=1_000, replications=1)
    assert result.response.ci95 is None
    assert "two replications" in result.response.reason


# Rules of one's own.


class ShortPromptFirst(Policy):
    needs = frozenset({"prediction"})

    def key(self, jobs):
        return jobs.prediction


class Nosy(Policy):
    def key(self, jobs):
        return jobs.size


class EveryOther(Policy):
    """A rule with a choice of its own: newest and oldest in turn."""

    def __init__(self) -> None:
        self.turn = 0

    def choose(self, waiting, now):
        return (min if self.turn % 2 else max)(waiting, key=lambda job: (job.arrival, job.id))

    def on_dispatch(self, job, waiting, now) -> None:
        self.turn += 1


def test_a_rule_of_ones_own_runs_compiled() -> None:
    workload = Workload(Exponential(1), load=0.8)
    own = simulate(ShortPromptFirst(), workload, jobs=50_000)
    assert own.response.mean == simulate("sjf", workload, jobs=50_000).response.mean


def test_hidden_sizes_stay_hidden() -> None:
    workload = Workload(Exponential(1), load=0.5)
    for engine in ("queue", "reference"):
        with pytest.raises((ValueError, AttributeError), match="does not declare it"):
            simulate(Nosy(), workload, jobs=100, engine=engine)


def test_a_rule_with_a_choice_runs_on_the_reference() -> None:
    workload = Workload(Exponential(1), load=0.5)
    result = simulate(EveryOther(), workload, jobs=3_000, replications=3)
    assert result.response.mean == pytest.approx(2, rel=0.25)
    with pytest.raises(ValueError, match="no compiled queue"):
        simulate(EveryOther(), workload, jobs=3_000, engine="queue")


class Quadratic(Policy):
    def key(self, jobs):
        return jobs.arrival * jobs.weight


class Scalar(Policy):
    def key(self, jobs):
        return 1.0


class Endless(Policy):
    def key(self, jobs):
        return jobs.arrival / 0.0


TWO_WEIGHTS = Workload(
    classes=[JobClass("a", 0.5, Exponential(1)), JobClass("b", 0.5, Exponential(1), weight=2)],
    load=0.5,
)


@pytest.mark.parametrize(
    ("rule", "message"),
    [(Quadratic, "origin of time"), (Scalar, "one number a job"), (Endless, "finite number")],
)
@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
def test_bad_keys_are_named(rule: type[Policy], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        simulate(rule(), TWO_WEIGHTS, jobs=1_000)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"jobs": 0}, "jobs=0"),
        ({"jobs": 1.5}, "jobs=1.5"),
        ({"jobs": math.nan}, "jobs=nan"),
        ({"jobs": 10}, "jobs=10"),
        ({"servers": 0}, "servers=0"),
        ({"seed": -1}, "seed=-1"),
        ({"replications": 0}, "replications=0"),
        ({"jobs": 1000, "warmup": 100}, "warmup=100"),
        ({"engine": "turbo"}, "engine='turbo'"),
        ({"horizon": -1}, "horizon=-1"),
    ],
)
def test_bad_settings_are_named(settings: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        simulate("fcfs", Workload(Exponential(1), load=0.5), **settings)


def test_overload_is_refused() -> None:
    with pytest.raises(ValueError, match=r"load=1\.2: an M/G/3 queue is stable only below 1"):
        simulate("fcfs", Workload(Exponential(1), load=1.2), 3)


def test_compare_needs_two_rules() -> None:
    with pytest.raises(ValueError, match="at least two different"):
        compare(["fcfs", "fcfs"], Workload(Exponential(1), load=0.5))
