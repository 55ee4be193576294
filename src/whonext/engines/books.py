"""What the compiled queues share: books, a heap, the statistics and the event trace.

Numba's cache of compiled code notices a change in the file of a kernel, not in the files that the
kernel calls: after a change here, `make clean` removes the caches.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

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

__all__ = [
    "Kernel",
    "advance",
    "bin_of",
    "check_room",
    "count_job",
    "note",
    "pop",
    "push",
    "with_room",
]

# Columns of a waiting job in the heap; SLOT is its row among the jobs inside.
RANK, SEQUENCE, SLOT = range(3)
HEAP_COLUMNS = 3

#: Jobs that a queue may hold, so that a run ends with a message before it fills the memory.
MOST_INSIDE = 20_000_000

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
    VIRTUAL,
) = range(12)
BOOKS = 12

DROPPED_BITS = 52 - (SUB_BINS.bit_length() - 1)
FIRST_BITS = (1022 + FIRST_EXPONENT) * SUB_BINS

# Codes in the event trace.
ARRIVE, START, PREEMPT, RESUME, FINISH = range(5)


class Kernel(ABC):
    """A compiled queue and what it holds between two blocks of jobs.

    Attributes
    ----------
    books : array
        Clock, areas and counters, in the columns named above.
    heap : array (room, 3)
        Waiting jobs by rank.
    jobs : array (room, columns)
        What is known of each job inside, in a row that it keeps until it leaves.
    free : array of int (room,)
        A stack of the rows not in use; of its entries, the last as many as are inside mean nothing.
    """

    def __init__(self, columns: int) -> None:
        self.books = np.zeros(BOOKS)
        self.heap = np.zeros((0, HEAP_COLUMNS))
        self.jobs = np.zeros((0, columns))
        self.free = np.zeros(0, dtype=np.int64)

    @property
    def inside(self) -> int:
        """Jobs in the system."""
        return int(self.books[BUSY] + self.books[WAITING])

    def make_room(self, coming: int) -> None:
        """Let ``coming`` more jobs in."""
        had, inside = len(self.jobs), self.inside
        self.jobs = with_room(self.jobs, inside + coming)
        self.heap = with_room(self.heap, inside + coming)
        now = len(self.jobs)
        if now > had:
            unused = self.free[: had - inside]
            beyond = np.zeros(inside, dtype=np.int64)
            self.free = np.concatenate([np.arange(had, now), unused, beyond])

    @abstractmethod
    def serve(self, arrival: np.ndarray, *rest: Any) -> None:
        """Run the jobs of one block, up to and including its last arrival."""

    @abstractmethod
    def rebase(self, shift: float, key_shift: float) -> None:
        """Move the origins of time and of the keys."""

    def open_window(self) -> None:
        """Begin the time averages here."""
        self.books[[NUMBER_AREA, WORK_AREA, BUSY_AREA, ELAPSED]] = 0.0

    def close_window(self) -> None:  # noqa: B027 - most kernels keep the areas up to date
        """End them here."""


def check_room(needed: int) -> None:
    """Stop a run before it fills the memory.

    Raises
    ------
    MemoryError
        If room is needed for more than :data:`MOST_INSIDE` jobs.
    """
    if needed > MOST_INSIDE:
        raise MemoryError(
            f"room is needed for {needed:,} jobs in the system, more than the {MOST_INSIDE:,} that "
            "are allowed for: with these sizes and this load the rule lets too many wait"
        )


def with_room(rows: np.ndarray, needed: int) -> np.ndarray:
    """The same rows, with room for at least ``needed`` of them.

    Raises
    ------
    MemoryError
        If that is more than :data:`MOST_INSIDE`.
    """
    if needed <= len(rows):
        return rows
    check_room(needed)
    grown = np.zeros((min(max(needed, 2 * len(rows)), MOST_INSIDE), rows.shape[1]))
    grown[: len(rows)] = rows
    return grown


@jit
def bin_of(value: float) -> int:
    """Index of the histogram bin: 64 equal steps in each power of two; bin 0 holds zero.

    The bits of a double are its exponent and then its mantissa, so its first bits are the bin.
    """
    if value <= 0.0:
        return 0
    place = int(np.float64(value).view(np.int64) >> DROPPED_BITS) - FIRST_BITS
    return min(max(place, 1), BINS - 1)


@jit
def count_job(
    moments: np.ndarray, histograms: np.ndarray, kind: int, waited: float, size: float
) -> None:
    """Count a job that has left; its response time is ``waited + size``."""
    time = waited + size
    slowdown = time / size
    moments[kind, COUNT] += 1
    moments[kind, RESPONSE_1] += time
    moments[kind, RESPONSE_2] += time * time
    moments[kind, WAITING_1] += waited
    moments[kind, WAITING_2] += waited * waited
    moments[kind, SLOWDOWN_1] += slowdown
    moments[kind, SLOWDOWN_2] += slowdown * slowdown
    moments[kind, SIZE_1] += size
    histograms[kind, 0, bin_of(time)] += 1
    histograms[kind, 1, bin_of(waited)] += 1
    histograms[kind, 2, bin_of(slowdown)] += 1


@jit
def push(heap: np.ndarray, length: int, rank: float, sequence: float, slot: int) -> None:
    """Put a job on the heap of ``length`` jobs."""
    place = length
    while place > 0:
        parent = (place - 1) >> 1
        above = heap[parent, RANK]
        if above < rank or (above == rank and heap[parent, SEQUENCE] < sequence):
            break
        for column in range(HEAP_COLUMNS):
            heap[place, column] = heap[parent, column]
        place = parent
    heap[place, RANK] = rank
    heap[place, SEQUENCE] = sequence
    heap[place, SLOT] = slot


@jit
def pop(heap: np.ndarray, length: int) -> None:
    """Drop the first job of the heap of ``length`` jobs."""
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
        for column in range(HEAP_COLUMNS):
            heap[place, column] = heap[child, column]
        place = child
    for column in range(HEAP_COLUMNS):
        heap[place, column] = heap[last, column]


@jit
def note(
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
def advance(books: np.ndarray, now: float) -> None:
    """Carry the time averages forward to ``now``."""
    step = now - books[CLOCK]
    busy = books[BUSY]
    books[NUMBER_AREA] += step * (busy + books[WAITING])
    books[WORK_AREA] += step * (books[WORK] - 0.5 * step * busy)
    books[BUSY_AREA] += step * busy
    books[WORK] -= step * busy
    books[ELAPSED] += step
    books[CLOCK] = now
