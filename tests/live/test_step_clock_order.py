"""vLLM's real scheduler, asking a policy, admits in the policy's order."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whonext.engines.reference import run_reference
from whonext.policies import Job, Policy, parse_policy
from whonext.serving.audit import admissions_out_of_order, bookkeeping_faults
from whonext.serving.step_clock import EngineShape, StepClock, StepRequest, linear_step_time
from whonext.workload import JobTable

CLASSES = [{"name": "gold", "weight": 4.0}, {"name": "tin", "weight": 1.0}]
ROOMY = EngineShape(max_num_seqs=64, max_num_batched_tokens=4096, num_blocks=2000)

#: Ranks written out by hand, not asked of the policy.
RANKS = {
    "fcfs": lambda r: r.arrival,
    "lcfs": lambda r: -r.arrival,
    "sjf": lambda r: r.facts["size"],
    "sjf:by=prediction": lambda r: r.facts["prediction"],
    "ljf": lambda r: -r.facts["size"],
    "wspt": lambda r: r.facts["size"] / {"gold": 4.0, "tin": 1.0}[r.facts["class"]],
    "priority": lambda r: ("gold", "tin").index(r.facts["class"]),
}


def shape(slots: int, **changes: Any) -> EngineShape:
    return EngineShape(**{**ROOMY.__dict__, "max_num_seqs": slots, **changes})


@st.composite
def tables(draw: st.DrawFn, most: int = 14) -> list[StepRequest]:
    """Small tables of requests, of small whole numbers, so full of ties."""
    row = st.tuples(
        st.integers(0, 12),
        st.integers(1, 6),
        st.integers(1, 9),
        st.integers(1, 5),
        st.sampled_from(("gold", "tin")),
    )
    rows = draw(st.lists(row, min_size=1, max_size=most))
    rows.sort(key=lambda values: values[0])
    return [
        StepRequest(
            f"r{number}",
            arrival,
            prompt,
            output,
            {"size": output, "prediction": prediction, "class": name},
        )
        for number, (arrival, prompt, output, prediction, name) in enumerate(rows)
    ]


def queue_by_hand(requests: list[StepRequest], slots: int, rank: Any) -> dict[str, float]:
    """Start times in a queue whose slots each serve one request in as many steps as its output."""
    coming = list(requests)
    number = {request.id: place for place, request in enumerate(requests)}
    waiting: list[StepRequest] = []
    running: list[float] = []
    started: dict[str, float] = {}
    now = 0.0
    while coming or waiting:
        while coming and coming[0].arrival <= now:
            waiting.append(coming.pop(0))
        while running and running[0] <= now:
            heapq.heappop(running)
        waiting.sort(key=lambda r: (rank(r), r.arrival, number[r.id]))
        while waiting and len(running) < slots:
            first = waiting.pop(0)
            started[first.id] = now
            heapq.heappush(running, now + first.output)
        now = min([*running, *([coming[0].arrival] if coming else [])], default=now)
    return started


@pytest.mark.parametrize("policy", sorted(RANKS))
@settings(max_examples=25, deadline=None)
@given(requests=tables(), slots=st.integers(1, 3))
def test_starts_equal_a_queue_worked_out_by_hand(
    policy: str, requests: list[StepRequest], slots: int
) -> None:
    clock = StepClock(policy, shape(slots), base="sync", classes=CLASSES)
    run = clock.run(requests)
    assert run.started == queue_by_hand(requests, slots, RANKS[policy])


@pytest.mark.parametrize("policy", sorted(RANKS))
@settings(max_examples=15, deadline=None)
@given(requests=tables(), slots=st.integers(1, 3))
def test_vllm_starts_requests_when_the_reference_engine_starts_jobs(
    policy: str, requests: list[StepRequest], slots: int
) -> None:
    """One rule, two worlds: with room to spare, a slot of vLLM is a server of the queue."""
    table = JobTable.from_arrays(
        [r.arrival for r in requests],
        [r.output for r in requests],
        kind=[("gold", "tin").index(r.facts["class"]) for r in requests],
        weight=[{"gold": 4.0, "tin": 1.0}[r.facts["class"]] for r in requests],
        prediction=[r.facts["prediction"] for r in requests],
    )
    _, events = run_reference(parse_policy(policy), table, slots)
    by_reference = {requests[job].id: time for time, event, job, *_ in events if event == "start"}
    run = StepClock(policy, shape(slots), base="sync", classes=CLASSES).run(requests)
    assert run.started == by_reference


@pytest.mark.parametrize("base", ["async", "sync"])
@pytest.mark.parametrize("policy", sorted(RANKS))
@settings(max_examples=15, deadline=None)
@given(requests=tables(most=30), slots=st.integers(1, 4))
def test_every_admission_is_the_lowest_rank(
    policy: str, base: str, requests: list[StepRequest], slots: int
) -> None:
    few_blocks = shape(slots, num_blocks=4, block_size=16, max_num_batched_tokens=16)
    run = StepClock(policy, few_blocks, base=base, classes=CLASSES).run(requests)
    ranks = {request.id: RANKS[policy](request) for request in requests}
    assert admissions_out_of_order(run.events, ranks) == []
    assert bookkeeping_faults(run.events) == []
    assert len(run.finished) == len(requests)


@pytest.mark.parametrize("base", ["async", "sync"])
@settings(max_examples=40, deadline=None)
@given(
    requests=tables(most=30),
    slots=st.integers(1, 6),
    blocks=st.integers(5, 12),
    budget=st.sampled_from((8, 16, 64)),
)
def test_fcfs_is_stock_vllm_step_by_step(
    base: str, requests: list[StepRequest], slots: int, blocks: int, budget: int
) -> None:
    tight = shape(slots, num_blocks=blocks, block_size=4, max_num_batched_tokens=budget)
    stock = StepClock(None, tight, base=base).run(requests)
    ours = StepClock("fcfs", tight, base=base, classes=CLASSES).run(requests)
    assert ours.steps == stock.steps
    assert ours.admitted == stock.admitted
    assert ours.finished == stock.finished
    assert ours.preemptions == stock.preemptions


def test_fcfs_is_stock_vllm_with_many_preemptions() -> None:
    requests = [StepRequest(f"r{i}", i // 3, 5 + i % 7, 20 + i % 11) for i in range(60)]
    tight = shape(12, num_blocks=40, block_size=4, max_num_batched_tokens=32)
    stock = StepClock(None, tight).run(requests)
    ours = StepClock("fcfs", tight).run(requests)
    assert sum(stock.preemptions.values()) > 20
    assert ours.steps == stock.steps
    assert ours.preemptions == stock.preemptions


def test_asynchronous_scheduling_fills_a_freed_slot_one_step_later() -> None:
    requests = [StepRequest("long", 0, 4, 20), StepRequest("a", 0, 4, 5), StepRequest("b", 0, 4, 5)]
    sync = StepClock("fcfs", shape(2), base="sync").run(requests)
    lagging = StepClock("fcfs", shape(2), base="async").run(requests)
    assert sync.finished["a"] == lagging.finished["a"] == 5
    assert sync.first_token["b"] == 6
    assert lagging.first_token["b"] == 7


@dataclass(eq=False, repr=False)
class Patience(Policy):
    """Shortest first, but a request that has waited longer than ``limit`` goes before all."""

    limit: float = 6.0

    def __post_init__(self) -> None:
        self.needs = frozenset({"size"})

    def rank(self, job: Job, now: Any) -> Any:
        return -1.0 if now - job.arrival > self.limit else job.size


def test_a_rank_that_moves_with_time_is_asked_for_anew() -> None:
    requests = [StepRequest("long", 0, 1, 9, {"size": 9}), StepRequest("x", 0, 1, 4, {"size": 4})]
    requests += [StepRequest(f"s{i}", i, 1, 3, {"size": 3}) for i in range(1, 8)]
    run = StepClock(Patience(), shape(1), base="sync").run(requests)
    # x (0-4), s1 (4-7); by 7 "long" has waited 7 and overtakes the short ones.
    assert run.admitted[:3] == ["x", "s1", "long"]


def test_durations_follow_the_step_time_model() -> None:
    model = linear_step_time(base=2.0, per_request=0.5, per_prefill_token=0.25)
    run = StepClock("fcfs", shape(2), base="sync", step_time=model).run(
        [StepRequest("a", 0, 8, 2), StepRequest("b", 100, 1, 1)]
    )
    assert run.first_token["a"] == 2.0 + 0.5 + 8 * 0.25
    assert run.finished["a"] == 4.5 + 2.5
    assert run.started["b"] == 100


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"prompt": 0}, "prompt=0"),
        ({"output": 0}, "output=0"),
    ],
)
def test_bad_requests_are_refused(wrong: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        StepRequest("a", 0, **{"prompt": 1, "output": 1, **wrong})


def test_a_request_that_cannot_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="do not fit into 48 tokens"):
        StepClock("fcfs", EngineShape(num_blocks=4)).run([StepRequest("a", 0, 40, 40)])
    with pytest.raises(ValueError, match="same id"):
        StepClock("fcfs").run([StepRequest("a", 0, 1, 1), StepRequest("a", 0, 1, 1)])
    with pytest.raises(ValueError, match="base='turbo'"):
        StepClock("fcfs", base="turbo")
    with pytest.raises(ValueError, match="must take time"):
        linear_step_time(0, 0, 1)
