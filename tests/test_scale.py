"""More machines, more jobs, more waiting than there is room for."""

from __future__ import annotations

import gc
import math
import tracemalloc

import joblib
import numpy as np
import psutil
import pytest

from whonext import BoundedPareto, Exponential, JobTable, Pareto, Workload, cli, simulate
from whonext.engines import books, queue
from whonext.policies import parse_policy, registry
from whonext.workload import BLOCK

try:
    import dask
    from dask.distributed import Client, LocalCluster
except ImportError:
    dask = None

needs_dask = pytest.mark.skipif(
    dask is None, reason="dask.distributed is not installed: runs on a cluster are not tested"
)


# More machines.


@pytest.fixture(scope="module")
def cluster():
    """Two workers, each a process of its own, on this machine."""
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "120s"}),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as machines,
        Client(machines),
    ):
        yield machines


@needs_dask
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of Dask's, on busy machines
@pytest.mark.parametrize(
    ("rule", "engine", "jobs"),
    [("srpt", "queue", 40_000), ("ps", "queue", 40_000), ("sjf", "reference", 600)],
)
def test_a_dask_cluster_gives_the_bits_of_one_core(cluster, rule, engine, jobs) -> None:
    workload = Workload(Pareto(2.5), load=0.7)
    run = {"servers": 2, "jobs": jobs, "replications": 5, "seed": 9, "engine": engine}
    alone = simulate(rule, workload, cores=1, **run)
    before = cluster.scheduler.transition_counter
    with joblib.parallel_config(backend="dask"):
        spread = simulate(rule, workload, **run)
    assert cluster.scheduler.transition_counter > before  # it was the cluster that ran it
    assert len(alone.tallies) == len(spread.tallies) == 5
    for here, there in zip(alone.tallies, spread.tallies, strict=True):
        assert here.moments.tobytes() == there.moments.tobytes()
        assert (here.histograms == there.histograms).all()
        for name in ("elapsed", "number_area", "busy_area", "offered", "left_inside", "jobs"):
            assert getattr(here, name) == getattr(there, name), name


# More jobs.

MILLION = 1_000_000
MEBIBYTE = 2**20


def memory_of(jobs: int, rule: str, servers: int) -> tuple[int, int]:
    """Most memory that Python and numpy had at once in a run, and what the process holds after."""
    gc.collect()
    tracemalloc.start()
    try:
        simulate(rule, Workload(Pareto(1.5), load=0.8), servers, jobs=jobs, replications=1, cores=1)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    gc.collect()
    return most, psutil.Process().memory_info().rss


