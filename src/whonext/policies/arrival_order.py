"""Rules that look only at when a job came."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from whonext.policies.base import Job, Policy

__all__ = ["Fcfs", "Lcfs", "LcfsPreemptive", "RandomOrder"]


@dataclass(eq=False, repr=False)
class Fcfs(Policy):
    """First come, first served: the reference that every other rule is held against.

    Chapter: Queues and Kendall's notation; Pollaczek-Khinchine.
    """

    name = "fcfs"
    shape = "in order"

    def key(self, jobs: Any) -> Any:
        return jobs.arrival


@dataclass(eq=False, repr=False)
class Lcfs(Policy):
    """Last come, first served: the newest waiting job starts next; nobody is interrupted.

    Mean as under FCFS, by the conservation law; the spread is larger.
    Source: Wishart (1960). Chapter: Pollaczek-Khinchine.
    """

    name = "lcfs"

    def key(self, jobs: Any) -> Any:
        return -jobs.arrival


@dataclass(eq=False, repr=False)
class LcfsPreemptive(Policy):
    """Last come, first served, preemptive resume: a new job interrupts at once.

    The mean response time depends on the size law only through its mean.
    Source: Kleinrock, Queueing Systems II (1976). Chapter: Pollaczek-Khinchine.
    """

    name = "lcfs-pr"
    preemptive = True
    mean_needs_moment = 1

    def key(self, jobs: Any) -> Any:
        return -jobs.arrival


@dataclass(eq=False, repr=False)
class RandomOrder(Policy):
    """Random order: whoever waits has the same chance to start next; nobody is interrupted.

    Mean as under FCFS; the spread lies between those of FCFS and LCFS.
    Source: Palm (1957). Chapter: Pollaczek-Khinchine.
    """

    name = "random"
    shape = "lottery"

    def __post_init__(self) -> None:
        self._key = (0, 0)
        self._starts = 0

    def seed(self, generator: np.random.Generator) -> None:
        first, second = generator.integers(0, 2**63, 2)
        self._key = (int(first), int(second))

    def draws(self, first: int, count: int) -> np.ndarray:
        """Uniform numbers for the starts from number ``first`` on; the same whenever asked for."""
        chunks = range(first // _CHUNK, (first + count) // _CHUNK + 1)
        numbers = [
            np.random.Generator(np.random.Philox(key=self._key, counter=[0, c, 0, 0])).random(
                _CHUNK
            )
            for c in chunks
        ]
        return np.concatenate(numbers)[first - chunks[0] * _CHUNK :][:count]

    def on_dispatch(self, job: Job, waiting: Sequence[Job], now: Any) -> None:
        self._starts += 1

    def _pick(self, waiting: Sequence[Job], start: int) -> Job:
        place = int(self.draws(start, 1)[0] * len(waiting))
        return waiting[min(place, len(waiting) - 1)]

    def choose(self, waiting: Sequence[Job], now: Any) -> Job:
        return self._pick(waiting, self._starts)

    def allocate(self, jobs: Sequence[Job], servers: int, now: Any) -> tuple[dict[Job, Any], Any]:
        served = [job for job in jobs if job.started]
        waiting = [job for job in jobs if not job.started]
        start = self._starts
        while waiting and len(served) < servers:
            job = self._pick(waiting, start)
            waiting.remove(job)
            served.append(job)
            start += 1
        return dict.fromkeys(served, 1), math.inf


_CHUNK = 4096
