"""The compiled queue for ranks that are fixed or falling: key + slope x attained service.

One loop serves every such rule, preemptive or not, on any number of unit-speed servers: LCFS,
priorities, SJF, WSPT, PSJF, SRPT. It takes arrays and knows no policy and no random number.

What is known of a job lies in a row of ``jobs``, which it keeps until it leaves. The waiting jobs
form a binary heap ordered by (rank, sequence number), and the jobs in service lie in the first
places of a small table: with few servers a scan is faster than a second heap.

Time is measured from the last arrival of the block before. At one instant completions come first,
then all arrivals in the order of the table, then one decision.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from whonext.engines.books import (
    ARRIVE,
    BUSY,
    CLOCK,
    FINISH,
    HEAP_COLUMNS,
    OWED,
    PREEMPT,
    RANK,
    RESUME,
    SEQUENCE,
    SLOT,
    START,
    UNDECIDED,
    WAITING,
    WORK,
    Kernel,
    advance,
    count_job,
    note,
    pop,
    push,
)
from whonext.engines.jit import jit

__all__ = ["Ranked"]

# Columns of a job in service after those of the heap: when it started this time, and will finish.
SINCE, ENDS = HEAP_COLUMNS, HEAP_COLUMNS + 1
# Columns of a job.
JOINED, WAITED, SIZE, LEFT, KIND, STARTED = range(6)


@jit
def _start(
    serving: np.ndarray,
    server: int,
    rank: float,
    sequence: float,
    slot: int,
    jobs: np.ndarray,
    now: float,
    events: np.ndarray,
    books: np.ndarray,
) -> None:
    """Give the job in ``slot`` the place ``server``."""
    jobs[slot, WAITED] += now - jobs[slot, JOINED]
    if events.shape[0] > 0:
        note(events, books, now, RESUME if jobs[slot, STARTED] else START, sequence, server)
        jobs[slot, STARTED] = 1.0
    serving[server, RANK] = rank
    serving[server, SEQUENCE] = sequence
    serving[server, SLOT] = slot
    serving[server, SINCE] = now
    serving[server, ENDS] = now + jobs[slot, LEFT]


@jit
def _start_first(
    serving: np.ndarray,
    server: int,
    heap: np.ndarray,
    jobs: np.ndarray,
    now: float,
    events: np.ndarray,
    books: np.ndarray,
) -> None:
    """Give the place ``server`` to the first of those waiting."""
    rank, sequence, slot = heap[0, RANK], heap[0, SEQUENCE], int(heap[0, SLOT])
    pop(heap, int(books[WAITING]))
    books[WAITING] -= 1
    _start(serving, server, rank, sequence, slot, jobs, now, events, books)


@jit
def _worst(serving: np.ndarray, slope: float, now: float) -> tuple[int, float]:
    """Place in service of the highest rank; among equals, of the last to have come."""
    worst, worst_rank = 0, -math.inf
    for server in range(serving.shape[0]):
        rank = serving[server, RANK] + slope * (now - serving[server, SINCE])
        if rank > worst_rank or (
            rank == worst_rank and serving[server, SEQUENCE] > serving[worst, SEQUENCE]
        ):
            worst, worst_rank = server, rank
    return worst, worst_rank


@jit
def _set_aside(
    serving: np.ndarray,
    heap: np.ndarray,
    jobs: np.ndarray,
    books: np.ndarray,
    server: int,
    rank: float,
    now: float,
    events: np.ndarray,
) -> None:
    """Interrupt the job at ``server``, whose rank is now ``rank``."""
    slot = int(serving[server, SLOT])
    jobs[slot, LEFT] = serving[server, ENDS] - now
    jobs[slot, JOINED] = now
    push(heap, int(books[WAITING]), rank, serving[server, SEQUENCE], slot)
    books[WAITING] += 1
    if events.shape[0] > 0:
        note(events, books, now, PREEMPT, serving[server, SEQUENCE], server)


@jit
def _settle(
    serving: np.ndarray,
    heap: np.ndarray,
    jobs: np.ndarray,
    books: np.ndarray,
    slope: float,
    preemptive: bool,
    now: float,
    events: np.ndarray,
) -> None:
    """The decision in full: fill idle servers, then let lower ranks interrupt higher ones."""
    servers = serving.shape[0]
    aside = np.zeros((1, HEAP_COLUMNS))
    while books[WAITING] > 0:
        if books[BUSY] < servers:
            server = int(books[BUSY])
            books[BUSY] += 1
            _start_first(serving, server, heap, jobs, now, events, books)
            continue
        if not preemptive:
            break
        worst, worst_rank = _worst(serving, slope, now)
        if heap[0, RANK] >= worst_rank:
            break
        for column in range(HEAP_COLUMNS):
            aside[0, column] = heap[0, column]
        pop(heap, int(books[WAITING]))
        books[WAITING] -= 1
        _set_aside(serving, heap, jobs, books, worst, worst_rank, now, events)
        _start(
            serving,
            worst,
            aside[0, RANK],
            aside[0, SEQUENCE],
            int(aside[0, SLOT]),
            jobs,
            now,
            events,
            books,
        )
    books[UNDECIDED] = 0.0


@jit
def _serve(
    arrival: np.ndarray,
    size: np.ndarray,
    kind: np.ndarray,
    key: np.ndarray,
    first_sequence: int,
    following: float,
    counted_from: int,
    counted_to: int,
    moments: np.ndarray,
    histograms: np.ndarray,
    response: np.ndarray,
    events: np.ndarray,
    books: np.ndarray,
    slope: float,
    preemptive: bool,
    serving: np.ndarray,
    heap: np.ndarray,
    jobs: np.ndarray,
    free: np.ndarray,
) -> None:
    """Run the jobs of one block, up to and including its last arrival.

    Parameters
    ----------
    arrival, size, kind, key : arrays of one length
        The jobs, in order of arrival, times relative to the end of the block before.
    first_sequence : int
        Place of the first of them in the whole run.
    following : float
        Arrival of the first job of the next block, on this block's clock: a job at the same
        instant must be seen before a decision falls. ``inf`` after the last block, and then the
        queue is run until it is empty.
    counted_from, counted_to : int
        Jobs of these places in the run enter the statistics.
    moments : (classes, columns), histograms : (classes, 3, bins)
        Statistics, added to.
    response : array
        Filled by place in the run with each job's response time, if it is not empty.
    events : (lines, 5)
        Filled with the event trace, if it has lines.
    books, serving, heap, jobs, free
        The state, changed in place, with room for all jobs of the block. Of ``free``, a stack of
        unused rows of ``jobs``, the first ``len(free)`` less the number inside count.
    slope, preemptive
        The rule: rank = key + slope * attained service, and whether it interrupts.
    """
    servers = serving.shape[0]
    coming = arrival.shape[0]
    slots = free.shape[0]
    drain = following == math.inf
    index = 0
    while index < coming or (drain and books[BUSY] > 0):
        now = arrival[index] if index < coming else math.inf
        # Completions up to this arrival. Those at its very instant only free their server: the
        # decision waits until the arrivals have been seen.
        while books[BUSY] > 0:
            busy = int(books[BUSY])
            done = 0
            for server in range(1, busy):
                if serving[server, ENDS] < serving[done, ENDS] or (
                    serving[server, ENDS] == serving[done, ENDS]
                    and serving[server, SEQUENCE] < serving[done, SEQUENCE]
                ):
                    done = server
            finish = serving[done, ENDS]
            if finish > now:
                break
            advance(books, finish)
            sequence = serving[done, SEQUENCE]
            slot = int(serving[done, SLOT])
            waited = jobs[slot, WAITED]
            needed = jobs[slot, SIZE]
            if counted_from <= sequence < counted_to:
                books[OWED] -= 1
                count_job(moments, histograms, int(jobs[slot, KIND]), waited, needed)
            if response.shape[0] > 0:
                response[int(sequence)] = waited + needed
            waiting = int(books[WAITING])
            books[BUSY] = busy - 1
            free[slots - busy - waiting] = slot
            if events.shape[0] > 0:
                note(events, books, finish, FINISH, sequence, done)
            if waiting > 0 and finish < now:
                books[BUSY] = busy
                _start_first(serving, done, heap, jobs, finish, events, books)
            elif done != busy - 1:
                for column in range(ENDS + 1):
                    serving[done, column] = serving[busy - 1, column]
        if index >= coming:
            continue
        advance(books, now)
        later = arrival[index + 1] if index + 1 < coming else following
        sequence = float(first_sequence + index)
        if counted_from <= sequence < counted_to:
            books[OWED] += 1
        busy, waiting = int(books[BUSY]), int(books[WAITING])
        slot = free[slots - busy - waiting - 1]
        rank = key[index]
        jobs[slot, JOINED] = now
        jobs[slot, WAITED] = 0.0
        jobs[slot, SIZE] = size[index]
        jobs[slot, LEFT] = size[index]
        jobs[slot, KIND] = kind[index]
        jobs[slot, STARTED] = 0.0
        books[WORK] += size[index]
        if events.shape[0] > 0:
            books[WAITING] = waiting + 1  # it is in the system, though it has no place yet
            note(events, books, now, ARRIVE, sequence, -1)
            books[WAITING] = waiting
        alone = later > now and books[UNDECIDED] == 0.0
        place = -1
        if alone and busy < servers and waiting == 0:
            place = busy
            books[BUSY] = busy + 1
        elif alone and preemptive and busy == servers:
            worst, worst_rank = _worst(serving, slope, now)
            if rank < worst_rank:
                place = worst
                _set_aside(serving, heap, jobs, books, worst, worst_rank, now, events)
        if place >= 0:
            _start(serving, place, rank, sequence, slot, jobs, now, events, books)
        else:
            push(heap, waiting, rank, sequence, slot)
            books[WAITING] = waiting + 1
            if not alone or busy < servers:
                books[UNDECIDED] = 1.0
                if later > now:
                    _settle(serving, heap, jobs, books, slope, preemptive, now, events)
        index += 1


@jit
def _rebase(
    serving: np.ndarray,
    heap: np.ndarray,
    jobs: np.ndarray,
    books: np.ndarray,
    shift: float,
    key_shift: float,
) -> None:
    """Move the origin of time forward by ``shift``, and of the keys by ``key_shift``.

    A clock that ran on for 1e10 jobs would lose digits in double precision. The work in the
    system is added up anew, so that rounding does not pile up in it either.
    """
    books[CLOCK] -= shift
    work = 0.0
    for server in range(int(books[BUSY])):
        serving[server, SINCE] -= shift
        serving[server, ENDS] -= shift
        serving[server, RANK] -= key_shift
        work += serving[server, ENDS] - books[CLOCK]
    for place in range(int(books[WAITING])):
        slot = int(heap[place, SLOT])
        heap[place, RANK] -= key_shift
        jobs[slot, JOINED] -= shift
        work += jobs[slot, LEFT]
    books[WORK] = work


class Ranked(Kernel):
    """A queue under a rule of fixed or falling ranks.

    Parameters
    ----------
    servers
        Number of unit-speed servers.
    slope, preemptive
        The rule: rank = key + slope * attained service, and whether it interrupts.
    """

    def __init__(self, servers: int, slope: float, preemptive: bool) -> None:
        super().__init__(columns=6)
        self.slope = slope if preemptive else 0.0
        self.preemptive = preemptive
        self.serving = np.zeros((servers, ENDS + 1))

    def serve(self, arrival: np.ndarray, *rest: Any) -> None:
        """Run the jobs of one block; the arguments are those of :func:`_serve` up to ``events``."""
        self.make_room(len(arrival))
        _serve(
            arrival,
            *rest,
            self.books,
            self.slope,
            self.preemptive,
            self.serving,
            self.heap,
            self.jobs,
            self.free,
        )

    def rebase(self, shift: float, key_shift: float) -> None:
        """Move the origin of time, and of the keys."""
        _rebase(self.serving, self.heap, self.jobs, self.books, shift, key_shift)
