"""The queue inside vLLM's scheduler, in situations that a run does not bring about by itself."""

from __future__ import annotations

import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from vllm.v1.request import RequestStatus

from whonext.policies import Job, Policy
from whonext.serving import scheduler
from whonext.serving.facts import ServingConfig
from whonext.serving.scheduler import EVENT_COLUMNS, STEP_COLUMNS, PolicyQueue, WhoNextScheduler
from whonext.serving.step_clock import EngineShape, StepClock, StepRequest


def fake(name: str, size: float = 1.0, **facts: Any) -> Any:
    """As much of a request as the queue looks at."""
    return SimpleNamespace(
        request_id=name,
        status=RequestStatus.WAITING,
        sampling_params=SimpleNamespace(extra_args={"size": size, **facts}),
        max_tokens=10,
        num_prompt_tokens=5,
    )


def queue_of(policy: str | Policy, *requests: Any, **settings: Any) -> PolicyQueue:
    queue = PolicyQueue(ServingConfig(policy=policy, **settings), servers=4, clock=lambda: 0.0)
    for request in requests:
        queue.add_request(request)
    return queue


class Charges(Policy):
    """Shortest first, keeping a list of whom it charged."""

    needs = frozenset({"size"})

    def __init__(self) -> None:
        self.charged: list[int] = []

    def key(self, jobs: Any) -> Any:
        return jobs.size

    def on_dispatch(self, job: Job, waiting: Any, now: Any) -> None:
        self.charged.append(job.id)


def test_a_pop_is_charged_when_it_turns_out_to_be_an_admission() -> None:
    policy = Charges()
    first, second = fake("first", 1), fake("second", 2)
    queue = queue_of(policy, second, first)
    assert queue.peek_request() is first
    assert queue.pop_request() is first
    assert policy.charged == []  # not known yet
    first.status = RequestStatus.RUNNING
    assert len(queue) == 1
    assert policy.charged == [1]


def test_a_pop_that_comes_back_is_not_charged() -> None:
    policy = Charges()
    first, second = fake("first", 1), fake("second", 2)
    queue = queue_of(policy, first, second)
    queue.pop_request()
    queue.pop_request()
    assert not queue
    queue.prepend_requests([first, second])  # vLLM gives them in reverse; it must not matter
    assert policy.charged == []
    assert [request.request_id for request in queue] == ["first", "second"]


def test_a_request_given_blocks_to_fill_is_charged_once() -> None:
    """With a KV connector a request is admitted, and fills its blocks, before it runs."""
    policy = Charges()
    request = fake("a")
    queue = queue_of(policy, request)
    queue.peek_request()
    request.status = RequestStatus.WAITING_FOR_REMOTE_KVS
    queue.pop_request()
    queue.settle()
    assert policy.charged == [0]
    request.status = RequestStatus.RUNNING  # by way of kv_holding_waiting, which asks nobody
    queue.started(["a"])
    assert policy.charged == [0]


def test_a_request_that_came_in_by_another_queue_is_charged_too() -> None:
    policy = Charges()
    queue = queue_of(policy)
    queue.arrive(fake("a"))
    queue.started(["a", "unknown"])
    assert policy.charged == [0]


def test_removal_from_the_middle_and_from_outside() -> None:
    a, b, c = (fake(name, size) for name, size in (("a", 3), ("b", 1), ("c", 2)))
    for policy in ("sjf", Charges()):
        queue = queue_of(policy, a, b, c)
        queue.remove_request(b)
        queue.remove_requests([fake("stranger"), b])
        assert [request.request_id for request in queue] in (["c", "a"], ["a", "c"])
        assert queue.pop_request() is c
        assert queue.pop_request() is a
        with pytest.raises(IndexError, match="empty"):
            queue.peek_request()


def test_places_of_those_who_gave_up_are_cleared_away() -> None:
    queue = queue_of("sjf", fake("stays", 1))
    for number in range(500):
        gone = fake(f"r{number}", 100 + number)
        queue.add_request(gone)
        queue.remove_request(gone)
    assert len(queue._heap) < 100
    assert queue.pop_request().request_id == "stays"


def test_a_rank_that_moves_while_waiting_moves_the_place() -> None:
    """A step in flight at a preemption still serves: SRPT's remainder shrinks."""
    a, b = fake("a", 10), fake("b", 9)
    queue = queue_of("srpt", a, b)
    assert queue.peek_request() is b
    queue.served("a", 3)
    assert queue.peek_request() is a
    assert len(queue) == 2


