"""Nothing is lost, nobody is charged twice, and what is hidden stays hidden."""

from __future__ import annotations

import collections
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whonext.policies import Fcfs, Job, Policy, Sjf, Srpt
from whonext.serving.audit import bookkeeping_faults
from whonext.serving.step_clock import EngineShape, StepClock, StepRequest

CLASSES = [{"name": "gold", "weight": 4.0}, {"name": "tin", "weight": 1.0}]


class Counting:
    """Counts what the queue tells a policy; mixed into a rule."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: collections.Counter[tuple[str, Any]] = collections.Counter()
        self.amount: collections.Counter[Any] = collections.Counter()

    def on_arrival(self, job: Job, now: Any) -> None:
        self.seen["arrival", job.id] += 1

    def on_dispatch(self, job: Job, waiting: Any, now: Any) -> None:
        assert any(other is job for other in waiting)
        assert not job.started
        self.seen["dispatch", job.id] += 1

    def on_service(self, job: Job, amount: Any, now: Any) -> None:
        self.amount[job.id] += amount

    def on_finish(self, job: Job, now: Any) -> None:
        self.seen["finish", job.id] += 1

    def count(self, event: str) -> dict[int, int]:
        return {job: n for (name, job), n in self.seen.items() if name == event}


class CountingFcfs(Counting, Fcfs):
    pass


class CountingSjf(Counting, Sjf):
    def __init__(self) -> None:
        Sjf.__init__(self)
        Counting.__init__(self)
        self.needs = frozenset({"size"})
        self.by = "size"


class CountingSrpt(Counting, Srpt):
    def __init__(self) -> None:
        Srpt.__init__(self)
        Counting.__init__(self)
        self.needs = frozenset({"size"})
        self.by = "size"


@dataclass(eq=False, repr=False)
class Deficit(Policy):
    """A toy deficit round robin: a class may start jobs while its credit lasts."""

    quantum: float = 1.0
    credit: dict[int, float] = field(default_factory=lambda: {0: 0.0, 1: 0.0})

    def _plan(self, waiting: Any) -> tuple[Job, dict[int, float]]:
        heads: dict[int, Job] = {}
        for job in waiting:
            heads.setdefault(job.kind, job)
        credit = {kind: self.credit[kind] if kind in heads else 0.0 for kind in self.credit}
        while True:
            for kind in sorted(heads):
                if credit[kind] >= heads[kind].cost:
                    credit[kind] -= heads[kind].cost
                    return heads[kind], credit
            for kind, head in heads.items():
                credit[kind] += self.quantum * head.weight

    def choose(self, waiting: Any, now: Any) -> Job:
        return self._plan(waiting)[0]

    def on_dispatch(self, job: Job, waiting: Any, now: Any) -> None:
        planned, self.credit = self._plan(waiting)
        assert planned is job


class Fickle(Policy):
    """A choice that is not pure: another answer each time it is asked."""

    asked = 0

    def choose(self, waiting: Any, now: Any) -> Job:
        type(self).asked += 1
        return waiting[self.asked % len(waiting)]


@st.composite
def rough_days(draw: st.DrawFn) -> tuple[list[StepRequest], EngineShape]:
    """Requests that are aborted or held up at odd moments, and an engine short of blocks."""
    row = st.tuples(
        st.integers(0, 20),
        st.integers(1, 12),
        st.integers(1, 20),
        st.none() | st.integers(0, 40),
        st.none() | st.integers(0, 30),
        st.sampled_from(("gold", "tin")),
    )
    rows = sorted(draw(st.lists(row, min_size=1, max_size=30)), key=lambda values: values[0])
    requests = [
        StepRequest(
            f"r{number}",
            arrival,
            prompt,
            output,
            {"size": prompt + output, "class": name},
            abort_at=None if give_up is None else arrival + give_up,
            ready_at=None if held is None else arrival + held,
        )
        for number, (arrival, prompt, output, give_up, held, name) in enumerate(rows)
    ]
    shape = EngineShape(
        max_num_seqs=draw(st.integers(1, 8)),
        max_num_batched_tokens=draw(st.sampled_from((8, 32))),
        num_blocks=draw(st.integers(10, 24)),
        block_size=4,
    )
    return requests, shape


RULES = {
    "fcfs": CountingFcfs,
    "sjf": CountingSjf,
    "srpt": CountingSrpt,
    "deficit": Deficit,
    "fickle": Fickle,
}


@pytest.mark.parametrize("base", ["async", "sync"])
@pytest.mark.parametrize("rule", sorted(RULES))
@settings(max_examples=25, deadline=None)
@given(day=rough_days())
def test_every_request_leaves_once_and_every_block_comes_back(
    rule: str, base: str, day: tuple[list[StepRequest], EngineShape]
) -> None:
    requests, shape = day
    policy = RULES[rule]()
    run = StepClock(policy, shape, base=base, classes=CLASSES).run(requests)
    assert run.finished.keys() | run.aborted.keys() == {request.id for request in requests}
    assert not run.finished.keys() & run.aborted.keys()
    assert run.blocks_left == 0
    assert bookkeeping_faults(run.events) == []
    if isinstance(policy, Counting):
        everyone = dict.fromkeys(range(len(requests)), 1)
        started = {event[2] for event in run.events if event[1] == "start"}
        ids = {event[2]: n for n, event in enumerate(e for e in run.events if e[1] == "arrive")}
        assert policy.count("arrival") == everyone
        assert policy.count("finish") == everyone
        assert policy.count("dispatch") == {ids[name]: 1 for name in started}


def test_preempted_requests_are_not_charged_again() -> None:
    policy = CountingFcfs()
    requests = [StepRequest(f"r{i}", 0, 6, 30) for i in range(12)]
    shape = EngineShape(max_num_seqs=8, max_num_batched_tokens=64, num_blocks=24, block_size=4)
    run = StepClock(policy, shape).run(requests)
    assert sum(run.preemptions.values()) > 5
    assert policy.count("dispatch") == dict.fromkeys(range(12), 1)
    events = [event[1] for event in run.events]
    assert events.count("preempt") == events.count("resume") == sum(run.preemptions.values())


def test_a_request_passed_over_is_not_charged_and_keeps_its_place() -> None:
    policy = CountingSjf()
    requests = [
        StepRequest("held", 0, 2, 2, {"size": 1}, ready_at=10),
        *(StepRequest(f"r{i}", 0, 2, 4, {"size": 5}) for i in range(6)),
    ]
    run = StepClock(policy, EngineShape(max_num_seqs=1), base="sync").run(requests)
    assert run.admitted[:4] == ["r0", "r1", "r2", "held"]  # at 12, the first slot after 10
    assert set(policy.count("dispatch").values()) == {1}


def test_service_is_told_in_tokens() -> None:
    policy = CountingFcfs()
    StepClock(policy, EngineShape(max_num_batched_tokens=8)).run([StepRequest("a", 0, 20, 5)])
    assert policy.amount == {0: 20 + 4}  # the last token is made but never computed on


def test_started_jobs_come_back_before_new_ones_unless_the_rule_preempts() -> None:
    requests = [
        StepRequest("long", 0, 6, 40, {"size": 46}),
        StepRequest("other", 0, 6, 40, {"size": 45}),
        *(StepRequest(f"short{i}", 1, 6, 4, {"size": 10}) for i in range(8)),
    ]
    shape = EngineShape(max_num_seqs=2, max_num_batched_tokens=64, num_blocks=16, block_size=4)
    for rule, first in ((Sjf(), "resume"), (Srpt(), "start")):
        run = StepClock(rule, shape, base="sync").run(requests)
        events = [(event, job) for _, event, job, *_ in run.events]
        preempted = next(place for place, (event, _) in enumerate(events) if event == "preempt")
        then = next(e for e, _ in events[preempted:] if e in ("start", "resume"))
        assert then == first, rule


class Peeker(Policy):
    """Reads the size without saying so."""

    def key(self, jobs: Any) -> Any:
        return jobs.size


class LatePeeker(Policy):
    """Reads the prediction without saying so, and only in choose."""

    def choose(self, waiting: Any, now: Any) -> Job:
        return min(waiting, key=lambda job: job.prediction)


@pytest.mark.parametrize(("rule", "column"), [(Peeker, "size"), (LatePeeker, "prediction")])
def test_hidden_columns_stay_hidden(rule: type[Policy], column: str) -> None:
    with pytest.raises(ValueError, match=f"reads the {column} of a job but does not declare it"):
        StepClock(rule()).run([StepRequest("a", 0, 1, 1)])


def test_a_choice_is_kept_until_the_queue_changes() -> None:
    Fickle.asked = 0
    requests = [StepRequest(f"r{i}", 0, 2, 30) for i in range(5)]
    run = StepClock(Fickle(), EngineShape(max_num_seqs=1)).run(requests)
    assert len(run.finished) == 5
    # vLLM looks at the head once a step at most while the slot is taken, and the answer is kept
    # from the look to the pop; it is asked far more often than it is obeyed.
    assert Fickle.asked >= 5


def test_a_toy_deficit_rule_shares_starts_by_weight() -> None:
    requests = [
        StepRequest(f"{name}{i}", 0, 2, 5, {"class": name})
        for i in range(40)
        for name in ("gold", "tin")
    ]
    run = StepClock(Deficit(), EngineShape(max_num_seqs=2), classes=CLASSES).run(requests)
    first = [name[:3] for name in run.admitted[:40]]
    assert first.count("gol") == 32  # 4 to 1
    assert len(run.finished) == 80


def test_an_aborted_waiting_request_just_leaves() -> None:
    policy = CountingSjf()
    requests = [
        StepRequest("a", 0, 2, 10, {"size": 10}),
        StepRequest("gone", 0, 2, 3, {"size": 11}, abort_at=5),
        StepRequest("b", 0, 2, 3, {"size": 12}),
    ]
    run = StepClock(policy, EngineShape(max_num_seqs=1), base="sync").run(requests)
    assert run.admitted == ["a", "b"]
    assert run.aborted == {"gone": 5}
    assert policy.count("dispatch") == {0: 1, 2: 1}
    assert policy.count("finish") == {0: 1, 1: 1, 2: 1}
