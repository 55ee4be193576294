"""vLLM's own scheduler with one change: a whonext policy says which waiting request is next.

Everything else is vLLM's: the token budget, chunked prefill, KV blocks, whom to preempt when they
run out, aborts, the batch. What is read here was read in vLLM 0.32, and compared with 0.20 and
0.25.1; `tests/live` runs against the version that is installed.

Where a request waits
---------------------
vLLM 0.32 keeps two queues. ``waiting`` is the one that is replaced here. ``kv_holding_waiting``
holds waiting requests that already own KV blocks (a KV transfer under way, a streaming session
between turns); it is always emptied first and never asks a policy. Releases before it (0.20 and
0.25.1 were read) have ``skipped_waiting`` instead, in which any request that was passed over for a
reason of its own (a grammar being compiled, a full set of LoRA adapters) waits, ahead of
``waiting``. So in those a passed-over request goes before the policy's choice, once it can go.

How an admission looks from inside the queue
--------------------------------------------
One pass of ``schedule()`` peeks at the head many times, and pops it if it fits. It also pops a
request that cannot run now, and puts it back (``prepend_requests``) at the end of the pass. Which
of the two a pop was is seen a moment later: an admitted request is RUNNING (or waits for its KV
blocks, already given, to be filled) by the time the queue is touched again. The charge
(``on_dispatch``) waits for that moment, so that it is made once for a request and never taken
back. The time that ``choose`` sees is frozen for a pass, and the head stays the head until the
queue changes: vLLM allocates blocks for the request it peeked at and must pop the same one.

A preempted request is put back with its work lost (vLLM recomputes). Under a rule that does not
preempt it goes in front of all that have not started, the latest preempted first, as in stock
vLLM: a started job comes before those not started, whatever their ranks. Under a preemptive rule
it takes its place by rank. It is not charged again.

What a policy cannot do here
----------------------------
vLLM does not interrupt a request because another would be better; it preempts only when blocks run
out, the latest admitted first. So a preemptive rule (SRPT) orders the queue by its ranks, and no
more; a warning says so at the start. An exception in a rule ends the engine, as one in vLLM's own
scheduler would: each rule is tried on two sample requests first, and ``whonext check`` tries more.
"""

from __future__ import annotations

import atexit
import bisect
import copy
import heapq
import itertools
import logging
import math
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from whonext.policies import Job, Policy
from whonext.serving import require_vllm
from whonext.serving.facts import ServingConfig

require_vllm()

from vllm.v1.core.sched.async_scheduler import AsyncScheduler  # noqa: E402
from vllm.v1.core.sched.request_queue import RequestQueue  # noqa: E402
from vllm.v1.core.sched.scheduler import Scheduler  # noqa: E402
from vllm.v1.request import Request, RequestStatus  # noqa: E402

__all__ = [
    "EVENT_COLUMNS",
    "STEP_COLUMNS",
    "PolicyQueue",
    "WhoNextScheduler",
    "WhoNextSyncScheduler",
]

# vLLM sets up handlers for loggers under its own name only, also in the engine's process.
logger = logging.getLogger("vllm.whonext")

#: The columns of an event trace, as of all engines of whonext. There is one server, number 0.
EVENT_COLUMNS = ("time", "event", "job", "kind", "server", "in_system")

#: The columns of a trace of steps: time at which the step's output came back, requests in it,
#: tokens computed for them, tokens computed for those that had more than one (prefill), and, just
#: after, requests waiting, requests running and the share of KV blocks in use.
STEP_COLUMNS = ("time", "requests", "tokens", "prefill_tokens", "waiting", "running", "kv_usage")

#: Statuses that mean: the request just popped has been admitted.
_ADMITTED = (RequestStatus.RUNNING, RequestStatus.WAITING_FOR_REMOTE_KVS)

#: Statuses that mean: left without an answer.
_CUT_SHORT = (
    RequestStatus.FINISHED_ABORTED,
    getattr(RequestStatus, "FINISHED_ERROR", RequestStatus.FINISHED_ABORTED),
)


class _Entry:
    """A request in the system, and the job that the policy sees."""

    __slots__ = ("charged", "front", "job", "request", "ticket")

    def __init__(self, request: Request, job: Job) -> None:
        self.request = request
        self.job = job
        self.charged = False  # whether on_dispatch has been called
        self.front: int | None = None  # place among preempted requests, lowest first
        self.ticket: int | None = None  # of its present wait; None when not in the queue


