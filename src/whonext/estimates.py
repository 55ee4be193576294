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

__all__ = [
    "Honesty",
    "JobsNeeded",
    "Score",
    "honesty",
    "interval",
    "jobs_needed",
    "quantile_interval",
    "standard_score",
]

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


def quantile_interval(
    points: Any, tails: Any, p: float, level: float = 0.95
) -> tuple[float, float] | None:
    """Interval of a quantile: the points at which the tail may be 1 - p.

    At each point t, the replications give P[T > t] with its standard error, whence a band around
    it, on a log scale: Student's factor times the relative error, up and down. The interval is
    where 1 - p lies in the band. The estimate of a probability is unbiased however few long jobs
    a replication has met; that of a quantile is not, and comes out too short. The interval
    reaches further up than down, as the error does.

    Parameters
    ----------
    points : array of shape (points,)
        Increasing.
    tails : array of shape (replications, points)
        Share of each replication that is longer than each point.
    p
        Which quantile, between 0 and 1.
    level
        Nominal coverage.

    Returns
    -------
    (low, high), or None with fewer than two replications or where the band does not come down
    to 1 - p.

    Notes
    -----
    What this covers, and what the spread of the replications' own quantiles would, is measured
    on the page Validation.

    Examples
    --------
    >>> points = np.linspace(0, 9, 901)
    >>> tails = np.exp(-points / np.array([[0.9], [1.0], [1.1]]))
    >>> low, high = quantile_interval(points, tails, 0.99)
    >>> low < 4.6 < high
    True
    """
    points, tails = np.asarray(points, dtype=float), np.asarray(tails, dtype=float)
    if len(tails) < 2:
        return None
    mean = tails.mean(axis=0)
    error = tails.std(axis=0, ddof=1) / math.sqrt(len(tails))
    relative = np.divide(error, mean, out=np.zeros_like(mean), where=mean > 0)
    stretch = np.exp(stats.t.ppf(0.5 + level / 2, len(tails) - 1) * relative)
    lower, upper = mean / stretch, mean * stretch
    if lower[-1] > 1 - p or upper[-1] > 1 - p:
        return None
    first = int(np.argmax(lower <= 1 - p))
    last = len(upper) - 1 - int(np.argmax(upper[::-1] > 1 - p)) if (upper > 1 - p).any() else -1
    low = _crossing(points, lower, first - 1, 1 - p) if first > 0 else float(points[0])
    high = _crossing(points, upper, last, 1 - p) if last >= 0 else float(points[0])
    return low, high


def _crossing(points: np.ndarray, band: np.ndarray, place: int, level: float) -> float:
    """Where a band crosses a level between two points, above it at the first."""
    above, below = band[place], band[place + 1]
    part = (above - level) / (above - below) if above > below else 1.0
    return float(points[place] + part * (points[place + 1] - points[place]))


