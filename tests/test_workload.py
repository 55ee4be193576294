"""Jobs: streams that do not depend on how they are read, load algebra, and what is refused."""

from __future__ import annotations

import math
import pickle
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from whonext.distributions import Deterministic, Empirical, Exponential, Gamma
from whonext.workload import (
    BLOCK,
    COLUMNS,
    Batch,
    ClassMean,
    Diurnal,
    ExactPrediction,
    JobClass,
    JobTable,
    LogNormalError,
    Poisson,
    Renewal,
    TraceArrivals,
    Workload,
    parse_arrivals,
    parse_prediction,
    random_stream,
)

CLASSES = [
    JobClass("chat", 0.6, "exp:1", weight=4.0),
    JobClass("agent", 0.3, "hyperexp:p=0.9/0.1,mean=0.5/5.5"),
    JobClass("batch", 0.1, "pareto:alpha=2.5", weight=0.5),
]
WORKLOADS = {
    "exponential": Workload("exp:1", load=0.8),
    "three classes": Workload(classes=CLASSES, load=0.8, prediction="lognormal:sigma=1"),
    "batches": Workload("pareto:alpha=1.5", load=0.8, arrivals="batch:4", cost="size"),
    "renewal": Workload("det:2", load=0.8, arrivals="renewal:hyperexp:p=0.9/0.1,mean=0.5/5.5"),
    "day": Workload("exp:1", load=0.8, arrivals="diurnal:amplitude=0.9,period=500"),
    "recorded": Workload("exp:1", load=0.8, arrivals=TraceArrivals([3.0, 4.0, 4.0, 9.0])),
    "class means": Workload(classes=CLASSES, load=0.8, prediction="class-mean", cost="prediction"),
}
each_workload = pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS)


def same(one: JobTable, other: JobTable) -> None:
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


def refuses(message):
    return pytest.raises(ValueError, match=f"^{re.escape(message)}$")


# Streams.


@each_workload
def test_a_longer_run_begins_with_the_shorter_one(workload):
    long, short = workload.table(70_000, seed=5), workload.table(1_000, seed=5)
    same(long.head(1_000), short)
    same(workload.table(BLOCK + 3, seed=5), long.head(BLOCK + 3))


@each_workload
def test_blocks(workload):
    blocks = list(workload.blocks(2 * BLOCK + 10, seed=1, servers=3))
    assert [len(block) for block in blocks] == [BLOCK, BLOCK, 10]
    clock = np.cumsum([0.0] + [block.arrival[-1] for block in blocks])
    table = workload.table(2 * BLOCK + 10, seed=1, servers=3)
    whole = np.concatenate([b.arrival + c for b, c in zip(blocks, clock, strict=False)])
    np.testing.assert_array_equal(table.arrival, whole)
    for name in COLUMNS[1:]:
        parts = np.concatenate([getattr(block, name) for block in blocks])
        np.testing.assert_array_equal(getattr(table, name), parts)
    assert (np.diff(table.arrival) >= 0).all()
    assert (table.size > 0).all()
    assert table.kind.dtype == np.int64
    assert all(getattr(table, name).dtype == np.float64 for name in COLUMNS if name != "kind")
    assert all(getattr(block, name).flags.c_contiguous for block in blocks for name in COLUMNS)


def test_blocks_kept_are_not_overwritten():
    workload = WORKLOADS["exponential"]
    kept = list(workload.blocks(3 * BLOCK, seed=2))
    for block, again in zip(kept, workload.blocks(3 * BLOCK, seed=2), strict=True):
        same(block, again)
    with pytest.raises(ValueError, match="read-only"):
        kept[0].size[0] = 1.0


@each_workload
def test_one_seed_one_set_of_jobs(workload):
    seed = np.random.SeedSequence(7).spawn(3)[1]
    one = workload.table(500, seed)
    same(one, workload.table(500, seed))
    same(one, pickle.loads(pickle.dumps(workload)).table(500, seed))
    other = workload.table(500, np.random.SeedSequence(7).spawn(3)[2])
    if workload.size != Deterministic(2.0):
        assert not np.array_equal(one.size, other.size)
    assert seed.n_children_spawned == 0  # the caller's seed is left as it was


