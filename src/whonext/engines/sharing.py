"""The compiled queues for rules that share a server: all alike (PS), or by rising ranks (FB, LRPT).

Both take the arguments of the kernel for fixed ranks (:mod:`whonext.engines.ranked`), and tell
time from the last arrival of the block before.

*All alike* (PS, any number of servers): the jobs attain service at one common rate. The service
that a job present all along would have attained is a clock for all of them: a job leaves when that
clock has moved on by the job's size.

*Rising ranks* (one server): rank = key + attained service. Jobs of one rank form a level and share
the server; the lowest level climbs until it meets the next one, and the two become one. A job
leaves when its level reaches ``key + size``. The levels lie on a stack, the lowest on top; the
jobs of a level form a skew heap, so that two levels merge in logarithmic time.
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
    OWED,
    RANK,
    SEQUENCE,
    SIZE,
    START,
    TIME,
    VIRTUAL,
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

__all__ = ["Alike", "Rising"]

# A job of a level: END is the rank at which it leaves; children of the skew heap, -1 for none.
END, FIRST, SECOND = RANK, 3, 5
# Columns of a level.
LEVEL, ROOT, JOBS = range(3)


@jit
def _leave(
    arrived: float,
    sequence: int,
    kind: int,
    size: float,
    finish: float,
    counted_from: int,
    counted_to: int,
    moments: np.ndarray,
    histograms: np.ndarray,
    response: np.ndarray,
    events: np.ndarray,
    books: np.ndarray,
) -> None:
    """Keep the books for a job that leaves at ``finish``."""
    waited = finish - arrived - size
    if waited < 1e-9 * size:  # it was alone: what is left is rounding
        waited = 0.0
    if counted_from <= sequence < counted_to:
        books[OWED] -= 1
        count_job(moments, histograms, kind, waited, size)
    if response.shape[0] > 0:
        response[sequence] = waited + size
    if events.shape[0] > 0:
        note(events, books, finish, FINISH, sequence, -1)


@jit
def _serve_alike(
    arrival: np.ndarray,
    size: np.ndarray,
    kind: np.ndarray,
    key: np.ndarray,  # noqa: ARG001 - all kernels take the same arguments
    first_sequence: int,
    following: float,
    counted_from: int,
    counted_to: int,
    moments: np.ndarray,
    histograms: np.ndarray,
    response: np.ndarray,
    events: np.ndarray,
    books: np.ndarray,
    servers: int,
    heap: np.ndarray,
) -> None:
    """Run a block under processor sharing. Rows of ``heap``: RANK is the clock's value at the end.

    ``key`` is not used; the other arguments are as for the kernel for fixed ranks.
    """
    row = np.zeros(FIELDS)
    jobs = arrival.shape[0]
    drain = following == math.inf
    index = 0
    while index < jobs or (drain and books[BUSY] > 0):
        now = arrival[index] if index < jobs else math.inf
        while books[BUSY] > 0:
            present = int(books[BUSY] + books[WAITING])
            rate = books[BUSY] / present
            finish = books[CLOCK] + max(heap[0, RANK] - books[VIRTUAL], 0.0) / rate
            if finish > now:
                books[VIRTUAL] += (now - books[CLOCK]) * rate
                break
            advance(books, finish)
            pop(heap, present, row)
            present -= 1
            books[VIRTUAL] = row[RANK] if present > 0 else 0.0
            books[BUSY] = min(present, servers)
            books[WAITING] = present - books[BUSY]
            _leave(
                row[TIME],
                int(row[SEQUENCE]),
                int(row[KIND]),
                row[SIZE],
                finish,
                counted_from,
                counted_to,
                moments,
                histograms,
                response,
                events,
                books,
            )
        if index >= jobs:
            continue
        advance(books, now)
        sequence = first_sequence + index
        if counted_from <= sequence < counted_to:
            books[OWED] += 1
        present = int(books[BUSY] + books[WAITING])
        row[RANK] = books[VIRTUAL] + size[index]
        row[SEQUENCE] = sequence
        row[TIME] = now
        row[SIZE] = size[index]
        row[KIND] = kind[index]
        push(heap, present, row)
        books[WORK] += size[index]
        books[BUSY] = min(present + 1, servers)
        books[WAITING] = present + 1 - books[BUSY]
        if events.shape[0] > 0:
            note(events, books, now, ARRIVE, sequence, -1)
            note(events, books, now, START, sequence, -1)
        index += 1


@jit
def _rebase_alike(heap: np.ndarray, books: np.ndarray, shift: float) -> None:
    """Move the origins of time and of the shared clock."""
    books[CLOCK] -= shift
    for place in range(int(books[BUSY] + books[WAITING])):
        heap[place, TIME] -= shift
        heap[place, RANK] -= books[VIRTUAL]
    books[VIRTUAL] = 0.0


@jit
def _before(nodes: np.ndarray, a: int, b: int) -> bool:
    """Whether job ``a`` leaves before job ``b`` of the same level."""
    return nodes[a, END] < nodes[b, END] or (
        nodes[a, END] == nodes[b, END] and nodes[a, SEQUENCE] < nodes[b, SEQUENCE]
    )


@jit
def _merge(nodes: np.ndarray, a: int, b: int) -> int:
    """Merge two skew heaps, given by their roots (-1 for none); return the root."""
    if a < 0:
        return b
    if b < 0:
        return a
    if _before(nodes, b, a):
        a, b = b, a
    root = a
    while True:
        child = int(nodes[a, SECOND])
        nodes[a, SECOND] = nodes[a, FIRST]
        if child < 0:
            nodes[a, FIRST] = b
            return root
        if _before(nodes, b, child):
            child, b = b, child
        nodes[a, FIRST] = child
        a = child


@jit
def _serve_rising(
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
    nodes: np.ndarray,
    free: np.ndarray,
    levels: np.ndarray,
    depth: int,
) -> int:
    """Run a block on one server under rank = key + attained service; return the depth of the stack.

    ``free`` is a stack of unused nodes, of which the first ``len(free) - jobs inside`` count. The
    other arguments are as for the kernel for fixed ranks.
    """
    jobs = arrival.shape[0]
    drain = following == math.inf
    index = 0
    while index < jobs or (drain and depth > 0):
        now = arrival[index] if index < jobs else math.inf
        while depth > 0:
            top = depth - 1
            sharing = levels[top, JOBS]
            root = int(levels[top, ROOT])
            to_finish = max(nodes[root, END] - levels[top, LEVEL], 0.0) * sharing
            to_merge = math.inf
            if top > 0:
                to_merge = max(levels[top - 1, LEVEL] - levels[top, LEVEL], 0.0) * sharing
            moment = books[CLOCK] + min(to_finish, to_merge)
            if moment > now:
                levels[top, LEVEL] += (now - books[CLOCK]) / sharing
                break
            advance(books, moment)
            if to_merge <= to_finish:
                below = top - 1
                levels[below, ROOT] = _merge(nodes, int(levels[below, ROOT]), root)
                levels[below, JOBS] += sharing
                depth = top
                continue
            levels[top, LEVEL] = nodes[root, END]
            levels[top, ROOT] = _merge(nodes, int(nodes[root, FIRST]), int(nodes[root, SECOND]))
            levels[top, JOBS] = sharing - 1
            if sharing == 1:
                depth = top
            inside = int(books[BUSY] + books[WAITING]) - 1
            books[BUSY] = min(inside, 1)
            books[WAITING] = inside - books[BUSY]
            if inside == 0:
                books[WORK] = 0.0
            free[len(free) - inside - 1] = root
            _leave(
                nodes[root, TIME],
                int(nodes[root, SEQUENCE]),
                int(nodes[root, KIND]),
                nodes[root, SIZE],
                moment,
                counted_from,
                counted_to,
                moments,
                histograms,
                response,
                events,
                books,
            )
            nodes[root, SEQUENCE] = -1
        if index >= jobs:
            continue
        advance(books, now)
        sequence = first_sequence + index
        if counted_from <= sequence < counted_to:
            books[OWED] += 1
        inside = int(books[BUSY] + books[WAITING])
        node = free[len(free) - inside - 1]
        nodes[node, END] = key[index] + size[index]
        nodes[node, SEQUENCE] = sequence
        nodes[node, TIME] = now
        nodes[node, SIZE] = size[index]
        nodes[node, KIND] = kind[index]
        nodes[node, FIRST] = -1
        nodes[node, SECOND] = -1
        place = depth
        while place > 0 and levels[place - 1, LEVEL] < key[index]:
            place -= 1
        if place > 0 and levels[place - 1, LEVEL] == key[index]:
            levels[place - 1, ROOT] = _merge(nodes, int(levels[place - 1, ROOT]), node)
            levels[place - 1, JOBS] += 1
        else:
            for other in range(depth, place, -1):
                for column in range(3):
                    levels[other, column] = levels[other - 1, column]
            levels[place, LEVEL] = key[index]
            levels[place, ROOT] = node
            levels[place, JOBS] = 1
            depth += 1
        books[WORK] += size[index]
        books[BUSY] = 1
        books[WAITING] = inside
        if events.shape[0] > 0:
            note(events, books, now, ARRIVE, sequence, -1)
        index += 1
    return depth


@jit
def _rebase_rising(
    nodes: np.ndarray,
    levels: np.ndarray,
    depth: int,
    books: np.ndarray,
    shift: float,
    key_shift: float,
) -> None:
    """Move the origins of time and of the ranks."""
    books[CLOCK] -= shift
    for node in range(nodes.shape[0]):
        if nodes[node, SEQUENCE] >= 0:
            nodes[node, TIME] -= shift
            nodes[node, END] -= key_shift
    for level in range(depth):
        levels[level, LEVEL] -= key_shift


class Alike(Kernel):
    """Processor sharing, and what it holds between two blocks of jobs.

    Parameters
    ----------
    servers
        Number of unit-speed servers.
    """

    def __init__(self, servers: int) -> None:
        self.servers = servers
        self.heap = np.zeros((1 << 12, FIELDS))
        self.books = np.zeros(BOOKS)

    def serve(self, arrival: np.ndarray, *rest: Any) -> None:
        """Run the jobs of one block; the arguments are those of the kernel up to ``events``."""
        inside = int(self.books[BUSY] + self.books[WAITING])
        self.heap = with_room(self.heap, inside + len(arrival))
        _serve_alike(arrival, *rest, self.books, self.servers, self.heap)

    def rebase(self, shift: float, key_shift: float) -> None:  # noqa: ARG002 - as for all kernels
        """Move the origin of time."""
        _rebase_alike(self.heap, self.books, shift)


class Rising(Kernel):
    """One server under a rising rank, and what it holds between two blocks of jobs."""

    def __init__(self) -> None:
        self.books = np.zeros(BOOKS)
        self.depth = 0
        self.nodes = np.zeros((0, FIELDS))
        self.levels = np.zeros((0, 3))
        self.free = np.zeros(0, dtype=np.int64)

    def serve(self, arrival: np.ndarray, *rest: Any) -> None:
        """Run the jobs of one block; the arguments are those of the kernel up to ``events``."""
        inside = int(self.books[BUSY] + self.books[WAITING])
        self._make_room(inside, inside + len(arrival))
        self.depth = _serve_rising(
            arrival, *rest, self.books, self.nodes, self.free, self.levels, self.depth
        )

    def _make_room(self, inside: int, needed: int) -> None:
        had = len(self.nodes)
        self.nodes = with_room(self.nodes, needed)
        self.levels = with_room(self.levels, needed)
        new = len(self.nodes)
        if new > had:  # unused nodes come first in the stack
            self.nodes[had:, SEQUENCE] = -1
            unused = self.free[: had - inside]
            self.free = np.concatenate(
                [np.arange(had, new), unused, np.zeros(inside, dtype=np.int64)]
            )

    def rebase(self, shift: float, key_shift: float) -> None:
        """Move the origins of time and of the ranks."""
        _rebase_rising(self.nodes, self.levels, self.depth, self.books, shift, key_shift)
