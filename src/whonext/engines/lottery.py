"""The compiled queue for random order: whoever waits has the same chance to start next.

The waiting jobs stand in a line in order of arrival, and each start takes the next number of a
sequence of draws, so that the reference engine, given the same draws, picks the same jobs. Time is
measured, and one instant treated, as in :mod:`whonext.engines.ranked`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from whonext.engines.books import (
    ARRIVE,
    BUSY,
    CLOCK,
    FINISH,
    OWED,
    START,
    UNDECIDED,
    WAITING,
    WORK,
    Kernel,
    advance,
    count_job,
    note,
    with_room,
)
from whonext.engines.jit import jit

__all__ = ["Lottery"]

# Columns of a job, in the line and in service; TIME is when it joined, or will finish.
TIME, SIZE, KIND, PLACE, WAITED = range(5)
COLUMNS = 5


@jit
def _start(
    serving: np.ndarray,
    server: int,
    line: np.ndarray,
    draw: float,
    now: float,
    events: np.ndarray,
    books: np.ndarray,
) -> None:
    """Draw one of those in line and give it the place ``server``."""
    waiting = int(books[WAITING])
    chosen = min(int(draw * waiting), waiting - 1)
    for column in range(COLUMNS):
        serving[server, column] = line[chosen, column]
    serving[server, WAITED] = now - line[chosen, TIME]
    serving[server, TIME] = now + line[chosen, SIZE]
    for place in range(chosen, waiting - 1):
        for column in range(COLUMNS):
            line[place, column] = line[place + 1, column]
    books[WAITING] = waiting - 1
    if events.shape[0] > 0:
        note(events, books, now, START, serving[server, PLACE], server)


@jit
def _serve(
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
    serving: np.ndarray,
    line: np.ndarray,
    draws: np.ndarray,
) -> int:
    """Run a block; return how many draws were used."""
    servers = serving.shape[0]
    coming = arrival.shape[0]
    drain = following == math.inf
    used = 0
    index = 0
    while index < coming or (drain and books[BUSY] > 0):
        now = arrival[index] if index < coming else math.inf
        while books[BUSY] > 0:
            busy = int(books[BUSY])
            done = 0
            for server in range(1, busy):
                if serving[server, TIME] < serving[done, TIME]:
                    done = server
            finish = serving[done, TIME]
            if finish > now:
                break
            advance(books, finish)
            place = serving[done, PLACE]
            waited, needed = serving[done, WAITED], serving[done, SIZE]
            if counted_from <= place < counted_to:
                books[OWED] -= 1
                count_job(moments, histograms, int(serving[done, KIND]), waited, needed)
            if response.shape[0] > 0:
                response[int(place)] = waited + needed
            books[BUSY] = busy - 1
            if events.shape[0] > 0:
                note(events, books, finish, FINISH, place, done)
            if books[WAITING] > 0 and finish < now:
                books[BUSY] = busy
                _start(serving, done, line, draws[used], finish, events, books)
                used += 1
            elif done != busy - 1:
                for column in range(COLUMNS):
                    serving[done, column] = serving[busy - 1, column]
        if index >= coming:
            continue
        advance(books, now)
        later = arrival[index + 1] if index + 1 < coming else following
        place = float(first_sequence + index)
        if counted_from <= place < counted_to:
            books[OWED] += 1
        end = int(books[WAITING])
        line[end, TIME] = now
        line[end, SIZE] = size[index]
        line[end, KIND] = kind[index]
        line[end, PLACE] = place
        books[WAITING] = end + 1
        books[WORK] += size[index]
        if events.shape[0] > 0:
            note(events, books, now, ARRIVE, place, -1)
        while later > now and books[BUSY] < servers and books[WAITING] > 0:
            server = int(books[BUSY])
            books[BUSY] = server + 1
            _start(serving, server, line, draws[used], now, events, books)
            used += 1
        books[UNDECIDED] = 0.0
        index += 1
    return used


class Lottery(Kernel):
    """Random order.

    Parameters
    ----------
    servers
        Number of unit-speed servers.
    draws
        Gives the draws from the one of a number on, so many.
    """

    def __init__(self, servers: int, draws: Callable[[int, int], np.ndarray]) -> None:
        super().__init__(columns=0)
        self.serving = np.zeros((servers, COLUMNS))
        self.line = np.zeros((0, COLUMNS))
        self.draws = draws
        self.starts = 0

    def serve(self, arrival: np.ndarray, *rest: Any) -> None:
        """Run the jobs of one block; the arguments are those of the kernel up to ``events``."""
        most = self.inside + len(arrival)
        self.line = with_room(self.line, most)
        draws = self.draws(self.starts, most)
        self.starts += _serve(arrival, *rest, self.books, self.serving, self.line, draws)

    def rebase(self, shift: float, key_shift: float) -> None:  # noqa: ARG002 - as for all kernels
        """Move the origin of time."""
        self.books[CLOCK] -= shift
        self.serving[:, TIME] -= shift
        self.line[:, TIME] -= shift