class PolicyQueue(RequestQueue):
    """The waiting room that asks a policy who is next, and keeps the policy's books.

    A rule that overrides nothing but ``key`` is served from a heap. Any other is asked by
    ``choose``, once for each change of the queue or of the time.

    Parameters
    ----------
    config
        The server's settings.
    servers
        Requests that may run at once; for ``Policy.bind``.
    clock
        The time, in any unit. The default is seconds since the queue was made.
    """

    def __init__(
        self, config: ServingConfig, servers: int, clock: Callable[[], float] | None = None
    ) -> None:
        start = time.monotonic()
        self.clock = clock or (lambda: time.monotonic() - start)
        self.now: float = self.clock()
        self.config = config
        self._servers = servers
        self._entries: dict[str, _Entry] = {}
        self._serial = itertools.count()
        self._tickets = itertools.count()
        self._fronts = itertools.count(-1, -1)
        self._popped: _Entry | None = None
        self._head: _Entry | None = None
        self._length = 0
        self._front: list[tuple[int, int, _Entry]] = []
        self._heap: list[tuple[float, float, int, int, _Entry]] = []
        self._line: list[tuple[int, _Entry]] = []
        self._events = _Log(config.events, EVENT_COLUMNS)
        self._steps = _Log(config.steps, STEP_COLUMNS)
        self.on_event: Callable[[tuple[Any, ...]], None] | None = None
        self._file_state: Any = None
        self._install(config.build_policy(servers))
        self._file_state = self._policy_file_state()

    # Which rule.

    def _install(self, policy: Policy) -> None:
        _try_out(policy)
        rule = type(policy)
        simple = ("choose", "rank", "on_arrival", "on_dispatch", "on_service", "on_finish")
        self.policy = policy
        self._by_heap = all(getattr(rule, name) is getattr(Policy, name) for name in simple)
        self._counts_service = rule.on_service is not Policy.on_service
        self._charges = rule.on_dispatch is not Policy.on_dispatch

    def _policy_file_state(self) -> Any:
        if self.config.policy_file is None:
            return None
        try:
            stat = Path(self.config.policy_file).stat()
        except OSError:
            return None
        return stat.st_mtime_ns, stat.st_size, stat.st_ino

    def _reread_policy(self) -> None:
        """Take up a new rule from the policy file; keep the old one if the new one is bad."""
        state = self._policy_file_state()
        if state is None or state == self._file_state:
            return
        self._file_state = state
        try:
            self._install(self.config.build_policy(self._servers))
        except ValueError as error:
            logger.error("the rule stays %s: %s", self.policy.spec, error)
        else:
            self._log("policy", self.policy.spec, -1)

    # What happens to a request, in order.

    def arrive(self, request: Request) -> None:
        """A request has come to the engine. It need not come to this queue."""
        if request.request_id in self._entries:  # the next turn of a streaming session
            return
        if not self._entries and self.config.policy_file is not None:
            self._reread_policy()
        params = request.sampling_params
        facts, complaints = self.config.read_facts(
            params.extra_args if params is not None else None,
            max_tokens=max(1, request.max_tokens),
            prompt_tokens=max(1, request.num_prompt_tokens),
            strict=False,
        )
        for complaint in complaints:
            logger.warning("request %s: %s; using a stand-in", request.request_id, complaint)
        job = Job(
            id=next(self._serial),
            arrival=self.now,
            size=facts.size,
            prediction=facts.prediction,
            cost=facts.cost,
            weight=facts.weight,
            kind=facts.kind,
        ).hide(self.policy.needs)
        job.key = _finite_or_last(self.policy.key(job), self.policy)
        entry = self._entries[request.request_id] = _Entry(request, job)
        self.policy.on_arrival(job, self.now)
        self._head = None
        self._log("arrive", entry)

    def _start(self, entry: _Entry) -> None:
        """A request was admitted: charge it, if it was not charged before."""
        event = "resume" if entry.charged else "start"
        entry.job.serving = True
        entry.front = None
        if not entry.charged:
            entry.charged = True
            if self._charges:
                waiting = [e.job for e in [*self._waiting(), entry] if not e.job.started]
                waiting.sort(key=lambda job: job.id)
                self.policy.on_dispatch(entry.job, waiting, self.now)
            entry.job.started = True
        self._head = None
        self._log(event, entry)

    def started(self, request_ids: Iterable[str]) -> None:
        """These requests run now; charge those that came in by a queue that asks no policy."""
        self.settle()
        for request_id in request_ids:
            entry = self._entries.get(request_id)
            if entry is not None and not entry.job.serving:
                self._start(entry)

    def served(self, request_id: str, tokens: int) -> None:
        """A request was served this many tokens, of prefill or decode."""
        entry = self._entries.get(request_id)
        if entry is None:
            return
        entry.job.age += tokens
        if self.policy.slope and self._by_heap and entry.ticket is not None:
            # Preempted while this step was on its way: its rank moves, so its place does.
            self._take_out(entry)
            self._put_in(entry)
        if self._counts_service:
            self.policy.on_service(entry.job, tokens, self.now)
            self._head = None

    def leave(self, request: Request) -> None:
        """A request has left the engine, finished or aborted, started or not."""
        self.settle()
        entry = self._entries.pop(request.request_id, None)
        if entry is None:
            return
        self._take_out(entry)
        entry.job.serving = False
        self.policy.on_finish(entry.job, self.now)
        self._head = None
        self._log("abort" if request.status in _CUT_SHORT else "finish", entry)
        if not self._entries:
            self.flush()

    def settle(self) -> None:
        """Look at the request popped last: if it is running, the policy's choice was obeyed."""
        entry, self._popped = self._popped, None
        if entry is not None and entry.request.status in _ADMITTED:
            self._start(entry)

    # The queue.

    def add_request(self, request: Request) -> None:
        """Put a request where the policy's order has it."""
        self.settle()
        self.arrive(request)
        entry = self._entries[request.request_id]
        entry.job.serving = False  # a streaming session may come back from a turn
        self._put_in(entry)

    def prepend_request(self, request: Request) -> None:
        """Take back a request that was preempted, or that was popped and could not run."""
        self.settle()
        entry = self._entries[request.request_id]
        if entry.job.serving:  # preempted
            entry.job.serving = False
            if not self.policy.preemptive:
                entry.front = next(self._fronts)
            self._log("preempt", entry)
        self._put_in(entry)

    def prepend_requests(self, requests: Iterable[Request]) -> None:
        """Take back requests; their order among each other is the policy's, not that given."""
        for request in requests:
            self.prepend_request(request)

    def peek_request(self) -> Request:
        """The request that is next."""
        return self._next().request

    def pop_request(self) -> Request:
        """Remove and return the request that is next: the one that ``peek_request`` gave."""
        entry = self._next()
        self._take_out(entry)
        self._popped = entry
        return entry.request

    def remove_request(self, request: Request) -> None:
        """Remove one request, wherever it is in the queue."""
        self.remove_requests([request])

    def remove_requests(self, requests: Iterable[Request]) -> None:
        """Remove those of the requests that are in the queue."""
        self.settle()
        for request in requests:
            entry = self._entries.get(request.request_id)
            if entry is not None:
                self._take_out(entry)

    def __bool__(self) -> bool:
        self.settle()
        return self._length > 0

    def __len__(self) -> int:
        self.settle()
        return self._length

    def __iter__(self) -> Iterator[Request]:
        """The requests, preempted ones first, then by key or, without one, by arrival."""
        self.settle()
        return iter([entry.request for entry in self._waiting()])

    def _waiting(self) -> list[_Entry]:
        front = [e for _, ticket, e in sorted(self._front, key=_first_two) if e.ticket == ticket]
        if self._by_heap:
            rest = [
                e for *_, ticket, e in sorted(self._heap, key=_first_four) if e.ticket == ticket
            ]
        else:
            rest = [entry for _, entry in self._line]
        return front + rest

    def _put_in(self, entry: _Entry) -> None:
        ticket = entry.ticket = next(self._tickets)
        self._length += 1
        self._head = None
        job = entry.job
        if entry.front is not None:
            heapq.heappush(self._front, (entry.front, ticket, entry))
        elif self._by_heap:
            rank = float(self.policy.rank(job, self.now))
            if len(self._heap) > 2 * self._length + 64:  # mostly void: aborted before their turn
                self._heap = [row for row in self._heap if row[-1].ticket == row[-2]]
                heapq.heapify(self._heap)
            heapq.heappush(self._heap, (rank, job.arrival, job.id, ticket, entry))
        else:
            bisect.insort(self._line, (job.id, entry), key=_first)

    def _take_out(self, entry: _Entry) -> None:
        if entry.ticket is None:
            return
        entry.ticket = None  # its place in a heap is now void, and dropped when it comes up
        self._length -= 1
        self._head = None
        if entry.front is None and not self._by_heap:
            self._line.pop(bisect.bisect_left(self._line, entry.job.id, key=_first))

    def _next(self) -> _Entry:
        self.settle()
        if self._length == 0:
            raise IndexError("the waiting queue is empty")
        if self._head is None:
            self._head = self._choose()
        return self._head

    def _choose(self) -> _Entry:
        heaps: tuple[list[Any], ...] = (self._front, self._heap)
        for heap in heaps:
            while heap and heap[0][-1].ticket != heap[0][-2]:  # void: it left or moved
                heapq.heappop(heap)
            if heap:
                return heap[0][-1]
        waiting = [entry.job for _, entry in self._line]
        choice = self.policy.choose(waiting, self.now)
        for _, entry in self._line:
            if choice is entry.job:
                return entry
        raise ValueError(f"{self.policy.spec}: choose() gave {choice!r}, which is not waiting")

    def new_pass(self) -> None:
        """Read the clock; the policy may choose anew."""
        self.settle()
        self.now = self.clock()
        if not self._by_heap:
            self._head = None

    # What is written down.

    def _log(self, event: str, entry: _Entry | str, kind: int | None = None) -> None:
        if isinstance(entry, _Entry):
            job, kind = entry.request.request_id, entry.job.kind
        else:
            job = entry
        row = (self.now, event, job, kind, 0, len(self._entries))
        if self.on_event is not None:
            self.on_event(row)
        self._events.add(row)

    def log_step(self, row: tuple[Any, ...]) -> None:
        """Note a finished step: :data:`STEP_COLUMNS` without the time."""
        self._steps.add((self.now, *row))
        if not self._entries:
            self.flush()

    @property
    def logs_steps(self) -> bool:
        """Whether anyone wants to know of steps."""
        return self._steps.path is not None

    def flush(self) -> None:
        """Write out what has been noted."""
        self._events.flush()
        self._steps.flush()