@dataclass(frozen=True)
class Score:
    """How far replications are from a value that they should have on average.

    Attributes
    ----------
    z
        Their distance in standard errors, turned from Student's law into the standard normal one:
        a mean whose 95 % interval just reaches the value has a z of 1.96 or -1.96.
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

    This asks for what independent replications need: a finite variance. It is less than what the
    error of one long run needs to fall as one over the root of its length: on one server under
    FCFS that takes E[S^4], as waits then stay correlated for so long that the sum of their
    correlations diverges without it. Measured (``results/coverage.json``: load 0.8, ten
    replications of 20,000 jobs, 1,000 times): with Pareto 3.5, which has the third moment and not
    the fourth, the interval of the mean covered as often as with exponential and lognormal
    sizes, 94 times in 100; with Pareto 2.5, which has neither, it would have covered two times in
    three, and so it is refused.
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
    short = float(size.quantile(0.0)) <= 0  # jobs can be arbitrarily short
    blind = policy.shape == "ranked" and policy.slope == 0 and not policy.needs
    if short and policy.mean_needs_moment == 2:
        reason = "the mean of T/S may be infinite: jobs can be arbitrarily short, and they wait too"
        slowdown = Honesty(reason, reason)
    elif short and blind:  # LCFS-PR: a short job is held up by newer ones, however short it is
        slowdown = Honesty(
            waiting.no_mean, "Var T/S may be infinite: jobs can be arbitrarily short"
        )
    else:
        slowdown = Honesty(waiting.no_mean, waiting.no_interval)
    return {
        "response": response,
        "waiting": waiting,
        "slowdown": slowdown,
        "number": Honesty(response.no_mean, response.no_interval),
        "work": judge("V", 2, 3),  # a job in service brings its residual life
    }


@dataclass(frozen=True)
class JobsNeeded:
    """How many jobs bring an interval down to a wanted width.

    Attributes
    ----------
    jobs
        Jobs in all, in as many replications as the pilot had; ``None`` where there is no answer.
    range95
        95 % interval of that number: ten replications know their own spread only so well.
    reason
        Why there is no answer.
    """

    jobs: int | None = None
    range95: tuple[int, int] | None = None
    reason: str | None = None


def jobs_needed(
    pilot: Any, precision: float = 0.01, quantile: float | None = None, measure: str = "response"
) -> JobsNeeded:
    """How many jobs until a mean or a quantile is known to within a part of itself?

    The half-width of an interval falls as one over the root of the number of jobs, so a short run
    tells how long a long one must be.

    Parameters
    ----------
    pilot : Result
        A short run of the same simulation. The longer it is, the better the answer.
    precision
        Half of the 95 % interval, as a part of the value: 0.01 for plus or minus 1 %.
    quantile
        Which quantile; the mean by default.
    measure
        ``"response"``, ``"waiting"`` or ``"slowdown"``.

    Returns
    -------
    JobsNeeded

    Raises
    ------
    ValueError
        If the precision is not positive, the quantile not in (0, 1) or the measure unknown.

    Examples
    --------
    How many jobs for plus or minus 1 % of the 99.9 % quantile?

    >>> from whonext import Exponential, Workload, simulate
    >>> pilot = simulate("fcfs", Workload(Exponential(1), load=0.5), jobs=500_000)
    >>> needed = jobs_needed(pilot, 0.01, quantile=0.999)
    >>> needed.range95[0] < needed.jobs < needed.range95[1]
    True
    >>> jobs_needed(simulate("fcfs", Workload("pareto:alpha=2.5", load=0.5), jobs=20_000)).reason
    'Var T is infinite, so no normal interval: E[S^3] of pareto:alpha=2.5,low=1 is infinite; ...
    """
    if not (math.isfinite(precision) and precision > 0):
        raise ValueError(f"precision={precision}: must be a positive, finite number; 0.01 is 1 %")
    if measure not in ("response", "waiting", "slowdown"):
        raise ValueError(f"measure={measure!r}: choose response, waiting or slowdown")
    summary = getattr(pilot, measure)
    replications = len(pilot.tallies)
    if quantile is None:
        value, bounds, reason = summary.mean, summary.ci95, summary.reason
    else:
        value, bounds = summary.quantile(quantile), summary.quantile_ci(quantile)
        reason = _too_short(pilot, summary, quantile)
    if replications < 2:
        return JobsNeeded(reason="the pilot is one run: its spread over replications is unknown")
    if bounds is None or value is None:
        return JobsNeeded(reason=reason)
    if value <= 0:
        return JobsNeeded(reason="the value is 0: no interval is a part of it")
    half_width = (bounds[1] - bounds[0]) / 2
    needed = pilot.jobs * (half_width / (precision * value)) ** 2
    freedom = replications - 1
    low, high = (freedom / stats.chi2.ppf(p, freedom) for p in (0.975, 0.025))
    return JobsNeeded(_whole(needed), (_whole(needed * low), _whole(needed * high)))


def _whole(jobs: float) -> int:
    """Two digits are all that is known, and more jobs do no harm."""
    if jobs <= 0:
        return 1
    step = 10 ** max(math.floor(math.log10(jobs)) - 1, 0)
    return math.ceil(jobs / step) * step


def _too_short(pilot: Any, summary: Any, quantile: float) -> str:
    """Say how long the pilot should have been: twice what the quantile has at the least."""
    counted = max(summary.count / pilot.jobs, 0.01)
    least = _whole(2 * len(pilot.tallies) * ENOUGH / ((1 - quantile) * counted))
    return (
        f"in some replication fewer than {ENOUGH} jobs lie beyond the {quantile:g} quantile: "
        f"make the pilot {max(least, 2 * pilot.jobs):,} jobs or more"
    )
