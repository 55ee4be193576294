"""Rules that look at how much service a job needs, true or predicted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from whonext.policies.base import Policy

__all__ = ["Ljf", "Psjf", "SizeBased", "Sjf", "Srpt"]


@dataclass(eq=False, repr=False)
class SizeBased(Policy):
    """A rule that reads the size of a job, or the prediction of it.

    Parameters
    ----------
    by
        ``"size"`` (the true one) or ``"prediction"``.
    """

    by: str = "size"

    def __post_init__(self) -> None:
        if self.by not in ("size", "prediction"):
            raise ValueError(f"by={self.by!r}: {self.name} orders by 'size' or by 'prediction'")
        self.needs = frozenset({self.by})

    def length(self, jobs: Any) -> Any:
        """The column that the rule orders by."""
        return getattr(jobs, self.by)


@dataclass(eq=False, repr=False)
class Sjf(SizeBased):
    """Shortest job first: of the jobs waiting, the shortest starts next; nobody is interrupted.

    Source: Phipps (1956). Chapter, to come: Shortest first.
    """

    name = "sjf"

    def key(self, jobs: Any) -> Any:
        return self.length(jobs)


@dataclass(eq=False, repr=False)
class Ljf(SizeBased):
    """Longest job first, nobody interrupted: the wrong way round on one server, for contrast.

    Chapter, to come: Shortest first.
    """

    name = "ljf"

    def key(self, jobs: Any) -> Any:
        return -self.length(jobs)


@dataclass(eq=False, repr=False)
class Psjf(SizeBased):
    """Preemptive shortest job first: the least original size is served, however much is left.

    Source: Wierman and Harchol-Balter (2003). Chapter, to come: Shortest first.
    """

    name = "psjf"
    preemptive = True
    mean_needs_moment = 1

    def key(self, jobs: Any) -> Any:
        return self.length(jobs)


@dataclass(eq=False, repr=False)
class Srpt(SizeBased):
    """Shortest remaining processing time: the least work left is served.

    No rule has a smaller mean response time on one server (Schrage 1968). A predicted remainder
    that falls below zero stays first in line.
    Source: Schrage and Miller (1966). Chapter, to come: Shortest first.
    """

    name = "srpt"
    preemptive = True
    slope = -1
    mean_needs_moment = 1

    def key(self, jobs: Any) -> Any:
        return self.length(jobs)