def test_bad_facts_are_logged_and_do_no_harm(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    logger = logging.Logger("apart from vLLM's, which it sets up anew as it likes")
    logger.addHandler(caplog.handler)
    monkeypatch.setattr(scheduler, "logger", logger)
    requests = [
        StepRequest("bad", 0, 2, 9, {"size": float("nan"), "class": "nobody", "weight": -1}),
        StepRequest("good", 0, 2, 4, {"size": 4}),
    ]
    run = StepClock("sjf", EngineShape(max_num_seqs=1)).run(requests)
    assert run.admitted == ["good", "bad"]  # max_tokens stands in: 9
    said = [record.getMessage() for record in caplog.records]
    assert sum("request bad: " in line for line in said) == 3
    assert any("size=nan: a finite number above 0" in line for line in said)


class NoNumber(Policy):
    def key(self, jobs: Any) -> Any:
        return float("nan") if jobs.weight == 2 else 0.0


def test_a_key_that_is_no_number_goes_last() -> None:
    queue = queue_of(NoNumber(), fake("odd", weight=2), fake("even", weight=1))
    assert [request.request_id for request in queue] == ["even", "odd"]


class Stranger(Policy):
    def choose(self, waiting: Any, now: Any) -> Job:
        return Job(id=99, arrival=0, size=0) if len(waiting) == 3 else waiting[0]


def test_a_choice_of_someone_who_is_not_there() -> None:
    queue = queue_of(Stranger(), fake("a"), fake("b"), fake("c"))
    with pytest.raises(ValueError, match="which is not waiting"):
        queue.peek_request()


def test_the_rule_changes_by_file_and_only_when_the_system_is_empty(tmp_path: Path) -> None:
    file = tmp_path / "policy"
    file.write_text("fcfs\n")
    queue = queue_of("fcfs", policy_file=str(file))
    queue.add_request(fake("a", 9))
    file.write_text("sjf\n")
    queue.add_request(fake("b", 1))
    assert queue.policy.spec == "fcfs"
    for name in ("a", "b"):
        request = queue.pop_request()
        assert request.request_id == name
        request.status = RequestStatus.FINISHED_STOPPED
        queue.leave(request)
    queue.add_request(fake("c", 9))
    queue.add_request(fake("d", 1))
    assert queue.policy.spec == "sjf"
    assert queue.peek_request().request_id == "d"


def test_a_bad_rule_in_the_file_leaves_the_old_one(tmp_path: Path) -> None:
    file = tmp_path / "policy"
    file.write_text("ljf\n")
    queue = queue_of("fcfs", policy_file=str(file))
    file.write_text("shortest\n")
    queue.add_request(fake("a"))
    assert queue.policy.spec == "ljf"


def test_traces_are_written_in_the_shared_schema(tmp_path: Path) -> None:
    events, steps = tmp_path / "events.csv", tmp_path / "steps.csv"
    clock = StepClock("fcfs", EngineShape(max_num_seqs=2))
    config = {"policy": "fcfs", "events": str(events), "steps": str(steps)}
    clock.config = ServingConfig.from_mapping(config)
    run = clock.run([StepRequest('odd,"name', 0, 3, 4), StepRequest("b", 1, 3, 4)])
    table = pd.read_csv(events)
    assert tuple(table.columns) == EVENT_COLUMNS
    assert set(table["event"]) == {"arrive", "start", "finish"}
    assert set(table["job"]) == {'odd,"name', "b"}
    assert table["in_system"].iloc[-1] == 0
    assert list(table["time"]) == [event[0] for event in run.events]
    assert list(run.event_frame().columns) == list(EVENT_COLUMNS)
    table = pd.read_csv(steps)
    assert tuple(table.columns) == STEP_COLUMNS
    assert len(table) == len(run.steps)
    assert table["prefill_tokens"].sum() == 6
    assert table["tokens"].sum() == sum(sum(step.tokens.values()) for step in run.steps)


def test_vllms_own_priorities_are_refused() -> None:
    from whonext.serving import step_clock

    vllm_config, kv_cache_config = step_clock._engine_config(EngineShape(), "async")
    vllm_config.scheduler_config.policy = "priority"
    with pytest.raises(ValueError, match="scheduling_policy='priority': leave it at 'fcfs'"):
        WhoNextScheduler(
            vllm_config=vllm_config,
            kv_cache_config=kv_cache_config,
            structured_output_manager=None,
            block_size=16,
        )
