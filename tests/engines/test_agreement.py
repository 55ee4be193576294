"""The compiled kernel against the SimPy reference, job by job."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from whonext import JobClass, Policy, Workload, simulate
from whonext.engines.queue import run_table
from whonext.engines.reference import run_reference
from whonext.policies import parse_policy, registry
from whonext.workload import JobTable

#: Kernels that compute what the reference computes, in the same order: equal on dyadic tables.
RANKED = [name for name, rule in registry.items() if rule.slope <= 0 and rule.shape != "shared"]


@st.composite
def dyadic_tables(draw: st.DrawFn) -> JobTable:
    """Quarters and halves, full of ties: simultaneous arrivals, completions, equal ranks."""
    count = draw(st.integers(1, 40))
    quarters = st.integers(1, 8)
    gaps = draw(arrays(int, count, elements=st.sampled_from([0, 0, 1, 2, 4, 12])))
    size = draw(arrays(int, count, elements=quarters)) / 4
    return JobTable.from_arrays(
        np.cumsum(gaps) / 4,
        size,
        kind=draw(arrays(int, count, elements=st.integers(0, 1))),
        weight=2.0 ** draw(arrays(int, count, elements=st.integers(0, 1))),
        prediction=draw(arrays(int, count, elements=quarters)) / 4,
        cost=draw(arrays(int, count, elements=quarters)) / 4,
    )


TWO_CLASSES = Workload(
    classes=[JobClass("chat", 0.5, "det:1", weight=1), JobClass("batch", 0.5, "det:1", weight=2)],
    load=0.5,
)


def bound(name: str, servers: int) -> Policy:
    policy = parse_policy(name)
    policy.bind(TWO_CLASSES, servers)
    return policy


@pytest.mark.parametrize(
    "name", [*RANKED, "sjf:by=prediction", "srpt:by=prediction", "wspt:by=cost"]
)
@settings(max_examples=25, deadline=None)
@given(table=dyadic_tables(), servers=st.integers(1, 3))
def test_equal_on_dyadic_tables(name: str, table: JobTable, servers: int) -> None:
    servers = 1 if name == "gamma-boost" else servers
    policy = bound(name, servers)
    _, raw = run_table(policy, table, servers, classes=2)
    exact, _ = run_reference(policy, table, servers, exact=True)
    assert [float(x) for x in exact] == raw.response.tolist()


@pytest.mark.parametrize("name", RANKED)
@pytest.mark.parametrize("servers", [1, 3])
def test_close_on_continuous_tables(name: str, servers: int) -> None:
    rng = np.random.default_rng([7, servers])
    count = 1000
    size = np.exp(rng.standard_exponential(count) / 1.5)
    table = JobTable.from_arrays(
        np.cumsum(rng.standard_exponential(count)) * 3 / servers / 0.9,
        size,
        kind=rng.integers(0, 2, count),
        weight=rng.choice([1.0, 3.0], count),
    )
    if (name, servers) == ("gamma-boost", 3):
        servers = 1
    policy = bound(name, servers)
    _, raw = run_table(policy, table, servers, classes=2)
    slow, _ = run_reference(policy, table, servers)
    tolerance = 1e-9 * np.maximum(slow, size.mean())
    assert (np.abs(raw.response - slow) <= tolerance).all()


SHARING = [("ps", 1), ("ps", 3), ("fb", 1), ("lrpt", 1)]


@pytest.mark.parametrize(("name", "servers"), SHARING)
@settings(max_examples=20, deadline=None)
@given(table=dyadic_tables())
def test_sharing_is_close_to_exact_fractions(name: str, servers: int, table: JobTable) -> None:
    policy = bound(name, servers)
    _, raw = run_table(policy, table, servers, classes=2)
    exact, _ = run_reference(policy, table, servers, exact=True)
    exact = np.array([float(x) for x in exact])
    assert np.abs(raw.response - exact) == pytest.approx(0, abs=1e-9 * max(exact.max(), 1))


@pytest.mark.parametrize(("name", "servers"), SHARING)
def test_sharing_is_close_on_a_long_continuous_table(name: str, servers: int) -> None:
    rng = np.random.default_rng([8, servers])
    count = 300
    size = np.exp(rng.standard_exponential(count) / 1.5)
    table = JobTable.from_arrays(
        np.cumsum(rng.standard_exponential(count)) * 3 / servers / 0.8, size
    )
    policy = bound(name, servers)
    _, raw = run_table(policy, table, servers, classes=1)
    exact, _ = run_reference(policy, table, servers, exact=True)
    exact = np.array([float(x) for x in exact])
    assert (np.abs(raw.response - exact) <= 1e-9 * np.maximum(exact, size.mean())).all()


@pytest.mark.parametrize("name", ["fcfs", "sjf", "srpt", "priority-pr"])
def test_event_traces_are_the_same(name: str) -> None:
    rng = np.random.default_rng(3)
    table = JobTable.from_arrays(
        np.cumsum(rng.integers(1, 9, 200)) / 4 + np.arange(200) / 1024,
        rng.integers(1, 16, 200) / 4,
        kind=rng.integers(0, 2, 200),
    )
    workload = Workload.from_table(table)
    fast = simulate(name, workload, 2, trace=True).events
    slow = simulate(name, workload, 2, trace=True, engine="reference").events
    order = ["time", "job", "event"]
    columns = ["time", "event", "job", "kind"]
    fast, slow = (f.sort_values(order, ignore_index=True)[columns] for f in (fast, slow))
    assert fast.equals(slow.astype(fast.dtypes))