def test_each_ingredient_has_its_own_stream():
    plain = Workload("exp:1", load=0.5).table(5_000, seed=3)
    for other in (
        Workload("exp:1", load=0.5, prediction="lognormal:sigma=1"),
        Workload("exp:1", load=0.5, cost="size"),
    ):
        table = other.table(5_000, seed=3)
        np.testing.assert_array_equal(table.arrival, plain.arrival)
        np.testing.assert_array_equal(table.size, plain.size)
    # Another law of sizes leaves the arrivals alone, another load the sizes.
    pareto = Workload("pareto:alpha=3", arrival_rate=0.5).table(5_000, seed=3)
    np.testing.assert_array_equal(pareto.arrival, plain.arrival)
    busy = Workload("exp:1", load=0.9).table(5_000, seed=3)
    np.testing.assert_array_equal(busy.size, plain.size)
    np.testing.assert_allclose(busy.arrival * 0.9, plain.arrival * 0.5)
    # One class's law leaves the other classes' sizes alone.
    changed = [*CLASSES[:2], JobClass("batch", 0.1, "det:9")]
    one, two = (Workload(classes=c, load=0.5).table(5_000, seed=3) for c in (CLASSES, changed))
    np.testing.assert_array_equal(one.kind, two.kind)
    np.testing.assert_array_equal(one.size[one.kind < 2], two.size[two.kind < 2])


def test_classes_of_one_law_draw_different_sizes():
    law = "hyperexp:p=0.5/0.5,mean=1/3"
    twins = [JobClass("one", 0.5, law), JobClass("two", 0.5, law)]
    table = Workload(classes=twins, load=0.5).table(1_000, seed=3)
    assert len(np.unique(table.size)) == 1_000


def test_streams_differ_by_purpose_and_index():
    draws = {
        random_stream(seed, purpose, *index).integers(2**62)
        for seed in (0, 1, np.random.SeedSequence(0).spawn(1)[0])
        for purpose in ("arrivals", "sizes")
        for index in ((), (0,), (1,), (0, 0), (0, 1))
    }
    assert len(draws) == 3 * 2 * 5


# Laws of what is drawn, tested together.

FALSE_ALARM = 1e-5  # of all tests of this section together, were their seeds drawn anew


def test_jobs_follow_their_recipe():
    n, p = 40_000, []
    table = Workload("exp:2", load=0.8).table(n, seed=11, servers=4)
    p.append(stats.kstest(np.diff(table.arrival, prepend=0.0), Exponential(1 / 1.6).cdf).pvalue)
    p.append(stats.kstest(table.size, Exponential(2.0).cdf).pvalue)

    table = Workload(classes=CLASSES, load=0.8, prediction="lognormal:sigma=0.5").table(n, seed=12)
    counts = np.bincount(table.kind)
    p.append(stats.chisquare(counts, [0.6 * n, 0.3 * n, 0.1 * n]).pvalue)
    for k, each in enumerate(CLASSES):
        p.append(stats.kstest(table.size[table.kind == k], each.size.cdf).pvalue)
        assert set(table.weight[table.kind == k]) == {each.weight}
    p.append(stats.kstest(np.log(table.prediction / table.size) / 0.5, "norm").pvalue)

    gaps = np.diff(Workload("exp:1", arrival_rate=2, arrivals="batch:3").table(n, 13).arrival)
    p.append(stats.kstest(gaps[gaps > 0], Exponential(1.5).cdf).pvalue)
    starts = int((gaps > 0).sum())
    p.append(stats.binomtest(starts, len(gaps), 1 / 3).pvalue)  # geometric batches

    law = Gamma(0.5, 1.0)
    gaps = np.diff(Workload("exp:1", arrival_rate=2, arrivals=Renewal(law)).table(n, 14).arrival)
    p.append(stats.kstest(gaps, law.with_mean(0.5).cdf).pvalue)

    # A day: the number expected by each arrival grows in unit exponential steps.
    a, period = 0.7, 300.0
    day = Workload("exp:1", arrival_rate=2, arrivals=Diurnal(a, period)).table(n, 15).arrival
    turn = 2 * math.pi / period
    expected = 2 * (day + a / turn * (1 - np.cos(turn * day)))
    p.append(stats.kstest(np.diff(expected), Exponential(1.0).cdf).pvalue)

    assert min(p) > FALSE_ALARM / len(p), p