class _AsksPolicy:
    """What is overridden, for either of vLLM's schedulers."""

    waiting: Any
    vllm_config: Any
    scheduler_config: Any
    max_num_running_reqs: int
    kv_cache_manager: Any
    get_request_counts: Callable[[], tuple[int, int]]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        config = ServingConfig.from_engine(self.vllm_config.additional_config)
        if self.scheduler_config.policy != "fcfs":
            raise ValueError(
                f"scheduling_policy={self.scheduler_config.policy!r}: leave it at 'fcfs' "
                "where a whonext policy orders the queue"
            )
        self.waiting = PolicyQueue(config, servers=self.max_num_running_reqs)
        policy = self.waiting.policy
        logger.info("the waiting queue asks %s", policy.spec)
        if policy.preemptive:
            logger.warning(
                "%s interrupts jobs; inside vLLM it only orders those that wait", policy.spec
            )

    def add_request(self, request: Request) -> None:
        """A request arrives, to whichever queue."""
        self.waiting.new_pass()
        self.waiting.arrive(request)
        super().add_request(request)  # type: ignore[misc]

    def schedule(self, *args: Any, **kwargs: Any) -> Any:
        """Plan one step."""
        self.waiting.new_pass()
        output = super().schedule(*args, **kwargs)  # type: ignore[misc]
        self.waiting.started(new.req_id for new in output.scheduled_new_reqs)
        return output

    def update_from_output(self, scheduler_output: Any, *args: Any, **kwargs: Any) -> Any:
        """Take in what a step produced, and tell the policy who was served how much."""
        self.waiting.new_pass()
        tokens = scheduler_output.num_scheduled_tokens
        for request_id, amount in tokens.items():
            self.waiting.served(request_id, amount)
        outputs = super().update_from_output(scheduler_output, *args, **kwargs)  # type: ignore[misc]
        if tokens and self.waiting.logs_steps:
            self._log_step(scheduler_output)
        return outputs

    def finish_requests(self, *args: Any, **kwargs: Any) -> Any:
        """Requests are aborted from outside."""
        self.waiting.new_pass()
        return super().finish_requests(*args, **kwargs)  # type: ignore[misc]

    def _free_request(self, request: Request, *args: Any, **kwargs: Any) -> Any:
        """The one place through which every request leaves, finished or aborted."""
        self.waiting.leave(request)
        return super()._free_request(request, *args, **kwargs)  # type: ignore[misc]

    def shutdown(self) -> None:
        """The engine stops."""
        self.waiting.flush()
        super().shutdown()  # type: ignore[misc]

    def _log_step(self, scheduler_output: Any) -> None:
        tokens = scheduler_output.num_scheduled_tokens
        single = sum(1 for amount in tokens.values() if amount == 1)
        running, waiting = self.get_request_counts()
        total = scheduler_output.total_num_scheduled_tokens
        usage = self.kv_cache_manager.usage
        self.waiting.log_step((len(tokens), total, total - single, waiting, running, usage))


