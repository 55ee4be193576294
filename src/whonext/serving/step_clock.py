"""vLLM's real scheduler, without a model, on a virtual clock.

The scheduler plans a step; nobody computes it; after the step's (virtual) duration it is told that
every request whose prompt is done produced one more token. Admission, chunked prefill, KV blocks,
preemption, aborts and the one-step lag of asynchronous scheduling are vLLM's own code. What is
made up: the tokens, and how long a step takes. So questions about *order* have exact answers, in
milliseconds a run::

    clock = StepClock("sjf", EngineShape(max_num_seqs=1))
    run = clock.run([StepRequest("a", 0, prompt=8, output=9, facts={"size": 9}), ...])
    run.admitted  # ['a', ...]

and questions about *time* are answered as well as the step-time model says.
"""

from __future__ import annotations

import copy
import functools
import tempfile
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from whonext.policies import Policy
from whonext.serving import require_vllm
from whonext.serving.facts import ServingConfig

__all__ = ["EngineShape", "Step", "StepClock", "StepRequest", "StepRun", "linear_step_time"]

#: Steps in a row in which nothing ran and nothing was on its way before a run is called stuck.
_STUCK_AFTER = 100


@dataclass(frozen=True)
class EngineShape:
    """The limits that a scheduler works within.

    Parameters
    ----------
    max_num_seqs
        Requests that may run at once.
    max_num_batched_tokens
        Tokens in one step.
    num_blocks
        KV blocks. One of them is vLLM's own and never given to a request.
    block_size
        Tokens to a block.
    max_model_len
        Longest prompt and output together.
    """

    max_num_seqs: int = 8
    max_num_batched_tokens: int = 256
    num_blocks: int = 200
    block_size: int = 16
    max_model_len: int = 512


@dataclass(frozen=True)
class StepRequest:
    """A request to the step clock.

    Parameters
    ----------
    id
        Its name.
    arrival
        When it comes, in the clock's unit.
    prompt, output
        Tokens, at least 1 each. The output has exactly this length.
    facts
        What the scheduler is told of it: see :mod:`whonext.serving.facts`.
    abort_at
        When its client gives up, if it does.
    ready_at
        When it may run, if not at once: until then vLLM passes it over, as it does while the
        grammar for a structured answer is compiled.
    """

    id: str
    arrival: float
    prompt: int
    output: int
    facts: Mapping[str, Any] = field(default_factory=dict)
    abort_at: float | None = None
    ready_at: float | None = None

    def __post_init__(self) -> None:
        for name in ("prompt", "output"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)!r}: at least one token")


@dataclass(frozen=True)
class Step:
    """One step: when it was planned, when its output came back, and who was in it.

    ``tokens`` maps request ids to tokens computed; ``running`` and ``waiting`` are counts, and
    ``blocks_used`` KV blocks, just after planning.
    """

    planned: float
    done: float
    tokens: dict[str, int]
    running: int
    waiting: int
    blocks_used: int


@dataclass
class StepRun:
    """What happened in a run of the step clock.

    Attributes
    ----------
    admitted
        Request ids in the order of first admission.
    started, first_token, finished, aborted
        Times by request id. A request is in ``finished`` or ``aborted``, never in both.
    preemptions
        How often each request was preempted; those that never were are left out.
    steps
        The steps that computed anything.
    events
        The event trace, rows of ``scheduler.EVENT_COLUMNS``; of a stock
        scheduler, which keeps none, empty.
    blocks_left
        KV blocks not returned at the end: 0, or blocks were lost.
    """

    admitted: list[str] = field(default_factory=list)
    started: dict[str, float] = field(default_factory=dict)
    first_token: dict[str, float] = field(default_factory=dict)
    finished: dict[str, float] = field(default_factory=dict)
    aborted: dict[str, float] = field(default_factory=dict)
    preemptions: dict[str, int] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    events: list[tuple[Any, ...]] = field(default_factory=list)
    blocks_left: int = 0

    def event_frame(self) -> Any:
        """The event trace as a DataFrame, in the schema of all engines."""
        import pandas as pd

        from whonext.serving.scheduler import EVENT_COLUMNS

        return pd.DataFrame(self.events, columns=list(EVENT_COLUMNS))