@pytest.mark.parametrize("amplitude", [0.0, 0.5, 0.999])
def test_a_day_expects_as_many_as_an_even_stream(amplitude):
    even = Workload("exp:1", arrival_rate=2).table(5_000, seed=3).arrival
    day = Workload("exp:1", arrival_rate=2, arrivals=Diurnal(amplitude, 100.0)).table(5_000, seed=3)
    swing = amplitude * 100.0 / (2 * math.pi)
    expected = day.arrival + swing * (1 - np.cos(2 * math.pi * day.arrival / 100.0))
    np.testing.assert_allclose(expected, even, atol=1e-8)


def test_batches_of_a_law():
    arrival = Workload("exp:1", load=0.5, arrivals="batch:det:8").table(801, 1).arrival
    assert np.unique(arrival, return_counts=True)[1].tolist() == [8] * 100 + [1]
    law = Empirical([1, 2, 6])
    table = Workload("exp:1", arrival_rate=1, arrivals=Batch(law)).table(30_000, 1)
    counts = np.unique(table.arrival, return_counts=True)[1][:-1]
    assert set(counts) == {1, 2, 6}
    assert Batch(law).mean_size == 3.0
    assert (np.diff(Workload("exp:1", load=0.5, arrivals="batch:1").table(99, 1).arrival) > 0).all()


def test_recorded_arrivals_repeat():
    arrivals = TraceArrivals([10.0, 11.0, 14.0])  # 2 jobs in 4 after the first: one every 2
    table = Workload("exp:1", arrivals=arrivals).table(7)
    assert table.arrival.tolist() == [0, 1, 4, 6, 7, 10, 12]
    faster = Workload("exp:1", arrival_rate=1.0, arrivals=arrivals).table(7)
    assert faster.arrival.tolist() == [0, 0.5, 2, 3, 3.5, 5, 6]
    assert Workload("exp:1", arrivals=arrivals).load_on(1) == 0.5


def test_exact_prediction_is_the_size_itself():
    block = next(WORKLOADS["exponential"].blocks(10))
    assert np.shares_memory(block.prediction, block.size)
    assert block.cost.tolist() == block.weight.tolist() == [1.0] * 10
    batches = next(WORKLOADS["batches"].blocks(10))
    assert batches.cost.tolist() == batches.size.tolist()


def test_class_means():
    table = WORKLOADS["class means"].table(1_000, 1)
    means = np.array([each.size.mean for each in CLASSES])
    np.testing.assert_array_equal(table.prediction, means[table.kind])
    np.testing.assert_array_equal(table.cost, table.prediction)


def test_cost_may_be_a_function():
    workload = Workload(classes=CLASSES, load=0.5, cost=lambda jobs: jobs.weight * jobs.prediction)
    table = workload.table(100, 1)
    np.testing.assert_array_equal(table.cost, table.weight * table.size)
    wrong = Workload("exp:1", load=0.5, cost=lambda jobs: jobs.size[:3])
    with pytest.raises(ValueError, match="must have 10 rows, as many as size has"):
        wrong.table(10)


# Load.


@given(st.floats(0.01, 3.0), st.integers(1, 100), st.floats(0.1, 10.0))
def test_load_algebra(load, servers, mean):
    workload = Workload(Exponential(mean), load=load)
    rate = workload.rate(servers)
    assert workload.load_on(servers) == load
    assert rate * workload.mean_size / servers == pytest.approx(load)
    by_rate = Workload(Exponential(mean), arrival_rate=rate)
    assert by_rate.rate(servers) == rate
    assert by_rate.load_on(servers) == pytest.approx(load)
    assert workload.with_load(0.5).load_on(servers) == 0.5
    assert by_rate.with_load(0.5).rate(servers) == pytest.approx(0.5 * servers / mean)
    assert workload.load == load


def test_mixture_of_classes():
    workload = Workload(classes=CLASSES, load=0.9)
    means = [each.size.mean for each in CLASSES]
    assert workload.mean_size == pytest.approx(0.6 * means[0] + 0.3 * means[1] + 0.1 * means[2])
    assert workload.names == ("chat", "agent", "batch")
    assert workload.size.tail(3.0) == pytest.approx(
        sum(each.share * each.size.tail(3.0) for each in CLASSES)
    )
    single = Workload("pareto:alpha=1.5")
    assert single.size == single.classes[0].size
    assert single.names == ("all",)