class WhoNextScheduler(_AsksPolicy, AsyncScheduler):
    """vLLM's asynchronous scheduler (its default), asking a whonext policy who is next.

    For vLLM's ``scheduler_cls="whonext.serving.scheduler.WhoNextScheduler"``; the policy is named
    in ``additional_config={"whonext": {"policy": "sjf:by=prediction"}}`` or in the environment
    (see :class:`whonext.serving.facts.ServingConfig`).

    It derives from the asynchronous scheduler because vLLM switches asynchronous scheduling off
    for a class that does not, which slows every policy down and makes comparisons with stock vLLM
    unfair.
    """


class WhoNextSyncScheduler(_AsksPolicy, Scheduler):
    """The same on vLLM's synchronous scheduler, for contrast on the step clock."""


class _Log:
    """Rows on their way to a CSV file, written in bulk so as not to slow a step down."""

    def __init__(self, path: str | None, columns: tuple[str, ...]) -> None:
        self.path = path
        self._rows: list[tuple[Any, ...]] = []
        if path is not None:
            Path(path).write_text(",".join(columns) + "\n", encoding="utf-8")
            atexit.register(self.flush)

    def add(self, row: tuple[Any, ...]) -> None:
        if self.path is None:
            return
        self._rows.append(row)
        if len(self._rows) >= 4096:
            self.flush()

    def flush(self) -> None:
        if self.path is None or not self._rows:
            return
        rows, self._rows = self._rows, []
        with Path(self.path).open("a", encoding="utf-8") as file:
            file.writelines(",".join(_cell(value) for value in row) + "\n" for row in rows)