def linear_step_time(
    base: float, per_request: float, per_prefill_token: float
) -> Callable[[Mapping[str, int]], float]:
    """A model of how long a step takes: a constant, so much a request, so much a prompt token.

    Parameters
    ----------
    base, per_request, per_prefill_token
        In the clock's unit; not negative, and not all 0.

    Returns
    -------
    callable
        From the tokens computed for each request to a duration.
    """
    if min(base, per_request, per_prefill_token) < 0 or base + per_request <= 0:
        raise ValueError(
            f"base={base!r}, per_request={per_request!r}, per_prefill_token={per_prefill_token!r}: "
            "not negative, and a step must take time"
        )

    def duration(tokens: Mapping[str, int]) -> float:
        prefill = sum(amount for amount in tokens.values() if amount > 1)
        return base + per_request * len(tokens) + per_prefill_token * prefill

    return duration


def _unit_step_time(_tokens: Mapping[str, int]) -> float:
    return 1.0


class StepClock:
    """Runs requests through vLLM's scheduler on a virtual clock.

    Parameters
    ----------
    policy
        A rule or its name, for the queue that asks it; ``None`` for stock vLLM.
    shape
        The engine's limits.
    base
        ``"async"``, vLLM's default, which plans a step while the one before it is computed; or
        ``"sync"``.
    classes, cost
        As in :class:`whonext.serving.facts.ServingConfig`.
    step_time
        Duration of a step, from the tokens computed for each request. The default is 1 a step.

    Raises
    ------
    ValueError
        If a setting is bad.
    """

    def __init__(
        self,
        policy: str | Policy | None,
        shape: EngineShape | None = None,
        *,
        base: str = "async",
        classes: Sequence[Any] = (),
        cost: str = "one",
        step_time: Callable[[Mapping[str, int]], float] | None = None,
    ) -> None:
        if base not in ("async", "sync"):
            raise ValueError(f"base={base!r}: 'async' or 'sync'")
        self.shape = shape or EngineShape()
        self.base = base
        self.step_time = step_time or _unit_step_time
        self.config = (
            None if policy is None else ServingConfig(policy=policy, classes=classes, cost=cost)
        )

    def run(self, requests: Sequence[StepRequest]) -> StepRun:
        """Run the requests to the end.

        Raises
        ------
        ValueError
            If a request cannot fit, or two have one name.
        RuntimeError
            If the scheduler stops admitting anyone: a fault of its own, or of the policy.
        """
        self._check(requests)
        return _Run(self, requests).to_the_end()

    def scheduler(self) -> Any:
        """A new scheduler of this configuration, idle."""
        require_vllm()
        from vllm.v1.core.sched.async_scheduler import AsyncScheduler
        from vllm.v1.core.sched.scheduler import Scheduler
        from vllm.v1.structured_output import StructuredOutputManager

        from whonext.serving.scheduler import WhoNextScheduler, WhoNextSyncScheduler

        stock, asking = {
            "async": (AsyncScheduler, WhoNextScheduler),
            "sync": (Scheduler, WhoNextSyncScheduler),
        }[self.base]
        vllm_config, kv_cache_config = _engine_config(self.shape, self.base)
        if self.config is not None:
            vllm_config = copy.copy(vllm_config)
            vllm_config.additional_config = {"whonext": _settings(self.config)}
        return (stock if self.config is None else asking)(
            vllm_config=vllm_config,
            kv_cache_config=kv_cache_config,
            structured_output_manager=StructuredOutputManager(vllm_config),
            block_size=self.shape.block_size,
            log_stats=False,
        )

    def _check(self, requests: Sequence[StepRequest]) -> None:
        names = {request.id for request in requests}
        if len(names) < len(requests):
            raise ValueError("requests: two have the same id")
        room = min(self.shape.max_model_len, (self.shape.num_blocks - 1) * self.shape.block_size)
        for request in requests:
            if request.prompt + request.output > room:
                raise ValueError(
                    f"request {request.id!r}: prompt={request.prompt} and output={request.output} "
                    f"do not fit into {room} tokens"
                )