def test_unstable_loads():
    Workload("exp:1", load=0.999).check_stable(3)
    with refuses("load=1.2: an M/G/3 queue is stable only below 1"):
        Workload("exp:1", load=1.2).check_stable(3)
    with refuses("load=1: an M/G/1 queue is stable only below 1"):
        Workload("exp:1", arrival_rate=1).check_stable(1)
    with refuses("load=1.5: a G/G/2 queue is stable only below 1"):
        Workload("exp:1", load=1.5, arrivals="renewal:det:1").check_stable(2)
    with refuses("load=None: a workload needs a load or an arrival_rate"):
        Workload("exp:1").rate(1)
    Workload.from_table(JobTable.from_arrays([0, 1], [9, 9])).check_stable(1)  # it ends


# Tables.

FRAME = pd.DataFrame({"arrival": [0.0, 1.0, 1.0, 4.0], "size": [2.0, 1.0, 0.5, 3.0]})


def test_table_columns_and_defaults():
    table = JobTable.from_frame(FRAME)
    assert len(table) == 4
    assert table.kind.tolist() == [0, 0, 0, 0]
    assert table.weight.tolist() == table.cost.tolist() == [1.0] * 4
    assert table.prediction.tolist() == table.size.tolist()
    pd.testing.assert_frame_equal(table.to_frame()[["arrival", "size"]], FRAME)
    same(JobTable.from_frame(table.to_frame()), table)
    assert table.rows(1, 3).size.tolist() == [1.0, 0.5]
    assert table.head(2).arrival.tolist() == [0.0, 1.0]
    assert len(JobTable.from_arrays([], [])) == 0
    assert JobTable.from_arrays([0, 1], [1, 1], weight=3).weight.tolist() == [3, 3]


def test_a_table_does_not_lock_its_source():
    size = np.array([1.0, 2.0])
    table = JobTable.from_arrays([0.0, 1.0], size)
    size[0] = 5.0
    assert table.size[0] == 1.0
    for each in (table, table.head(1), pickle.loads(pickle.dumps(table))):
        with pytest.raises(ValueError, match="read-only"):
            each.size[0] = 2.0


BAD_TABLES = {
    "size=0 in row 1: must be above 0": ([0, 1], [1, 0], {}),
    "size=-1 in row 0: must be above 0": ([0, 1], [-1, 0], {}),
    "size=nan in row 1: must be a finite number": ([0, 1], [1, math.nan], {}),
    "size=inf in row 0: must be a finite number": ([0, 1], [math.inf, 1], {}),
    "arrival=-1 in row 0: must be 0 or later": ([-1, 1], [1, 1], {}),
    "arrival=1 in row 2: must not be before the row above it": ([0, 2, 1], [1, 1, 1], {}),
    "arrival: has shape (3,), must have 2 rows, as many as size has": ([0, 1, 2], [1, 1], {}),
    "arrival: every value must be a number": (["now", "later"], [1, 1], {}),
    "size: has shape (1, 2), must have one dimension": ([0, 1], [[1, 1]], {}),
    "kind=0.5 in row 1: must be a whole number": ([0, 1], [1, 1], {"kind": [0, 0.5]}),
    "kind=-1 in row 0: must be 0 or more": ([0, 1], [1, 1], {"kind": [-1, 0]}),
    "weight=-2 in row 1: must be 0 or more": ([0, 1], [1, 1], {"weight": [1, -2]}),
    "prediction=-2 in row 0: must be 0 or more": ([0, 1], [1, 1], {"prediction": -2}),
    "cost=nan in row 1: must be a finite number": ([0, 1], [1, 1], {"cost": [1, math.nan]}),
}


@pytest.mark.parametrize("message", BAD_TABLES)
def test_bad_tables(message):
    arrival, size, more = BAD_TABLES[message]
    with refuses(message):
        JobTable.from_arrays(arrival, size, **more)


def test_missing_columns():
    with refuses("frame: has no column size; it has arrival, length"):
        JobTable.from_frame(pd.DataFrame({"arrival": [0], "length": [1]}))
    with refuses("frame: has no column arrival or size; it has none"):
        Workload.from_frame(pd.DataFrame())


