"""Rules that look at what waiting costs: static priorities and Smith's rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from whonext.policies.base import Policy

__all__ = ["CMu", "Priority", "PriorityPreemptive", "Wspt"]


@dataclass(eq=False, repr=False)
class Priority(Policy):
    """Static priority without interruption: the first class in the list goes first.

    Within a class, first come, first served.
    Source: Cobham (1954). Chapter, to come: The c-mu rule.

    Parameters
    ----------
    order
        Names of the classes, first served first, joined by ``>``; empty for the order in which
        the workload lists them. A class left out comes after those named.
    """

    name = "priority"
    order: str = ""

    def __post_init__(self) -> None:
        self._rank_of_kind: np.ndarray | None = None

    def bind(self, workload: Any, servers: int) -> None:
        if not self.order:
            return
        names = list(workload.names)
        first = self.order.split(">")
        if unknown := [name for name in first if name not in names]:
            raise ValueError(
                f"order={self.order!r}: no class is called {unknown[0]!r}; "
                f"there are {', '.join(map(repr, names))}"
            )
        if len(set(first)) < len(first):
            raise ValueError(f"order={self.order!r}: each class may be named once")
        listed = first + [name for name in names if name not in first]
        self._rank_of_kind = np.array([listed.index(name) for name in names], dtype=float)

    def key(self, jobs: Any) -> Any:
        if self._rank_of_kind is None:
            return jobs.kind * 1.0
        return self._rank_of_kind[jobs.kind]


@dataclass(eq=False, repr=False)
class PriorityPreemptive(Priority):
    """Static priority, preemptive resume: a job of a better class interrupts one of a worse.

    Source: Kleinrock, Queueing Systems II (1976). Chapter, to come: The c-mu rule.
    """

    name = "priority-pr"
    preemptive = True


@dataclass(eq=False, repr=False)
class CMu(Policy):
    """The c-mu rule: classes by holding cost times service rate, largest first.

    Reads the mean size and the weight of each class, nothing about the single job.
    Source: Cox and Smith, Queues (1961). Chapter, to come: The c-mu rule.
    """

    name = "c-mu"

    def __post_init__(self) -> None:
        self._rank_of_kind: np.ndarray | None = None

    def bind(self, workload: Any, servers: int) -> None:
        index = np.array([c.weight / c.size.mean for c in workload.classes])
        self._rank_of_kind = -index

    def key(self, jobs: Any) -> Any:
        if self._rank_of_kind is None:
            raise ValueError("c-mu must be bound to a workload: it reads the classes' mean sizes")
        return self._rank_of_kind[jobs.kind]


@dataclass(eq=False, repr=False)
class Wspt(Policy):
    """Weighted shortest processing time, Smith's rule: the least size per weight goes first.

    Source: Smith (1956). Chapter, to come: Smith's rule.

    Parameters
    ----------
    by
        What stands for the processing time: ``"size"``, ``"prediction"``, or ``"cost"`` (what a
        router knows at arrival, such as the prompt's uncached tokens).
    """

    name = "wspt"
    by: str = "size"

    def __post_init__(self) -> None:
        if self.by not in ("size", "prediction", "cost"):
            raise ValueError(f"by={self.by!r}: wspt orders by 'size', 'prediction' or 'cost'")
        self.needs = frozenset({self.by}) - {"cost"}

    def key(self, jobs: Any) -> Any:
        return getattr(jobs, self.by) / jobs.weight