class _Run:
    """One run. The loop is that of vLLM's engine core, with a clock in the place of a device."""

    def __init__(self, clock: StepClock, requests: Sequence[StepRequest]) -> None:
        self.step_time = clock.step_time
        self.depth = 2 if clock.base == "async" else 1  # steps planned before one comes back
        self.scheduler = clock.scheduler()
        self.pool = self.scheduler.kv_cache_manager.block_pool
        self.blocks = self.pool.get_num_free_blocks()
        self.now = 0.0
        self.device_free = 0.0
        self.coming = deque(sorted(requests, key=lambda request: request.arrival))
        self.aborts = _timed(requests, "abort_at")
        self.ready = _timed(requests, "ready_at")
        self.flying: deque[tuple[Any, Any, float]] = deque()
        self.result = StepRun()
        if clock.config is not None:
            queue = self.scheduler.waiting
            queue.clock = lambda: self.now
            queue.on_event = self.result.events.append

    def to_the_end(self) -> StepRun:
        from vllm.v1.request import RequestStatus

        idle = 0
        while True:
            while self.coming and self.coming[0].arrival <= self.now:
                self.scheduler.add_request(_vllm_request(self.coming.popleft()))
            while self.ready and self.ready[0][0] <= self.now:
                self._make_ready(self.ready.popleft()[1], RequestStatus.WAITING)
            while self.aborts and self.aborts[0][0] <= self.now:
                self._abort(self.aborts.popleft()[1], RequestStatus.FINISHED_ABORTED)
            if self.scheduler.has_requests():
                computed = self._plan()
                busy = any(output.num_scheduled_tokens for output, _, _ in self.flying)
                idle = 0 if busy else idle + 1
                if idle > 2 and self._skip_ahead():
                    idle = 0
                elif idle > _STUCK_AFTER:
                    raise RuntimeError(f"the scheduler is stuck at time {self.now}")
                if len(self.flying) < self.depth and (computed or self.scheduler.has_requests()):
                    continue
            elif not self.flying:
                if not self.coming:
                    break
                self.now = max(self.now, self.coming[0].arrival)
                continue
            self._take_in()
        self.result.blocks_left = self.blocks - self.pool.get_num_free_blocks()
        return self.result

    def _plan(self) -> bool:
        """Plan a step, start it when the one before is done; whether it computes anything."""
        output = self.scheduler.schedule()
        tokens = dict(output.num_scheduled_tokens)
        for new in output.scheduled_new_reqs:
            if new.req_id not in self.result.started:
                self.result.admitted.append(new.req_id)
                self.result.started[new.req_id] = self.now
        for request_id in output.preempted_req_ids or ():
            count = self.result.preemptions.get(request_id, 0)
            self.result.preemptions[request_id] = count + 1
        done = max(self.now, self.device_free)
        if tokens:
            done += self.step_time(tokens)
            running, waiting = self.scheduler.get_request_counts()
            used = self.blocks - self.pool.get_num_free_blocks()
            self.result.steps.append(Step(self.now, done, tokens, running, waiting, used))
        self.device_free = done
        self.flying.append((output, _made_up_output(self.scheduler, tokens), done))
        return bool(tokens)

    def _take_in(self) -> None:
        """Wait for the oldest step in flight and hand its output to the scheduler."""
        output, model_output, done = self.flying.popleft()
        self.now = max(self.now, done)
        for per_client in self.scheduler.update_from_output(output, model_output).values():
            for item in per_client.outputs:
                if item.new_token_ids:
                    self.result.first_token.setdefault(item.request_id, self.now)
                if item.finish_reason is not None:
                    self._record_once(self.result.finished, item.request_id)

    def _skip_ahead(self) -> bool:
        """Nothing can run: go to the next thing that happens; whether there is one."""
        times = [queue[0][0] for queue in (self.ready, self.aborts) if queue]
        times += [self.coming[0].arrival] if self.coming else []
        times = [time for time in times if time > self.now]
        if times:
            self.now = min(times)
        return bool(times)

    def _make_ready(self, request_id: str, status: Any) -> None:
        request = self.scheduler.requests.get(request_id)
        if request is not None and request.structured_output_request is not None:
            request.structured_output_request = None
            request.status = status

    def _abort(self, request_id: str, status: Any) -> None:
        if request_id in self.scheduler.requests:
            self.scheduler.finish_requests(request_id, status)
            self._record_once(self.result.aborted, request_id)

    def _record_once(self, where: dict[str, float], request_id: str) -> None:
        if request_id in self.result.finished or request_id in self.result.aborted:
            raise RuntimeError(f"request {request_id!r} left twice")
        where[request_id] = self.now