def test_fixed_jobs_come_as_given():
    table = JobTable.from_arrays(
        [0.5, 1, 1, 4], [2, 1, 0.5, 3], [1, 0, 0, 1], [1, 2, 2, 1], [1, 1, 1, 1], [5, 6, 7, 8]
    )
    workload = Workload.from_table(table, names=["short", "long"])
    same(workload.table(4), table)
    same(workload.table(1e6, seed=9, servers=7), table)
    same(workload.table(3), table.head(3))
    assert workload.fixed is table
    assert workload.length == 4
    assert Workload("exp:1").length is None
    assert workload.names == ("short", "long")
    assert [each.share for each in workload.classes] == [0.5, 0.5]
    assert [each.weight for each in workload.classes] == [2.0, 1.0]
    assert workload.classes[0].size == Empirical([0.5, 1.0])
    assert workload.size == Empirical(table.size)
    assert workload.mean_size == 6.5 / 4
    assert len(workload.size.spec) < 60
    assert workload.rate(2) == pytest.approx(3 / 3.5)


def test_fixed_jobs_in_blocks():
    rng = np.random.default_rng(0)
    n = BLOCK + 100
    frame = pd.DataFrame({"arrival": np.cumsum(rng.random(n)), "size": rng.random(n) + 0.1})
    workload = Workload.from_frame(frame)
    blocks = list(workload.blocks(1e9))
    assert [len(block) for block in blocks] == [BLOCK, 100]
    np.testing.assert_allclose(workload.table(1e9).arrival, frame["arrival"], rtol=1e-12)
    assert blocks[1].arrival[0] == frame["arrival"][BLOCK] - frame["arrival"][BLOCK - 1]
    np.testing.assert_array_equal(blocks[1].size, frame["size"][BLOCK:])


def test_fixed_jobs_at_another_load():
    workload = Workload.from_frame(FRAME)
    slower = Workload.from_frame(FRAME, load=workload.load_on(2) / 2)
    np.testing.assert_allclose(slower.table(4, servers=2).arrival, FRAME["arrival"] * 2)
    np.testing.assert_array_equal(slower.table(4, servers=2).size, FRAME["size"])
    assert slower.with_load(0.9).load_on(5) == 0.9
    at_once = Workload.from_table(JobTable.from_arrays([3, 3], [1, 1]))
    assert at_once.table(2).arrival.tolist() == [3, 3]
    assert at_once.load_on(1) == math.inf
    with refuses("load: all jobs of the table arrive at once, so none can be given"):
        at_once.with_load(0.5).table(2)


def test_fixed_jobs_with_another_prediction():
    frame = FRAME.assign(prediction=1.0, cost=2.0)
    kept = Workload.from_frame(frame).table(4)
    assert kept.prediction.tolist() == [1.0] * 4
    assert kept.cost.tolist() == [2.0] * 4
    guessed = Workload.from_frame(frame, prediction=LogNormalError(1.0), cost="prediction")
    one, two = guessed.table(4, seed=1), guessed.table(4, seed=2)
    assert one.cost.tolist() == one.prediction.tolist() != two.prediction.tolist()
    assert Workload.from_frame(frame, prediction="exact").table(4).prediction.tolist() == [
        2.0, 1.0, 0.5, 3.0,
    ]  # fmt: skip


def test_kinds_may_be_names():
    workload = Workload.from_frame(FRAME.assign(kind=["b", "a", "b", "b"]))
    assert workload.names == ("b", "a")
    assert workload.table(4).kind.tolist() == [0, 1, 0, 0]
    with refuses("kind=1: no job of the table is of this class (class 1)"):
        Workload.from_frame(FRAME.assign(kind=[0, 2, 0, 0]))
    with refuses("names=1: the table has 2 classes"):
        Workload.from_frame(FRAME.assign(kind=[0, 1, 0, 0]), names=["one"])
    with refuses("table: has no jobs"):
        Workload.from_table(JobTable.from_arrays([], []))
    with refuses("frame: has 1 jobs without a kind"):
        Workload.from_frame(FRAME.assign(kind=["b", None, "b", "b"]))


# Texts and files.