@pytest.mark.slow
@pytest.mark.parametrize(("rule", "servers"), [("srpt", 3), ("fb", 1)])
def test_four_times_the_jobs_take_no_more_memory(rule, servers) -> None:
    """One number kept for each job would be 46 MiB more."""
    memory_of(MILLION // 10, rule, servers)  # imports, compiled code, buffers
    few, held_after_few = memory_of(2 * MILLION, rule, servers)
    many, held_after_many = memory_of(8 * MILLION, rule, servers)
    assert many - few < 4 * MEBIBYTE
    assert held_after_many - held_after_few < 16 * MEBIBYTE


# More waiting than there is room for.


@pytest.fixture
def room(monkeypatch):
    """Few jobs may be inside: one block and 5,000 more."""
    monkeypatch.setattr(books, "MOST_INSIDE", BLOCK + 5_000)
    return BLOCK + 5_000


HEAVY = Workload(Pareto(1.05), load=0.9)  # behind one long job a hundred thousand may wait


@pytest.mark.parametrize("rule", ["lcfs", "sjf", "fcfs"])
def test_a_backlog_without_bound_ends_with_one_clear_error(rule, room) -> None:
    with pytest.raises(MemoryError) as full:
        simulate(rule, HEAVY, jobs=3 * MILLION, replications=1, seed=5, cores=1)
    assert f"more than the {room:,} that are allowed for" in str(full.value)
    assert "\n" not in str(full.value)


@pytest.mark.parametrize("rule", ["lcfs", "fb", "ps"])
def test_an_overload_with_a_horizon_ends_with_the_same_error(rule, room) -> None:
    with pytest.raises(MemoryError, match="that are allowed for"):
        simulate(rule, Workload(Exponential(1), load=4), horizon=30_000, seed=5)


@pytest.mark.parametrize("rule", ["fcfs", "lcfs", "fb", "ps"])
def test_a_long_table_needs_room_for_those_inside_alone(rule, room) -> None:
    table = Workload(Exponential(1), load=0.8).table(3 * BLOCK, seed=5)
    assert simulate(rule, Workload.from_table(table)).response.count == 3 * BLOCK


@pytest.mark.parametrize("rule", [r for r in sorted(registry) if r != "gamma-boost"])
@pytest.mark.parametrize("warmup", [0, 20])
def test_a_table_in_pieces_is_the_table_in_one(rule, warmup, monkeypatch) -> None:
    """Pieces of seven jobs, cut between jobs of one instant too."""
    rng = np.random.default_rng(3)
    arrival, size = np.cumsum(rng.integers(0, 3, 200)) / 4, rng.integers(1, 4, 200) / 4
    table = JobTable.from_arrays(arrival, size, kind=rng.integers(0, 2, 200))
    rule = parse_policy(rule)
    rule.bind(Workload.from_table(table), 1)
    whole, raw = queue.run_table(rule, table, 1, 2, warmup, trace=True)
    monkeypatch.setattr(queue, "BLOCK", 7)
    cut, pieces = queue.run_table(rule, table, 1, 2, warmup, trace=True)
    assert (raw.response == pieces.response).all()
    assert (raw.events == pieces.events).all()
    assert (whole.moments == cut.moments).all()
    for name in ("elapsed", "offered", "left_inside", "jobs"):
        assert getattr(whole, name) == getattr(cut, name)
    assert whole.number_area == pytest.approx(cut.number_area, rel=1e-12)


@pytest.mark.parametrize("rule", ["lcfs-pr", "ps", "srpt", "fb"])
def test_rules_that_serve_the_short_need_little_room(rule, room) -> None:
    result = simulate(rule, HEAVY, jobs=300_000, replications=1, seed=5, cores=1)
    assert result.response.count > 0


def test_the_limit_is_the_one_stated() -> None:
    assert len(books.with_room(np.zeros((4, 1)), 5)) == 8
    assert books.with_room.__doc__.count("MOST_INSIDE") == 1
    with pytest.raises(MemoryError, match=r"20,000,001 jobs .* 20,000,000 that are allowed"):
        books.with_room(np.zeros((4, 1)), books.MOST_INSIDE + 1)


@pytest.mark.parametrize("rule", sorted(registry))
def test_room_grows_without_losing_anybody(rule) -> None:
    """Twenty thousand wait at once, so that every array grows more than once."""
    if rule == "gamma-boost":
        workload = Workload(BoundedPareto(1.5, 1, 10), arrivals="batch:det:20000", load=0.5)
    else:
        workload = Workload(Exponential(1), arrivals="batch:det:20000", load=0.5)
    result = simulate(rule, workload, jobs=40_000, replications=1, warmup=0, cores=1)
    assert result.response.count == 40_000
    assert math.isfinite(result.response.sample_mean)


@pytest.mark.parametrize("cores", [1, 2])
def test_the_command_says_it_in_one_line(cores, room, monkeypatch, capsys) -> None:
    def full(*_):
        raise MemoryError("9 jobs in the system: more than the 8 that are allowed for")

    if cores == 2:  # the workers have the real limit: what one of them raises must come through
        monkeypatch.setattr("whonext.simulation._one_stream", full)
    words = ["simulate", "lcfs", "--load", "0.9", "--size", "pareto:alpha=1.05", "--jobs", "6e6"]
    words += ["--replications", "2", "--seed", "5", "--cores", str(cores)]
    assert cli.main(words) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert printed.err.startswith("whonext: ")
    assert "that are allowed for" in printed.err


def test_a_memory_that_is_full_without_a_word_gets_one(monkeypatch, capsys) -> None:
    def full(*_):
        raise MemoryError

    monkeypatch.setattr("whonext.simulation._one_stream", full)
    words = ["simulate", "lcfs", "--load", "0.9", "--size", "exp:1", "--jobs", "1e4"]
    assert cli.main([*words, "--cores", "1"]) == 2
    assert capsys.readouterr().err == "whonext: the memory is full\n"
