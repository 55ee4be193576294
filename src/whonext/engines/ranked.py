"""The compiled queue for ranks that are fixed or falling: key + slope x attained service.

One loop serves every such rule, preemptive or not, on any number of unit-speed servers: FCFS,
LCFS, priorities, SJF, WSPT, PSJF, SRPT. It takes arrays and knows no policy and no random number.

A job is a row of eight numbers. Waiting rows form a binary heap ordered by (rank, sequence
number), and the rows in service lie in the first places of a small table: with few servers a scan
is faster than a second heap.

Time is measured from the last arrival of the block before. At one instant completions come first,
then all arrivals in the order of the table, then one decision.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from whonext.engines.books import (
    ARRIVE,
    BOOKS,
    BUSY,
    CLOCK,
    FIELDS,
    FINISH,
    KIND,
    LEFT,
    OWED,
    PREEMPT,
    RANK,
    RESUME,
    SEQUENCE,
    SIZE,
    START,
    STARTED,
    TIME,
    UNDECIDED,
    WAITED,
    WAITING,
    WORK,
    Kernel,
    advance,
    count_job,
    note,
    pop,
    push,
    with_room,
)
from whonext.engines.jit import jit

__all__ = ["Ranked"]


@jit
def _start(
    serving: np.ndarray,
    row: np.ndarray,
    server: int,
    now: float,
    events: np.ndarray,
    books: np.ndarray,
) -> None:
    """Give ``row`` the place ``server``."""
    row[WAITED] += now - row[TIME]
    row[TIME] = now + row[LEFT]
    if events.shape[0] > 0:
        note(events, books, now, RESUME if row[STARTED] else START, row[SEQUENCE], server)
    row[STARTED] = 1.0
    for field in range(FIELDS):
        serving[server, field] = row[field]


@jit
def _worst(serving: np.ndarray, slope: float, now: float) -> tuple[int, float]:
    """Place in service of the highest rank; among equals, of the last to have come."""
    worst, worst_rank = 0, -math.inf
    for server in range(serving.shape[0]):
        left = serving[server, TIME] - now
        rank = serving[server, RANK] + slope * (serving[server, LEFT] - left)
        if rank > worst_rank or (
            rank == worst_rank and serving[server, SEQUENCE] > serving[worst, SEQUENCE]
        ):
            worst, worst_rank = server, rank
    return worst, worst_rank


@jit
def _set_aside(
    serving: np.ndarray,
    waiting: np.ndarray,
    books: np.ndarray,
    server: int,
    rank: float,
    now: float,
    events: np.ndarray,
) -> None:
    """Interrupt the job at ``server``, whose rank is now ``rank``."""
    left = serving[server, TIME] - now
    serving[server, LEFT] = left
    serving[server, RANK] = rank
    serving[server, TIME] = now
    if events.shape[0] > 0:
        note(events, books, now, PREEMPT, serving[server, SEQUENCE], server)
    push(waiting, int(books[WAITING]), serving[server])
    books[WAITING] += 1


@jit
def _settle(
    serving: np.ndarray,
    waiting: np.ndarray,
    books: np.ndarray,
    row: np.ndarray,
    slope: float,
    preemptive: bool,
    now: float,
    events: np.ndarray,
) -> None:
    """The decision in full: fill idle servers, then let lower ranks interrupt higher ones."""
    servers = serving.shape[0]
    while books[BUSY] < servers and books[WAITING] > 0:
        pop(waiting, int(books[WAITING]), row)
        books[WAITING] -= 1
        _start(serving, row, int(books[BUSY]), now, events, books)
        books[BUSY] += 1
    while preemptive and books[WAITING] > 0:
        worst, worst_rank = _worst(serving, slope, now)
        if waiting[0, RANK] >= worst_rank:
            break
        pop(waiting, int(books[WAITING]), row)
        books[WAITING] -= 1
        _set_aside(serving, waiting, books, worst, worst_rank, now, events)
        _start(serving, row, worst, now, events, books)
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
    waiting: np.ndarray,
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
    books, serving, waiting
        The state, changed in place; ``waiting`` has room for all jobs of the block.
    slope, preemptive
        The rule: rank = key + slope * attained service, and whether it interrupts.
    """
    servers = serving.shape[0]
    row = np.zeros(FIELDS)
    jobs = arrival.shape[0]
    drain = following == math.inf
    index = 0
    while index < jobs or (drain and books[BUSY] > 0):
        now = arrival[index] if index < jobs else math.inf
        # Completions up to this arrival. Those at its very instant only free their server: the
        # decision waits until the arrivals have been seen.
        while books[BUSY] > 0:
            busy = int(books[BUSY])
            done = 0
            for server in range(1, busy):
                if serving[server, TIME] < serving[done, TIME] or (
                    serving[server, TIME] == serving[done, TIME]
                    and serving[server, SEQUENCE] < serving[done, SEQUENCE]
                ):
                    done = server
            finish = serving[done, TIME]
            if finish > now:
                break
            advance(books, finish)
            sequence = int(serving[done, SEQUENCE])
            waited = serving[done, WAITED]
            needed = serving[done, SIZE]
            if counted_from <= sequence < counted_to:
                books[OWED] -= 1
                count_job(moments, histograms, int(serving[done, KIND]), waited, needed)
            if response.shape[0] > 0:
                response[sequence] = waited + needed
            busy -= 1
            books[BUSY] = busy
            if events.shape[0] > 0:
                note(events, books, finish, FINISH, sequence, done)
            length = int(books[WAITING])
            if length > 0 and finish < now:
                pop(waiting, length, row)
                books[WAITING] = length - 1
                _start(serving, row, done, finish, events, books)
                books[BUSY] = busy + 1
            elif done != busy:
                for field in range(FIELDS):
                    serving[done, field] = serving[busy, field]
        if index >= jobs:
            continue
        advance(books, now)
        later = arrival[index + 1] if index + 1 < jobs else following
        sequence = first_sequence + index
        if counted_from <= sequence < counted_to:
            books[OWED] += 1
        row[RANK] = key[index]
        row[SEQUENCE] = sequence
        row[TIME] = now
        row[WAITED] = 0.0
        row[SIZE] = size[index]
        row[LEFT] = size[index]
        row[KIND] = kind[index]
        row[STARTED] = 0.0
        books[WORK] += size[index]
        if events.shape[0] > 0:
            note(events, books, now, ARRIVE, sequence, -1)
        busy, length = int(books[BUSY]), int(books[WAITING])
        alone = later > now and books[UNDECIDED] == 0.0
        if alone and busy < servers and length == 0:
            _start(serving, row, busy, now, events, books)
            books[BUSY] = busy + 1
        elif alone and busy == servers:
            if preemptive:
                worst, worst_rank = _worst(serving, slope, now)
            if preemptive and row[RANK] < worst_rank:
                _set_aside(serving, waiting, books, worst, worst_rank, now, events)
                _start(serving, row, worst, now, events, books)
            else:
                push(waiting, length, row)
                books[WAITING] = length + 1
        else:
            push(waiting, length, row)
            books[WAITING] = length + 1
            books[UNDECIDED] = 1.0
            if later > now:
                _settle(serving, waiting, books, row, slope, preemptive, now, events)
        index += 1


