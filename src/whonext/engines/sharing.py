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
    BUSY,
    CLOCK,
    FINISH,
    OWED,
    RANK,
    SEQUENCE,
    SLOT,
    START,
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

# Columns of a job inside. Under rising ranks: its rank at the end, its place in the run (-1 for an
# unused row), and its two children in the skew heap of its level (-1 for none).
TIME, SIZE, KIND, END, PLACE, FIRST, SECOND = range(7)
# Columns of a level.
LEVEL, ROOT, JOBS = range(3)


@jit
def _leave(
    arrived: float,
    sequence: float,
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
        response[int(sequence)] = waited + size
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
    jobs: np.ndarray,
    free: np.ndarray,
) -> None:
    """Run a block under processor sharing; the rank in the heap is the clock's value at the end.

    ``key`` is not used; the other arguments are as for the kernel for fixed ranks.
    """
    coming = arrival.shape[0]
    slots = free.shape[0]
    drain = following == math.inf
    index = 0
    while index < coming or (drain and books[BUSY] > 0):
        now = arrival[index] if index < coming else math.inf
        while books[BUSY] > 0:
            present = int(books[BUSY] + books[WAITING])
            rate = books[BUSY] / present
            finish = books[CLOCK] + max(heap[0, RANK] - books[VIRTUAL], 0.0) / rate
            if finish > now:
                books[VIRTUAL] += (now - books[CLOCK]) * rate
                break
            advance(books, finish)
            rank, sequence, slot = heap[0, RANK], heap[0, SEQUENCE], int(heap[0, SLOT])
            pop(heap, present)
            free[slots - present] = slot
            present -= 1
            books[VIRTUAL] = rank if present > 0 else 0.0
            books[BUSY] = min(present, servers)
            books[WAITING] = present - books[BUSY]
            _leave(
                jobs[slot, TIME],
                sequence,
                int(jobs[slot, KIND]),
                jobs[slot, SIZE],
                finish,
                counted_from,
                counted_to,
                moments,
                histograms,
                response,
                events,
                books,
            )
        if index >= coming:
            continue
        advance(books, now)
        sequence = float(first_sequence + index)
        if counted_from <= sequence < counted_to:
            books[OWED] += 1
        present = int(books[BUSY] + books[WAITING])
        slot = free[slots - present - 1]
        jobs[slot, TIME] = now
        jobs[slot, SIZE] = size[index]
        jobs[slot, KIND] = kind[index]
        push(heap, present, books[VIRTUAL] + size[index], sequence, slot)
        books[WORK] += size[index]
        books[BUSY] = min(present + 1, servers)
        books[WAITING] = present + 1 - books[BUSY]
        if events.shape[0] > 0:
            note(events, books, now, ARRIVE, sequence, -1)
            note(events, books, now, START, sequence, -1)
        index += 1


@jit
def _rebase_alike(heap: np.ndarray, jobs: np.ndarray, books: np.ndarray, shift: float) -> None:
    """Move the origins of time and of the shared clock."""
    books[CLOCK] -= shift
    for place in range(int(books[BUSY] + books[WAITING])):
        jobs[int(heap[place, SLOT]), TIME] -= shift
        heap[place, RANK] -= books[VIRTUAL]
    books[VIRTUAL] = 0.0


@jit
def _before(nodes: np.ndarray, a: int, b: int) -> bool:
    """Whether job ``a`` leaves before job ``b`` of the same level."""
    return nodes[a, END] < nodes[b, END] or (
        nodes[a, END] == nodes[b, END] and nodes[a, PLACE] < nodes[b, PLACE]
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
    coming = arrival.shape[0]
    drain = following == math.inf
    index = 0
    while index < coming or (drain and depth > 0):
        now = arrival[index] if index < coming else math.inf
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
                nodes[root, PLACE],
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
            nodes[root, PLACE] = -1
        if index >= coming:
            continue
        advance(books, now)
        sequence = float(first_sequence + index)
        if counted_from <= sequence < counted_to:
            books[OWED] += 1
        inside = int(books[BUSY] + books[WAITING])
        node = free[len(free) - inside - 1]
        nodes[node, END] = key[index] + size[index]
        nodes[node, PLACE] = sequence
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
        if nodes[node, PLACE] >= 0:
            nodes[node, TIME] -= shift
            nodes[node, END] -= key_shift
    for level in range(depth):
        levels[level, LEVEL] -= key_shift


class Alike(Kernel):
    """Processor sharing.

    Parameters
    ----------
    servers
        Number of unit-speed servers.
    """

    def __init__(self, servers: int) -> None:
        super().__init__(columns=3)
        self.servers = servers

    def serve(self, arrival: np.ndarray, *rest: Any) -> None:
        """Run the jobs of one block; the arguments are those of the kernel up to ``events``."""
        self.make_room(len(arrival))
        _serve_alike(arrival, *rest, self.books, self.servers, self.heap, self.jobs, self.free)

    def rebase(self, shift: float, key_shift: float) -> None:  # noqa: ARG002 - as for all kernels
        """Move the origin of time."""
        _rebase_alike(self.heap, self.jobs, self.books, shift)


class Rising(Kernel):
    """One server under a rising rank."""

    def __init__(self) -> None:
        super().__init__(columns=7)
        self.levels = np.zeros((0, 3))
        self.depth = 0

    def make_room(self, coming: int) -> None:
        """Let ``coming`` more jobs in."""
        had = len(self.jobs)
        super().make_room(coming)
        self.jobs[had:, PLACE] = -1
        self.levels = with_room(self.levels, self.inside + coming)

    def serve(self, arrival: np.ndarray, *rest: Any) -> None:
        """Run the jobs of one block; the arguments are those of the kernel up to ``events``."""
        self.make_room(len(arrival))
        self.depth = _serve_rising(
            arrival, *rest, self.books, self.jobs, self.free, self.levels, self.depth
        )

    def rebase(self, shift: float, key_shift: float) -> None:
        """Move the origins of time and of the ranks."""
        _rebase_rising(self.jobs, self.levels, self.depth, self.books, shift, key_shift)
