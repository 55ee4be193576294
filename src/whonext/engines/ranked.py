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

import numpy as np

from whonext.engines.jit import jit
from whonext.results import (
    BINS,
    COUNT,
    FIRST_EXPONENT,
    RESPONSE_1,
    RESPONSE_2,
    SIZE_1,
    SLOWDOWN_1,
    SLOWDOWN_2,
    SUB_BINS,
    WAITING_1,
    WAITING_2,
)

__all__ = ["ARRIVE", "FIELDS", "FINISH", "PREEMPT", "RESUME", "START", "State", "rebase", "serve"]

# Columns of a row.
RANK, SEQUENCE, TIME, WAITED, SIZE, LEFT, KIND, STARTED = range(8)
FIELDS = 8  # TIME: when it joined the waiting rows, or, in service, when it will finish

# Columns of the books kept between blocks.
(
    BUSY,
    WAITING,
    CLOCK,
    WORK,
    NUMBER_AREA,
    WORK_AREA,
    BUSY_AREA,
    ELAPSED,
    OWED,
    EVENTS,
    UNDECIDED,
) = range(11)
BOOKS = 11

DROPPED_BITS = 52 - (SUB_BINS.bit_length() - 1)
FIRST_BITS = (1022 + FIRST_EXPONENT) * SUB_BINS

# Codes in the event trace.
ARRIVE, START, PREEMPT, RESUME, FINISH = range(5)


class State:
    """What the queue holds between two blocks of jobs.

    Parameters
    ----------
    servers
        Number of unit-speed servers.
    capacity
        Waiting rows to make room for at first; the room grows as needed.
    """

    def __init__(self, servers: int, capacity: int = 1 << 12) -> None:
        self.serving = np.zeros((servers, FIELDS))
        self.waiting = np.zeros((capacity, FIELDS))
        self.books = np.zeros(BOOKS)

    def make_room(self, coming: int) -> None:
        """Let ``coming`` more jobs wait."""
        needed = int(self.books[WAITING]) + coming
        if needed > len(self.waiting):
            grown = np.zeros((max(needed, 2 * len(self.waiting)), FIELDS))
            grown[: len(self.waiting)] = self.waiting
            self.waiting = grown


@jit
def _bin_of(value: float) -> int:
    """Index of the histogram bin: 64 equal steps in each power of two; bin 0 holds zero.

    The bits of a double are its exponent and then its mantissa, so its first bits are the bin.
    """
    if value <= 0.0:
        return 0
    place = int(np.float64(value).view(np.int64) >> DROPPED_BITS) - FIRST_BITS
    return min(max(place, 1), BINS - 1)


@jit
def _push(heap: np.ndarray, length: int, row: np.ndarray) -> None:
    """Put ``row`` on the heap of ``length`` rows."""
    place = length
    rank, sequence = row[RANK], row[SEQUENCE]
    while place > 0:
        parent = (place - 1) >> 1
        above = heap[parent, RANK]
        if above < rank or (above == rank and heap[parent, SEQUENCE] < sequence):
            break
        for field in range(FIELDS):
            heap[place, field] = heap[parent, field]
        place = parent
    for field in range(FIELDS):
        heap[place, field] = row[field]


@jit
def _pop(heap: np.ndarray, length: int, row: np.ndarray) -> None:
    """Move the first row of the heap of ``length`` rows into ``row``."""
    for field in range(FIELDS):
        row[field] = heap[0, field]
    last = length - 1
    rank, sequence = heap[last, RANK], heap[last, SEQUENCE]
    place = 0
    while True:
        child = 2 * place + 1
        if child >= last:
            break
        if child + 1 < last and (
            heap[child + 1, RANK] < heap[child, RANK]
            or (
                heap[child + 1, RANK] == heap[child, RANK]
                and heap[child + 1, SEQUENCE] < heap[child, SEQUENCE]
            )
        ):
            child += 1
        below = heap[child, RANK]
        if rank < below or (rank == below and sequence < heap[child, SEQUENCE]):
            break
        for field in range(FIELDS):
            heap[place, field] = heap[child, field]
        place = child
    for field in range(FIELDS):
        heap[place, field] = heap[last, field]


