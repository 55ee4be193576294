"""Rules that serve several jobs at once on each server."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from whonext.policies.base import Job, Policy, ratio
from whonext.policies.size_based import SizeBased

__all__ = ["Fb", "Lrpt", "Ps"]


@dataclass(eq=False, repr=False)
class Ps(Policy):
    """Processor sharing: all jobs are served at once, at equal rates of at most one server each.

    The mean response time depends on the size law only through its mean. Continuous batching
    resembles it. Source: Kleinrock, Queueing Systems II (1976). Chapter, to come: Shortest first.
    """

    name = "ps"
    preemptive = True
    mean_needs_moment = 1
    shape = "shared"

    def allocate(self, jobs: Sequence[Job], servers: int, now: Any) -> tuple[dict[Job, Any], Any]:
        return dict.fromkeys(jobs, ratio(min(servers, len(jobs)), len(jobs))), math.inf


@dataclass(eq=False, repr=False)
class Fb(Policy):
    """Foreground-background, also least attained service: the least served go first.

    Equals share. Needs no sizes, and helps the short because they are never served much.
    Source: Schrage (1967). Chapter, to come: Shortest first.
    """

    name = "fb"
    preemptive = True
    slope = 1
    mean_needs_moment = 1

    def key(self, jobs: Any) -> Any:
        return 0 * jobs.arrival


@dataclass(eq=False, repr=False)
class Lrpt(SizeBased):
    """Longest remaining processing time: the most work left goes first, equals share.

    The worst that a work-conserving rule can do: on one server, everybody leaves at the end of
    the busy period. Source: Wierman and Harchol-Balter (2003). Chapter, to come: Shortest first.
    """

    name = "lrpt"
    preemptive = True
    slope = 1

    def key(self, jobs: Any) -> Any:
        return -self.length(jobs)
