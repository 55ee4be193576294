"""Rules that move a job's arrival time: deadlines and boosts."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import integrate, optimize

from whonext.policies.base import Policy
from whonext.policies.size_based import SizeBased

__all__ = ["Boost", "Edf", "EdfPreemptive", "GammaBoost", "decay_rate"]


@dataclass(eq=False, repr=False)
class Edf(Policy):
    """Earliest deadline first, nobody interrupted: arrival time plus the slack of the class.

    Source: Jackson (1960). Chapter, to come: Where index rules stop.

    Parameters
    ----------
    slack
        Time that each class has, in the order of the workload's classes, joined by ``/``; one
        number for all.
    """

    name = "edf"
    slack: str = "0"

    def __post_init__(self) -> None:
        try:
            self._slack = np.array([float(each) for each in str(self.slack).split("/")])
        except ValueError:
            self._slack = np.array([math.nan])
        if not (np.isfinite(self._slack) & (self._slack >= 0)).all():
            raise ValueError(
                f"slack={self.slack!r}: give each class a time of 0 or more, as in 0.5/10"
            )

    def bind(self, workload: Any, servers: int) -> None:
        if len(self._slack) not in (1, len(workload.classes)):
            raise ValueError(
                f"slack={self.slack!r}: gives {len(self._slack)} times, "
                f"and there are {len(workload.classes)} classes"
            )

    def key(self, jobs: Any) -> Any:
        if len(self._slack) == 1:
            return jobs.arrival + self._slack[0]
        return jobs.arrival + self._slack[jobs.kind]


@dataclass(eq=False, repr=False)
class EdfPreemptive(Edf):
    """Earliest deadline first, preemptive resume.

    Source: Liu and Layland (1973). Chapter, to come: Where index rules stop.
    """

    name = "edf-pr"
    preemptive = True


@dataclass(eq=False, repr=False)
class Boost(SizeBased):
    """Boost: serve the earliest *boosted* arrival, nobody interrupted.

    A job is treated as if it had come earlier, by ``reach`` times a fall-off in its size:
    ``arrival - reach * exp(-size / scale)``.
    Source: Yu and Scully (2024). Chapter, to come: Tail optimality on one server.

    Parameters
    ----------
    reach
        Largest boost, that of a job of size 0.
    scale
        Size at which the boost has fallen to 1/e.
    """

    name = "boost"
    reach: float = 1.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("reach", "scale"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise ValueError(f"{name}={value}: must be a positive, finite number")

    def boost(self, size: Any) -> Any:
        """How much earlier a job of this size counts as having come."""
        return self.reach * np.exp(-np.asarray(size, dtype=float) / self.scale)

    def key(self, jobs: Any) -> Any:
        return jobs.arrival - self.boost(self.length(jobs))


@dataclass(eq=False, repr=False)
class GammaBoost(SizeBased):
    """Gamma-Boost: the boost that is best for the far tail when sizes have a light one.

    With gamma the rate at which the FCFS tail decays, a job of size s is boosted by
    ``log(1 / (1 - exp(-gamma s))) / gamma``.
    Source: Yu and Scully (2024). Chapter, to come: Tail optimality on one server.
    """

    name = "gamma-boost"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._gamma = math.nan

    def bind(self, workload: Any, servers: int) -> None:
        if servers != 1:
            raise ValueError(f"servers={servers}: gamma-boost is defined on one server")
        self._gamma = decay_rate(workload.size, workload.rate(servers))

    def key(self, jobs: Any) -> Any:
        size = np.asarray(self.length(jobs), dtype=float)
        return jobs.arrival + np.log(-np.expm1(-self._gamma * size)) / self._gamma


def decay_rate(size: Any, arrival_rate: float) -> float:
    """Rate at which the FCFS tail decays: the positive root of rate * (E[exp(gS)] - 1) = g.

    Parameters
    ----------
    size : Distribution
        Must have a light tail: E[exp(gS)] finite for some g > 0.
    arrival_rate
        Jobs per unit of time; the load must be below 1.

    Raises
    ------
    ValueError
        If the tail of the law is heavier than exponential, or the load is not below 1.

    Examples
    --------
    >>> from whonext import Exponential
    >>> round(decay_rate(Exponential(1), 0.8), 6)
    0.2
    """
    if not arrival_rate * size.mean < 1:
        raise ValueError(
            f"arrival_rate={arrival_rate:g}: at a load of {arrival_rate * size.mean:g} the tail "
            "does not decay; the load must be below 1"
        )
    near, far = (_where_tail_is(size, p) for p in (1e-30, 1e-300))
    if far > 12 * near:  # an exponential tail gives 10, a lighter one less
        raise ValueError(
            f"size={size.spec}: its tail is heavier than exponential, so the FCFS tail has no "
            "rate of decay"
        )

    def excess(g: float) -> float:
        # E[exp(gS)] - 1 is g times the integral of exp(gx) P[S > x]
        def integrand(x: float) -> float:
            left = float(size.tail(x))
            return math.exp(min(g * x + math.log(left), 600.0)) if left > 0 else 0.0

        cuts = [0.0, near / 30, near, far]
        parts = [integrate.quad(integrand, a, b, limit=400)[0] for a, b in itertools.pairwise(cuts)]
        return arrival_rate * sum(parts) - 1

    high = 0.5 / size.mean
    while excess(high) < 0:
        high *= 1.5
    return float(optimize.brentq(excess, 0.0, high, xtol=1e-14))


def _where_tail_is(size: Any, probability: float) -> float:
    """The point at which P[S > x] has fallen to ``probability``."""
    low, high = 0.0, size.mean
    while size.tail(high) > probability and high < 1e300:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if size.tail(middle) > probability else (low, middle)
    return high