def test_texts():
    assert parse_arrivals("poisson") == Poisson()
    assert parse_arrivals("renewal:gamma:shape=0.5,mean=1") == Renewal(Gamma(0.5, 1))
    assert parse_arrivals("batch:4") == Batch(4)
    assert parse_arrivals("batch:det:8") == Batch(Deterministic(8))
    assert parse_arrivals("diurnal:amplitude=0.5,period=86400") == Diurnal(0.5, 86400)
    assert parse_prediction("exact") == ExactPrediction()
    assert parse_prediction("lognormal:sigma=0.5") == LogNormalError(0.5)
    assert parse_prediction("class-mean") == ClassMean()
    for arrivals in (Poisson(), Renewal(Gamma(0.5, 1)), Batch(4), Batch(Deterministic(8))):
        assert parse_arrivals(arrivals.spec) == arrivals
    assert parse_arrivals(Diurnal(0.5, 7).spec) == Diurnal(0.5, 7)
    for prediction in (ExactPrediction(), LogNormalError(0.5), ClassMean()):
        assert parse_prediction(prediction.spec) == prediction


def test_description():
    described = WORKLOADS["three classes"].to_dict()
    assert described["classes"][0] == {
        "name": "chat", "share": 0.6, "weight": 4.0, "size": "exp:mean=1",
    }  # fmt: skip
    assert described["load"] == 0.8
    assert described["arrivals"] == "poisson"
    assert described["prediction"] == "lognormal:sigma=1"
    assert described["cost"] == "one"
    given = Workload.from_frame(FRAME, prediction="exact").to_dict()
    assert (given["prediction"], given["cost"]) == ("exact", "as given")
    assert repr(WORKLOADS["exponential"]) == (
        "<Workload all exp:mean=1; load=0.8, arrival_rate=None>"
    )


TOML = """
load = 0.7
prediction = "class-mean"

[[class]]
name = "chat"
share = 0.75
weight = 4
size = "exp:1"

[[class]]
name = "batch"
share = 0.25
size = "lognormal:mean=10,sigma=1"
"""


def test_classes_from_toml(tmp_path):
    path = tmp_path / "classes.toml"
    path.write_text(TOML)
    workload = Workload.from_toml(path)
    assert workload.names == ("chat", "batch")
    assert workload.load == 0.7
    assert workload.prediction == ClassMean()
    assert [each.weight for each in workload.classes] == [4.0, 1.0]
    assert Workload.from_toml(path, load=0.5).load == 0.5
    by_rate = Workload.from_toml(path, arrival_rate=2.0)
    assert by_rate.load is None
    assert by_rate.rate(1) == 2.0


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("share = 0.75", "share = 0.5", "share=0.75: the shares of the classes must sum to 1"),
        ("share = 0.75", "share = 0", "class chat: share=0: must be above 0 and at most 1"),
        ("share = 0.75", "", "class chat: needs share"),
        ('name = "chat"', "", "class number 1: needs name"),
        ('name = "chat"', 'name = "batch"', "name='batch': is given to two classes"),
        ("weight = 4", "weight = -4", "class chat: weight=-4: must be a finite number, 0 or more"),
        ("weight = 4", "wait = 4", ("class chat: wait is unknown; known are "
         "name, share, weight, size")),
        ('"exp:1"', '"exp:0"', "class chat: mean=0: must be a finite number above 0"),
        ("load = 0.7", "speed = 1", ("speed: unknown; known are [[class]], load, arrival_rate, "
         "arrivals, prediction, cost")),
        ("load = 0.7", "load = -1", "load=-1: must be a finite number above 0"),
    ],
)  # fmt: skip
def test_bad_toml(tmp_path, old, new, message):
    path = tmp_path / "classes.toml"
    path.write_text(TOML.replace(old, new))
    with refuses(f"file={path}: {message}"):
        Workload.from_toml(path)


def test_toml_that_is_none(tmp_path):
    path = tmp_path / "classes.toml"
    with refuses(f"file={path}: cannot be read (No such file or directory)"):
        Workload.from_toml(path)
    path.write_text("load = 0.5\n")
    with refuses(f"file={path}: class: needs one [[class]] or more"):
        Workload.from_toml(path)
    path.write_text("[[class]\n")
    with pytest.raises(ValueError, match="is not TOML"):
        Workload.from_toml(path)


