"""Rules that look only at when a job came."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from whonext.policies.base import Policy

__all__ = ["Fcfs", "Lcfs", "LcfsPreemptive"]


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
