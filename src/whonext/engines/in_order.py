"""The compiled queue for first come, first served: each job's times are known when it comes.

A job starts when it has come and a server is free, whichever is later; nothing that comes after it
matters (Lindley 1952 on one server, Kiefer and Wolfowitz 1955 on several). So there is no heap and
no event: one pass over the jobs.

The time averages over a window are sums over the jobs that come in it, plus what the jobs inside
at its beginning still have before them, less what those inside at its end have. A ring of the
jobs inside is kept for that.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from whonext.engines.books import (
    BUSY_AREA,
    CLOCK,
    ELAPSED,
    NUMBER_AREA,
    WORK_AREA,
    Kernel,
    check_room,
    count_job,
)
from whonext.engines.jit import jit

__all__ = ["InOrder"]


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
    events: np.ndarray,  # noqa: ARG001
    books: np.ndarray,
    free_at: np.ndarray,
    ring: np.ndarray,
    ends: np.ndarray,
) -> None:
    """Run a block.

    ``ring`` holds (finish, size) of the jobs inside, from ``ends[0]`` up to ``ends[1]``. The other
    arguments are as for the kernel for fixed ranks.
    """
    servers = free_at.shape[0]
    mask = ring.shape[0] - 1
    head, tail = ends[0], ends[1]
    keep = response.shape[0] > 0
    number = work = busy = 0.0
    now = books[CLOCK]
    for index in range(arrival.shape[0]):
        now = arrival[index]
        needed = size[index]
        server = 0
        for other in range(1, servers):
            if free_at[other] < free_at[server]:
                server = other
        start = max(free_at[server], now)
        waited = start - now
        finish = start + needed
        free_at[server] = finish
        while head < tail and ring[head & mask, 0] <= now:
            head += 1
        ring[tail & mask, 0] = finish
        ring[tail & mask, 1] = needed
        tail += 1
        number += waited + needed
        work += needed * (waited + 0.5 * needed)
        busy += needed
        sequence = first_sequence + index
        if counted_from <= sequence < counted_to:
            count_job(moments, histograms, kind[index], waited, needed)
        if keep:
            response[sequence] = waited + needed
    if following == math.inf:  # run empty
        for server in range(servers):
            now = max(now, free_at[server])
        head = tail
    ends[0], ends[1] = head, tail
    books[NUMBER_AREA] += number
    books[WORK_AREA] += work
    books[BUSY_AREA] += busy
    books[ELAPSED] += now - books[CLOCK]
    books[CLOCK] = now


class InOrder(Kernel):
    """First come, first served, and what it holds between two blocks of jobs.

    Parameters
    ----------
    servers
        Number of unit-speed servers.
    """

    def __init__(self, servers: int) -> None:
        super().__init__(columns=0)
        self.free_at = np.zeros(servers)
        self.ring = np.zeros((1 << 12, 2))
        self.ends = np.zeros(2, dtype=np.int64)

    def serve(self, arrival: np.ndarray, *rest: Any) -> None:
        """Run the jobs of one block; the arguments are those of the kernel up to ``events``."""
        self.make_room(len(arrival))
        _serve(arrival, *rest, self.books, self.free_at, self.ring, self.ends)

    def _rows(self) -> np.ndarray:
        """Rows of the ring that hold jobs, some of which may have left."""
        return self.ring[np.arange(*self.ends) & (len(self.ring) - 1)]

    def make_room(self, coming: int) -> None:
        """Let ``coming`` more jobs in."""
        inside = self._rows()
        needed = 1 << (len(inside) + coming).bit_length()  # a power of two, for the ring's mask
        if needed > len(self.ring):
            check_room(len(inside) + coming)
            self.ring = np.zeros((needed, 2))
            self.ring[: len(inside)] = inside
            self.ends[:] = 0, len(inside)

    def rebase(self, shift: float, key_shift: float) -> None:  # noqa: ARG002 - as for all kernels
        """Move the origin of time."""
        self.books[CLOCK] -= shift
        self.free_at -= shift
        self.ring[:, 0] -= shift

    def open_window(self) -> None:
        """Begin the time averages here: with what the jobs inside have before them."""
        super().open_window()
        for place, value in self._ahead().items():
            self.books[place] += value

    def close_window(self) -> None:
        """End them here: less what the jobs inside have before them."""
        for place, value in self._ahead().items():
            self.books[place] -= value

    def _ahead(self) -> dict[int, float]:
        """What the jobs inside will yet add to the areas."""
        inside = self._rows()
        finish, size = inside[inside[:, 0] > self.books[CLOCK]].T
        time = finish - self.books[CLOCK]
        served = np.minimum(time, size)  # service to come
        return {
            NUMBER_AREA: float(time.sum()),
            WORK_AREA: float((size * (time - served) + served**2 / 2).sum()),
            BUSY_AREA: float(served.sum()),
        }