def _cell(value: Any) -> str:
    text = f"{value:.6f}" if isinstance(value, float) else str(value)
    return '"' + text.replace('"', '""') + '"' if set(text) & set(',"\n') else text


def _first(row: tuple[Any, ...]) -> Any:
    return row[0]


def _first_two(row: tuple[Any, ...]) -> Any:
    return row[:2]


def _first_four(row: tuple[Any, ...]) -> Any:
    return row[:4]


def _finite_or_last(key: Any, policy: Policy) -> Any:
    """The key, or infinity (last in line) with a logged error where it is not a number."""
    if not math.isnan(key):
        return key
    logger.error("%s: the key of a request is nan; it goes last", policy.spec)
    return math.inf


def _try_out(policy: Policy) -> None:
    """Run a copy of the rule on two sample requests, so that a faulty one fails at the start.

    A rule that reads a hidden column would otherwise end the engine at the first request.
    """
    rule = copy.deepcopy(policy)
    try:
        jobs = [
            Job(id=row, arrival=0.0, size=2.0, prediction=2.0).hide(rule.needs) for row in range(2)
        ]
        for job in jobs:
            job.key = rule.key(job)
            rule.on_arrival(job, 0.0)
        choice = rule.choose(jobs, 0.0)
        rule.on_dispatch(choice, jobs, 0.0)
        rule.on_service(choice, 1, 0.0)
        rule.on_finish(choice, 1.0)
    except Exception as error:  # whatever a rule of the user's may raise
        raise ValueError(
            f"policy={policy.spec!r}: fails on a sample request: {type(error).__name__}: {error}"
        ) from error