def _settings(config: ServingConfig) -> dict[str, Any]:
    """Settings with the policy object itself in them, not its name: this is one process."""
    return {**config.to_mapping(), "policy": config.policy, "classes": config.classes}


def _timed(requests: Sequence[StepRequest], what: str) -> deque[tuple[float, str]]:
    """Times and ids of the requests that have this time, in order."""
    pairs = [(getattr(request, what), request.id) for request in requests]
    return deque(sorted(pair for pair in pairs if pair[0] is not None))


def _vllm_request(request: StepRequest) -> Any:
    from vllm import SamplingParams
    from vllm.v1.request import Request, RequestStatus

    made = Request(
        request_id=request.id,
        prompt_token_ids=[1] * request.prompt,
        sampling_params=SamplingParams(
            max_tokens=request.output, ignore_eos=True, extra_args=dict(request.facts)
        ),
        pooling_params=None,
        arrival_time=request.arrival,
    )
    if request.ready_at is not None and request.ready_at > request.arrival:
        made.structured_output_request = _NoGrammarYet()
        made.status = RequestStatus.WAITING_FOR_STRUCTURED_OUTPUT_GRAMMAR
    return made


class _NoGrammarYet:
    """Stands for a structured answer whose grammar is not there yet."""

    grammar = None


def _made_up_output(scheduler: Any, tokens: Mapping[str, int]) -> Any:
    """One token for every request in the step whose prompt is done with it."""
    from vllm.v1.outputs import ModelRunnerOutput

    ids = list(tokens)
    return ModelRunnerOutput(
        req_ids=ids,
        req_id_to_index={request_id: row for row, request_id in enumerate(ids)},
        sampled_token_ids=[
            [] if scheduler.requests[request_id].is_prefill_chunk else [7] for request_id in ids
        ],
    )


def _engine_config(shape: EngineShape, base: str) -> tuple[Any, Any]:
    """Give vLLM's configuration for the tiny model in this shape, and its KV cache."""
    import torch
    from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec

    vllm_config = copy.copy(_base_config(shape.block_size, shape.max_model_len, base))
    vllm_config.cache_config = copy.copy(vllm_config.cache_config)
    vllm_config.cache_config.num_gpu_blocks = shape.num_blocks
    vllm_config.scheduler_config = copy.copy(vllm_config.scheduler_config)
    vllm_config.scheduler_config.max_num_seqs = shape.max_num_seqs
    vllm_config.scheduler_config.max_num_batched_tokens = shape.max_num_batched_tokens
    spec = FullAttentionSpec(
        block_size=shape.block_size, num_kv_heads=1, head_size=64, dtype=torch.bfloat16
    )
    kv_cache_config = KVCacheConfig(
        num_blocks=shape.num_blocks,
        kv_cache_tensors=[],
        kv_cache_groups=[KVCacheGroupSpec(["layer"], spec)],
    )
    return vllm_config, kv_cache_config


@functools.lru_cache(maxsize=32)
def _base_config(block_size: int, max_model_len: int, base: str) -> Any:
    """A configuration that vLLM has checked. It takes a second to make, so it is kept."""
    require_vllm()
    from vllm.engine.arg_utils import EngineArgs

    from whonext.serving.model import write_tiny_model

    with tempfile.TemporaryDirectory() as folder:
        write_tiny_model(folder)
        return EngineArgs(
            model=folder,
            load_format="dummy",
            skip_tokenizer_init=True,
            block_size=block_size,
            max_model_len=max_model_len,
            max_num_seqs=8,
            max_num_batched_tokens=max(max_model_len, 2048),
            enforce_eager=True,
            enable_prefix_caching=False,
            async_scheduling=base == "async",
        ).create_engine_config()