@jit
def _rebase(
    serving: np.ndarray, waiting: np.ndarray, books: np.ndarray, shift: float, key_shift: float
) -> None:
    """Move the origin of time forward by ``shift``, and of the keys by ``key_shift``.

    A clock that ran on for 1e10 jobs would lose digits in double precision. The work in the
    system is added up anew, so that rounding does not pile up in it either.
    """
    books[CLOCK] -= shift
    work = 0.0
    for server in range(int(books[BUSY])):
        serving[server, TIME] -= shift
        serving[server, RANK] -= key_shift
        work += serving[server, TIME] - books[CLOCK]
    for place in range(int(books[WAITING])):
        waiting[place, TIME] -= shift
        waiting[place, RANK] -= key_shift
        work += waiting[place, LEFT]
    books[WORK] = work


class Ranked(Kernel):
    """A queue under a rule of fixed or falling ranks, and what it holds between two blocks of jobs.

    Parameters
    ----------
    servers
        Number of unit-speed servers.
    slope, preemptive
        The rule: rank = key + slope * attained service, and whether it interrupts.
    """

    def __init__(self, servers: int, slope: float, preemptive: bool) -> None:
        self.slope = slope if preemptive else 0.0
        self.preemptive = preemptive
        self.serving = np.zeros((servers, FIELDS))
        self.waiting = np.zeros((1 << 12, FIELDS))
        self.books = np.zeros(BOOKS)

    def serve(self, arrival: np.ndarray, *rest: Any) -> None:
        """Run the jobs of one block; the arguments are those of :func:`_serve` up to ``events``."""
        self.waiting = with_room(self.waiting, int(self.books[WAITING]) + len(arrival))
        _serve(arrival, *rest, self.books, self.slope, self.preemptive, self.serving, self.waiting)

    def rebase(self, shift: float, key_shift: float) -> None:
        """Move the origin of time, and of the keys."""
        _rebase(self.serving, self.waiting, self.books, shift, key_shift)
