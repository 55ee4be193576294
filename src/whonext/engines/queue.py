"""The queue engine: jobs stream through a compiled kernel in constant memory."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from whonext.engines import in_order, lottery, ranked, sharing
from whonext.engines.books import (
    BUSY_AREA,
    ELAPSED,
    EVENTS,
    NUMBER_AREA,
    OWED,
    WORK_AREA,
    Kernel,
)
from whonext.policies.base import Policy, Visible
from whonext.results import Tally
from whonext.workload import BLOCK, JobTable, random_stream

__all__ = ["Raw", "kernel_for", "run_stream", "run_table"]

_SLICE = 4096  # the cool-down looks this often whether every counted job has left
_NEVER = 1e300  # a next arrival that does not come, without running the queue empty

_LEVELS_ABOVE_KEY = (
    "rank",
    "choose",
    "allocate",
    "on_arrival",
    "on_dispatch",
    "on_service",
    "on_finish",
)


@dataclass
class Raw:
    """Per-job arrays and the event trace of one run, by place in the table."""

    response: np.ndarray
    waiting: np.ndarray
    events: np.ndarray


def kernel_for(policy: Policy, servers: int, trace: bool = False) -> Kernel | None:
    """The compiled queue that runs this rule, or ``None`` where only the reference can.

    A rule names its kernel by its ``shape``, and loses it where a subclass changes one of the
    levels above ``key``. With ``trace`` the kernel is one that keeps an event trace.
    """
    family = type(policy).__mro__
    named = next(i for i, c in enumerate(family) if "shape" in vars(c))
    changed = min(i for name in _LEVELS_ABOVE_KEY for i, c in enumerate(family) if name in vars(c))
    if changed < named:
        return None
    if policy.shape == "in order" and not trace:
        return in_order.InOrder(servers)
    if policy.shape == "lottery":
        return lottery.Lottery(servers, policy.draws)  # type: ignore[attr-defined]
    if policy.shape == "shared":
        return sharing.Alike(servers)
    if policy.preemptive and policy.slope > 0:
        return sharing.Rising() if servers == 1 and policy.slope == 1 else None
    return ranked.Ranked(servers, float(policy.slope), policy.preemptive)


def keys_of(policy: Policy, jobs: JobTable) -> np.ndarray:
    """The rule's keys for a table of jobs, checked.

    Raises
    ------
    ValueError
        If they are not one finite number for each job.
    """
    view = Visible(jobs, policy.needs, type(policy).__name__)
    try:
        keys = np.asarray(policy.key(view), dtype=float)
    except AttributeError as error:
        raise ValueError(str(error)) from error
    if keys.shape != jobs.arrival.shape:
        raise ValueError(
            f"key of {policy.spec} has shape {keys.shape}: it must give one number a job, "
            f"here {jobs.arrival.shape}"
        )
    if not np.isfinite(keys).all():
        bad = keys[~np.isfinite(keys)][0]
        raise ValueError(f"key of {policy.spec} gave {bad}: a key must be a finite number")
    return keys


def clock_rate(policy: Policy, jobs: JobTable) -> float:
    """How far a key moves when the clock moves by one: 1 for an arrival time, 0 for a size.

    Raises
    ------
    ValueError
        If jobs differ in it, so that the origin of time would matter.
    """
    shift = 1024.0
    moved = JobTable(
        jobs.arrival + shift, jobs.size, jobs.kind, jobs.weight, jobs.prediction, jobs.cost
    )
    rates = (keys_of(policy, moved) - keys_of(policy, jobs)) / shift
    scale = 1 + np.abs(keys_of(policy, jobs)).max() / shift
    if np.ptp(rates) > 1e-9 * scale:
        raise ValueError(
            f"key of {policy.spec} depends on the origin of time: it may contain the arrival time "
            "times one constant for all jobs, or not at all"
        )
    return round(float(rates[0]), 9)


class _Queue:
    """A kernel and its statistics, fed with slices of jobs."""

    def __init__(
        self,
        policy: Policy,
        servers: int,
        classes: int,
        counted: tuple[int, int],
        raw_jobs: int = 0,
        trace: bool = False,
    ) -> None:
        kernel = kernel_for(policy, servers, trace)
        if kernel is None:
            raise ValueError(
                f"policy={policy.spec}: no compiled queue runs it on {servers} server(s); "
                "use engine='reference'"
            )
        self.kernel = kernel
        self.tally = Tally.empty(classes)
        self.counted = counted
        self.sequence = 0
        self.response = np.full(raw_jobs, np.nan)
        self.events = np.empty((0, 5))

    def feed(self, jobs: JobTable, keys: np.ndarray, part: slice, following: float) -> None:
        """Run ``jobs[part]``; ``following`` is the arrival of the job after them."""
        arrival, size, kind, key = (
            _column(column[part]) for column in (jobs.arrival, jobs.size, jobs.kind, keys)
        )
        began = time.perf_counter()
        self.kernel.serve(
            arrival,
            size,
            kind,
            key,
            self.sequence,
            following,
            *self.counted,
            self.tally.moments,
            self.tally.histograms,
            self.response,
            self.events,
        )
        self.tally.seconds += time.perf_counter() - began
        self.tally.jobs += len(arrival)
        self.sequence += len(arrival)

    def rebase(self, shift: float, key_shift: float) -> None:
        """Move the origins of time and of the keys."""
        self.kernel.rebase(shift, key_shift)

    @property
    def owed(self) -> int:
        """Counted jobs still inside."""
        return int(self.kernel.books[OWED])

    def close_window(self) -> None:
        """End the time averages here, and take them down."""
        self.kernel.close_window()
        books, tally = self.kernel.books, self.tally
        tally.number_area = float(books[NUMBER_AREA])
        tally.work_area = float(books[WORK_AREA])
        tally.busy_area = float(books[BUSY_AREA])
        tally.elapsed = float(books[ELAPSED])


def _column(values: np.ndarray) -> np.ndarray:
    """One kind of array for the kernel, so that it is compiled once: contiguous, not written to."""
    values = np.ascontiguousarray(values).view()
    values.flags.writeable = False
    return values


def _compile(policy: Policy, servers: int, trace: bool = False) -> None:
    """Call the kernel once with nothing to do, so that no measured time contains compilation."""
    nothing = JobTable.from_arrays(np.zeros(0), np.zeros(0))
    queue = _Queue(policy, servers, 1, (0, 0), trace=trace)
    queue.feed(nothing, np.zeros(0), slice(0, 0), _NEVER)
    queue.rebase(0.0, 0.0)


def run_stream(
    policy: Policy,
    workload: Any,
    servers: int,
    jobs: int,
    warmup: int,
    seed: np.random.SeedSequence,
    progress: Callable[[int], Any] | None = None,
) -> Tally:
    """One replication of a random workload.

    The first ``warmup`` jobs are not counted. After the last counted one has come, further jobs
    come until every counted one has left, or a tenth of the run has passed (at least one block):
    cutting the run off at an arrival would drop the longest jobs.

    Parameters
    ----------
    policy
        A rule for which :func:`kernel_for` has a kernel, already bound.
    workload : Workload
    servers, jobs, warmup
        ``jobs`` includes the warm-up.
    seed
        Where all randomness comes from.
    progress
        Called with the number of jobs done since the last call.
    """
    _compile(policy, servers)
    policy.seed(random_stream(seed, "policy"))
    queue = _Queue(policy, servers, len(workload.classes), (warmup, jobs))
    limit = jobs + max(BLOCK, jobs // 10)
    blocks = _with_next(workload.blocks(limit, seed, servers))
    rate: float | None = None
    while True:
        began = time.perf_counter()
        block, first_of_next = next(blocks)
        if rate is None:
            rate = clock_rate(policy, block.rows(0, 256))
        keys = keys_of(policy, block)
        queue.tally.seconds += time.perf_counter() - began
        for part, following in _parts(block, queue.sequence, (warmup, jobs), first_of_next):
            if queue.sequence == warmup:
                queue.kernel.open_window()
            if queue.sequence < jobs:
                _count_offered(queue, block, part, warmup)
            queue.feed(block, keys, part, following)
            if queue.sequence == jobs:
                queue.close_window()
            if queue.sequence >= jobs and queue.owed == 0:
                break
        if progress:
            progress(len(block))
        if queue.sequence >= limit or (queue.sequence >= jobs and queue.owed == 0):
            break
        shift = float(block.arrival[-1])
        queue.rebase(shift, rate * shift)
    queue.tally.left_inside = queue.owed
    return queue.tally


def _count_offered(queue: _Queue, block: JobTable, part: slice, warmup: int) -> None:
    if queue.sequence >= warmup:
        queue.tally.offered += float(block.size[part].sum())


def _parts(
    block: JobTable, sequence: int, cuts: tuple[int, int], first_of_next: float
) -> Iterator[tuple[slice, float]]:
    """Cut a block at the warm-up and at the end; past the end, into short slices."""
    length = len(block)
    places = [c - sequence for c in cuts if 0 < c - sequence < length]
    beyond = max(cuts[1] - sequence, 0)
    places += range(beyond + _SLICE, length, _SLICE)
    edges = [0, *sorted(set(places)), length]
    for start, stop in itertools.pairwise(edges):
        following = float(block.arrival[stop]) if stop < length else first_of_next
        yield slice(start, stop), following


def _with_next(blocks: Iterator[JobTable]) -> Iterator[tuple[JobTable, float]]:
    """Each block with the first arrival of the next one, on the clock of this one."""
    current = next(blocks)
    for upcoming in blocks:
        yield current, float(current.arrival[-1] + upcoming.arrival[0])
        current = upcoming
    yield current, _NEVER


def run_table(
    policy: Policy,
    jobs: JobTable,
    servers: int,
    classes: int,
    warmup: int = 0,
    until: float = math.inf,
    trace: bool = False,
) -> tuple[Tally, Raw]:
    """Run a table of jobs, from an empty system until it is empty again.

    Parameters
    ----------
    policy
        A rule for which :func:`kernel_for` has a kernel, already bound.
    jobs
        Jobs with absolute times.
    servers, classes
        Number of servers, and of classes in the table.
    warmup
        Jobs at the start that are not counted.
    until
        Jobs that have not left by then are cut off: they are reported as left inside.
    trace
        Whether to keep the event trace.

    Returns
    -------
    Tally, Raw
    """
    _compile(policy, servers, trace)
    count = len(jobs)
    queue = _Queue(policy, servers, classes, (warmup, count), raw_jobs=count, trace=trace)
    if trace:
        queue.events = np.empty((6 * count + 64, 5))
    keys = keys_of(policy, jobs)
    # In pieces, so that the room needed is that of the jobs inside and not of the whole table.
    edges = [*range(0, warmup, BLOCK), *range(warmup, count, BLOCK), count]
    for start, stop in itertools.pairwise(edges):
        if start == warmup:
            queue.kernel.open_window()
        following = float(jobs.arrival[stop]) if stop < count else math.inf
        queue.feed(jobs, keys, slice(start, stop), following)
    queue.tally.offered = float(jobs.size[warmup:].sum())
    queue.close_window()
    response = queue.response
    raw = Raw(response, response - jobs.size, queue.events[: int(queue.kernel.books[EVENTS])])
    if math.isfinite(until):
        cut = Tally.of_table(jobs, raw.response, raw.waiting, classes, (warmup, None), until)
        cut.seconds = queue.tally.seconds
        return cut, raw
    return queue.tally, raw