BAD = [
    (lambda: Workload(), "size=None, classes=None: give exactly one of the two"),
    (lambda: Workload("exp:1", load=0.5, arrival_rate=1), ("load=0.5, arrival_rate=1: give one of "
     "the two")),
    (lambda: Workload("exp:1", load=0), "load=0: must be a finite number above 0"),
    (lambda: Workload("exp:1", load=math.nan), "load=nan: must be a finite number above 0"),
    (lambda: Workload("exp:1", arrival_rate=-1), ("arrival_rate=-1: must be a finite number "
     "above 0")),
    (lambda: Workload(3.0), "size=3.0: must be a Distribution or a text such as exp:1"),
    (lambda: Workload(classes=[]), "classes=[]: needs at least one class"),
    (lambda: Workload(classes=["chat"]), "classes='chat': each must be a JobClass"),
    (lambda: Workload("exp:1", arrivals="uniform"), ("arrivals='uniform': unknown; known are "
     "poisson, renewal:LAW, batch:MEAN, batch:LAW, diurnal:amplitude=A,period=P")),
    (lambda: Workload("exp:1", arrivals=3), ("arrivals=3: must be an Arrivals or one of poisson, "
     "renewal:LAW, batch:MEAN, batch:LAW, diurnal:amplitude=A,period=P")),
    (lambda: Workload("exp:1", prediction="oracle"), ("prediction='oracle': unknown; known are "
     "exact, lognormal:sigma=S, class-mean")),
    (lambda: Workload("exp:1", prediction=3), ("prediction=3: must be a Prediction or the text of "
     "one")),
    (lambda: Workload("exp:1", cost="euro"), ("cost='euro': must be one of one, size, prediction, "
     "or a function of the jobs")),
    (lambda: Workload("exp:1", load=0.5).table(0), "jobs=0: must be a whole number, 1 or more"),
    (lambda: Workload("exp:1", load=0.5).table(1.5), ("jobs=1.5: must be a whole number, 1 or "
     "more")),
    (lambda: Workload("exp:1", load=0.5).table(1, servers=0), ("servers=0: must be a whole number, "
     "1 or more")),
    (lambda: Workload("exp:1", load=0.5).table(1, seed=-1), ("seed=-1: must be a whole number, "
     "0 or more, or a SeedSequence")),
    (lambda: LogNormalError(0), "sigma=0: must be a finite number above 0"),
    (lambda: parse_prediction("lognormal"), "prediction='lognormal': needs sigma"),
    (lambda: parse_prediction("lognormal:s=1"), ("prediction='lognormal:s=1': takes sigma, once "
     "each")),
    (lambda: Batch(0.5), "batch size=0.5: a mean must be 1 or more"),
    (lambda: Batch("det:1.5"), ("batch size=det:value=1.5: must be the mean of a geometric law, or "
     "a law of whole numbers (det or empirical)")),
    (lambda: Batch("exp:3"), ("batch size=exp:mean=3: must be the mean of a geometric law, or a "
     "law of whole numbers (det or empirical)")),
    (lambda: Renewal(3), "law=3: must be a Distribution or a text such as exp:1"),
    (lambda: Diurnal(1.0, 5), "amplitude=1: must be 0 or more and below 1"),
    (lambda: Diurnal(0.5, 0), "period=0: must be a finite number above 0"),
    (lambda: TraceArrivals([1.0]), "times=1: needs two or more, and not all the same"),
    (lambda: TraceArrivals([1.0, 1.0]), "times=2: needs two or more, and not all the same"),
    (lambda: TraceArrivals([1.0, 0.5]), "times=0.5 in row 1: must not be before the row above it"),
    (lambda: JobClass("", 1, "exp:1"), "name='': must be a word"),
    (lambda: JobClass("a", 1.5, "exp:1"), "share=1.5: must be above 0 and at most 1"),
]  # fmt: skip


@pytest.mark.parametrize(("act", "message"), BAD, ids=[message for _, message in BAD])
def test_bad_parameters(act, message):
    with refuses(message):
        act()


@settings(max_examples=30)
@given(st.integers(1, 400), st.integers(0, 2**32))
def test_any_number_of_jobs(jobs, seed):
    workload = WORKLOADS["three classes"]
    same(workload.table(jobs, seed), workload.table(400, seed).head(jobs))