@jit
def _note(
    events: np.ndarray, books: np.ndarray, time: float, code: int, sequence: float, server: int
) -> None:
    """Add a line to the event trace, if one is kept."""
    line = int(books[EVENTS])
    if line < events.shape[0]:
        events[line, 0] = time
        events[line, 1] = code
        events[line, 2] = sequence
        events[line, 3] = server
        events[line, 4] = books[BUSY] + books[WAITING]
        books[EVENTS] = line + 1


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
        _note(events, books, now, RESUME if row[STARTED] else START, row[SEQUENCE], server)
    row[STARTED] = 1.0
    for field in range(FIELDS):
        serving[server, field] = row[field]


@jit
def _advance(books: np.ndarray, now: float) -> None:
    """Carry the time averages forward to ``now``."""
    step = now - books[CLOCK]
    busy = books[BUSY]
    books[NUMBER_AREA] += step * (busy + books[WAITING])
    books[WORK_AREA] += step * (books[WORK] - 0.5 * step * busy)
    books[BUSY_AREA] += step * busy
    books[WORK] -= step * busy
    books[ELAPSED] += step
    books[CLOCK] = now


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
        _note(events, books, now, PREEMPT, serving[server, SEQUENCE], server)
    _push(waiting, int(books[WAITING]), serving[server])
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
        _pop(waiting, int(books[WAITING]), row)
        books[WAITING] -= 1
        _start(serving, row, int(books[BUSY]), now, events, books)
        books[BUSY] += 1
    while preemptive and books[WAITING] > 0:
        worst, worst_rank = _worst(serving, slope, now)
        if waiting[0, RANK] >= worst_rank:
            break
        _pop(waiting, int(books[WAITING]), row)
        books[WAITING] -= 1
        _set_aside(serving, waiting, books, worst, worst_rank, now, events)
        _start(serving, row, worst, now, events, books)
    books[UNDECIDED] = 0.0


@jit
def serve(
    arrival: np.ndarray,
    size: np.ndarray,
    kind: np.ndarray,
    key: np.ndarray,
    first_sequence: int,
    following: float,
    slope: float,
    preemptive: bool,
    serving: np.ndarray,
    waiting: np.ndarray,
    books: np.ndarray,
    counted_from: int,
    counted_to: int,
    moments: np.ndarray,
    histograms: np.ndarray,
    response: np.ndarray,
    events: np.ndarray,
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
    slope, preemptive
        The rule: rank = key + slope * attained service, and whether it interrupts.
    serving, waiting, books
        The state, changed in place; ``waiting`` has room for all jobs of the block.
    counted_from, counted_to : int
        Jobs of these places in the run enter the statistics.
    moments : (classes, columns), histograms : (classes, 3, bins)
        Statistics, added to.
    response : array
        Filled by place in the run with each job's response time, if it is not empty.
    events : (lines, 5)
        Filled with the event trace, if it has lines.
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
            _advance(books, finish)
            sequence = int(serving[done, SEQUENCE])
            waited = serving[done, WAITED]
            needed = serving[done, SIZE]
            time = waited + needed
            if counted_from <= sequence < counted_to:
                books[OWED] -= 1
                k = int(serving[done, KIND])
                slowdown = time / needed
                moments[k, COUNT] += 1
                moments[k, RESPONSE_1] += time
                moments[k, RESPONSE_2] += time * time
                moments[k, WAITING_1] += waited
                moments[k, WAITING_2] += waited * waited
                moments[k, SLOWDOWN_1] += slowdown
                moments[k, SLOWDOWN_2] += slowdown * slowdown
                moments[k, SIZE_1] += needed
                histograms[k, 0, _bin_of(time)] += 1
                histograms[k, 1, _bin_of(waited)] += 1
                histograms[k, 2, _bin_of(slowdown)] += 1
            if response.shape[0] > 0:
                response[sequence] = time
            busy -= 1
            books[BUSY] = busy
            if events.shape[0] > 0:
                _note(events, books, finish, FINISH, sequence, done)
            length = int(books[WAITING])
            if length > 0 and finish < now:
                _pop(waiting, length, row)
                books[WAITING] = length - 1
                _start(serving, row, done, finish, events, books)
                books[BUSY] = busy + 1
            elif done != busy:
                for field in range(FIELDS):
                    serving[done, field] = serving[busy, field]
        if index >= jobs:
            continue
        _advance(books, now)
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
            _note(events, books, now, ARRIVE, sequence, -1)
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
                _push(waiting, length, row)
                books[WAITING] = length + 1
        else:
            _push(waiting, length, row)
            books[WAITING] = length + 1
            books[UNDECIDED] = 1.0
            if later > now:
                _settle(serving, waiting, books, row, slope, preemptive, now, events)
        index += 1


@jit
def rebase(
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
