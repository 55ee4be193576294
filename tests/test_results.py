"""Histograms, quantiles, tails and records."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whonext import Exponential, JobClass, Result, Workload, compare, simulate
from whonext.engines.books import bin_of
from whonext.estimates import Honesty
from whonext.results import BINS, Summary, Tally, _bins_of, bin_edges

KEYS = {
    "policy", "servers", "load", "realised_load", "size", "jobs", "seed", "seconds",
    "jobs_per_second", "response", "waiting", "number_in_system", "per_class", "tail",
}  # fmt: skip


@given(st.floats(1e-11, 1e15))
def test_bins_hold_their_values(value: float) -> None:
    place = int(_bins_of(np.array([value]))[0])
    assert place == bin_of(value)
    assert bin_edges(place) <= value < bin_edges(place + 1)


def test_bins_at_the_ends() -> None:
    assert bin_of(0.0) == 0 == _bins_of(np.array([0.0]))[0]
    assert bin_of(1e-300) == 1 == _bins_of(np.array([1e-300]))[0]
    assert bin_of(1e300) == BINS - 1 == _bins_of(np.array([1e300]))[0]


def summary_of(*samples: np.ndarray) -> Summary:
    tallies = []
    for sample in samples:
        tally = Tally.empty(1)
        tally.add(sample, 0 * sample, np.ones(len(sample)), np.zeros(len(sample), dtype=int))
        tallies.append(tally)
    return Summary(tallies, 0, None, Honesty())


@given(st.lists(st.floats(0.01, 1e6), min_size=1, max_size=200), st.floats(0.01, 0.99))
def test_quantile_is_within_one_bin_of_the_order_statistic(values: list[float], p: float) -> None:
    exact = float(np.quantile(values, p, method="inverted_cdf"))
    assert summary_of(np.array(values)).quantile(p) == pytest.approx(exact, rel=1 / 64)


def test_exceedance_is_exact_at_bin_edges() -> None:
    values = np.random.default_rng(1).exponential(size=10_000)
    points = np.array([0.25, 0.5, 1.0, 1.5, 3.0])
    probability, error = summary_of(values).exceedance(points)
    assert probability == pytest.approx([(values > t).mean() for t in points], abs=1e-12)
    assert np.isnan(error).all()


def test_waiting_has_an_atom_at_zero() -> None:
    waiting = simulate("fcfs", Workload(Exponential(1), load=0.5), jobs=200_000).waiting
    assert waiting.p50 < 0.1
    assert waiting.quantile(0.25) == 0.0
    assert waiting.exceedance([0.0])[0][0] == pytest.approx(0.5, abs=0.02)


def test_quantile_needs_enough_jobs_beyond_it() -> None:
    few = summary_of(np.arange(1.0, 101), np.arange(1.0, 101))
    assert few.quantile_ci(0.5) is not None
    assert few.quantile_ci(0.99) is None


@pytest.mark.parametrize("p", [0, 1, -0.1, math.nan])
def test_quantile_refuses(p: float) -> None:
    with pytest.raises(ValueError, match="0 < p < 1"):
        summary_of(np.ones(5)).quantile(p)


@pytest.fixture(scope="module")
def two_classes() -> Result:
    classes = [
        JobClass("chat", 0.8, Exponential(0.5), weight=4),
        JobClass("batch", 0.2, Exponential(3)),
    ]
    return simulate("c-mu", Workload(classes=classes, load=0.7), jobs=200_000, seed=1)


def test_dict_has_the_promised_fields(two_classes: Result) -> None:
    record = json.loads(json.dumps(two_classes.to_dict(), allow_nan=False))
    assert set(record) >= KEYS
    assert set(record["per_class"]) == {"chat", "batch"}
    assert {"mean", "ci95", "p50", "p90", "p99", "p999", "reason"} <= set(record["response"])
    tail = record["tail"]
    assert [row["probability"] for row in tail] == sorted(
        (row["probability"] for row in tail), reverse=True
    )


def test_save_and_load(two_classes: Result, tmp_path) -> None:
    two_classes.save(tmp_path / "run.json")
    again = Result.load_from(tmp_path / "run.json")
    assert again.to_dict() == two_classes.to_dict()


def test_frames(two_classes: Result) -> None:
    frame = two_classes.to_frame()
    assert list(frame.index) == ["all", "chat", "batch"]
    assert frame.loc["all", "jobs"] == frame.loc[["chat", "batch"], "jobs"].sum()
    assert (frame["response_low"] < frame["response"]).all()


def test_weighted_cost_is_the_sum_over_classes(two_classes: Result) -> None:
    parts = two_classes.per_class.values()
    total = sum(c.weight * c.number_in_system.value for c in parts)
    assert two_classes.weighted_cost.value == pytest.approx(total)


def test_paired_differences_are_narrower(two_classes: Result) -> None:
    both = compare(["fcfs", "lcfs-pr"], Workload(Exponential(1), load=0.8), jobs=400_000)
    low, high = both.differences()["lcfs-pr"].ci95
    own = [r.response.ci95 for r in both.results.values()]
    assert low < 0 < high
    assert high - low < sum(b - a for a, b in own)
    assert both.to_frame().loc["fcfs", "difference"] == 0
