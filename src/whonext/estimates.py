"""What a simulation may honestly claim: intervals, and the reasons for having none.

The usual normal interval for a mean needs a finite variance. With a Pareto law of index 1.5 the
nominal 95 % interval covers the truth 80 times in 100, and more jobs do not help; where theory
says that the variance is infinite, no such interval is printed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

__all__ = ["Honesty", "Score", "honesty", "interval", "standard_score"]

#: Exceedances that each replication must have before a quantile gets an interval.
ENOUGH = 10


def interval(values: Any, level: float = 0.95) -> tuple[float, float] | None:
    """Student's interval for the mean of independent replications.

    Parameters
    ----------
    values : array of shape (replications,)
        One estimate a replication.
    level
        Nominal coverage.

    Returns
    -------
    (low, high), or None with fewer than two values.

    Examples
    --------
    >>> low, high = interval([4.9, 5.0, 5.1])
    >>> round(low, 3), round(high, 3)
    (4.752, 5.248)
    """
    values = np.asarray(values, dtype=float)
    if len(values) < 2 or not np.isfinite(values).all():
        return None
    centre = float(values.mean())
    half = float(
        stats.t.ppf(0.5 + level / 2, len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values))
    )
    return centre - half, centre + half


@dataclass(frozen=True)
class Score:
    """How far replications are from a value that they should have on average.

    Attributes
    ----------
    z
        Their distance in standard errors, turned from Student's law into the standard normal one:
        a mean whose interval of level L just reaches the value has the |z| of level L.
    half_width
        Half of their 95 % interval.
    """

    z: float
    half_width: float


def standard_score(values: Any, expected: float) -> Score:
    """Distance of independent replications from the value expected.

    Where they are normal around it, z is standard normal whatever their number, so that scores of
    many simulations can be judged together.

    Parameters
    ----------
    values : array of shape (replications,)
        One estimate a replication; at least two.
    expected
        What theory says.

    Raises
    ------
    ValueError
        With fewer than two values.

    Examples
    --------
    >>> round(standard_score([4.9, 5.0, 5.1], 4.751586).z, 3)
    1.96
    """
    values = np.asarray(values, dtype=float)
    bounds = interval(values)
    if bounds is None:
        raise ValueError(f"values={values}: at least two finite replications are needed")
    distance = float(values.mean()) - expected
    error = values.std(ddof=1) / math.sqrt(len(values))
    if error == 0:
        return Score(math.copysign(math.inf, distance) if distance else 0.0, 0.0)
    beyond = stats.t.sf(abs(distance) / error, len(values) - 1)
    return Score(
        math.copysign(float(stats.norm.isf(beyond)), distance), (bounds[1] - bounds[0]) / 2
    )


@dataclass(frozen=True)
class Honesty:
    """Whether a measure has a finite mean and a finite variance, and why not.

    Attributes
    ----------
    no_mean, no_interval
        A sentence where there is no honest value, else ``None``.
    """

    no_mean: str | None = None
    no_interval: str | None = None


def honesty(policy: Any, size: Any, servers: int, busy_servers: float) -> dict[str, Honesty]:
    """What may be said of the means under ``policy``, from the moments of the size law.

    Where a job can wait behind a whole long one (``policy.mean_needs_moment == 2``), with m spare
    servers, m = servers - floor(busy servers), E[W^r] is finite exactly when E[S^(1 + r/m)] is.
    Otherwise E[T^r] is finite when E[S^r] is.

    Parameters
    ----------
    policy : Policy
    size : Distribution
        The law of all jobs together.
    servers
        Number of servers.
    busy_servers
        Arrival rate times mean size.

    Returns
    -------
    dict
        ``response``, ``waiting``, ``slowdown``, ``number`` (in the system) and ``work`` to
        :class:`Honesty`.

    Notes
    -----
    The condition is that of Kiefer and Wolfowitz (1956) for one server and of Scheller-Wolf and
    Vesilo (2006) for several, proved for FCFS; it is used here for every rule without
    interruption.
    """
    spare = max(servers - math.floor(busy_servers), 1)

    def order(power: int) -> float:
        return 1 + power / spare if policy.mean_needs_moment == 2 else float(power)

    def finite(power: float) -> bool:
        return math.isfinite(size.moment(power))

    def because(what: str, power: float) -> str:
        return (
            f"{what}: E[S^{power:g}] of {size.spec} is infinite; "
            "use the quantiles and the tail instead"
        )

    def judge(letter: str, mean: float, variance: float) -> Honesty:
        if not finite(mean):
            reason = because(f"E[{letter}] is infinite", mean)
            return Honesty(reason, reason)
        if not finite(variance):
            return Honesty(
                None, because(f"Var {letter} is infinite, so no normal interval", variance)
            )
        return Honesty()

    waiting = judge("W", order(1), order(2))
    response = judge("T", max(1.0, order(1)), max(2.0, order(2)))
    if policy.mean_needs_moment == 2 and float(size.quantile(0.0)) <= 0:
        reason = "the mean of T/S may be infinite: jobs can be arbitrarily short, and they wait too"
        slowdown = Honesty(reason, reason)
    else:
        slowdown = Honesty(waiting.no_mean, waiting.no_interval)
    return {
        "response": response,
        "waiting": waiting,
        "slowdown": slowdown,
        "number": Honesty(response.no_mean, response.no_interval),
        "work": judge("V", 2, 3),  # a job in service brings its residual life
    }
