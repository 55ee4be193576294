"""Rules that look at sizes, or at service received: mean response times on one server.

Each function gives the mean over all jobs, or with ``at`` the mean of jobs of that size. Poisson
arrivals, any law of size. Sizes that have mass (a constant, a data set) are handled as the
simulators do: equal sizes in order of arrival.

Notation: ``rho(x)`` is the load of jobs of size at most x, ``arrival_rate * E[S; S <= x]``.

Sources: T. E. Phipps, "Machine repair as a priority waiting-line problem", Operations Research 4,
1956 (shortest job first); L. E. Schrage and L. W. Miller, "The queue M/G/1 with the shortest
remaining processing time discipline", Operations Research 14, 1966; L. Kleinrock, Queueing
Systems II, 1976, chapter 4 (sharing, foreground-background, preemptive last come first served);
A. Wierman and M. Harchol-Balter, "Classifying scheduling policies with respect to unfairness in an
M/GI/1", SIGMETRICS 2003 (preemptive shortest first, longest remaining first); J. W. Cohen, "The
multiple phase service network with generalized processor sharing", Acta Informatica 12, 1979
(sharing among several servers).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whonext.theory import _quadrature as quadrature
from whonext.theory import markovian
from whonext.theory._arguments import rate_and_load, require_moment

if TYPE_CHECKING:
    from whonext.distributions import Distribution

__all__ = [
    "foreground_background",
    "last_come_first_served_preemptive",
    "longest_job_first",
    "longest_remaining_processing_time",
    "preemptive_shortest_job_first",
    "processor_sharing",
    "shortest_job_first",
    "shortest_remaining_processing_time",
]

Array = NDArray[np.float64]


def shortest_job_first(
    size: Distribution,
    *,
    arrival_rate: float | None = None,
    load: float | None = None,
    at: ArrayLike | None = None,
    of: Distribution | None = None,
) -> Any:
    """Non-preemptive shortest job first.

    ``E[W(x)] = arrival_rate * E[S^2] / 2 / (1 - rho(x))^2`` for sizes without mass.

    Parameters
    ----------
    size
        Law of the size, with a finite second moment.
    arrival_rate, load
        Exactly one of the two.
    at
        Sizes to give the mean response time of, any shape; by default the mean over all jobs.
    of
        Law of the size of the jobs averaged over, where it is not that of all jobs: one class of
        several in a common queue.

    Returns
    -------
    float or ndarray
        E[T], or E[T(x)] in the shape of ``at``.

    Raises
    ------
    ValueError
        Where the load is not below 1 or E[S^2] is infinite.

    Examples
    --------
    >>> from whonext.distributions import Exponential
    >>> round(shortest_job_first(Exponential(1), load=0.8), 5)
    2.88222
    >>> shortest_job_first(Exponential(1), load=0.8, at=[0.1, 3.0]).round(4).tolist()
    [0.906, 9.1963]
    """
    rate, load = _queue(size, arrival_rate, load)
    residual = rate * require_moment(size, 2, "E[T]") / 2 if rate else 0.0

    def response(x: Array) -> Array:
        before = 1 - rate * size.partial_mean(quadrature.just_below(x))
        through = 1 - rate * size.partial_mean(x)
        return x + residual / (before * through)

    return _answer(response, size, at, of)


def longest_job_first(
    size: Distribution,
    *,
    arrival_rate: float | None = None,
    load: float | None = None,
    at: ArrayLike | None = None,
    of: Distribution | None = None,
) -> Any:
    """Non-preemptive longest job first. Parameters are those of :func:`shortest_job_first`.

    Examples
    --------
    >>> from whonext.distributions import Exponential
    >>> round(longest_job_first(Exponential(1), load=0.8), 4)
    10.1538
    """
    rate, load = _queue(size, arrival_rate, load)
    residual = rate * require_moment(size, 2, "E[T]") / 2 if rate else 0.0

    def response(x: Array) -> Array:
        before = 1 - rate * size.upper_moment(1.0, x)
        through = 1 - rate * size.upper_moment(1.0, quadrature.just_below(x))
        return x + residual / (before * through)

    return _answer(response, size, at, of)


def preemptive_shortest_job_first(
    size: Distribution,
    *,
    arrival_rate: float | None = None,
    load: float | None = None,
    at: ArrayLike | None = None,
    of: Distribution | None = None,
) -> Any:
    """Preemptive shortest job first, by original size.

    ``E[T(x)] = arrival_rate * E[S^2; S <= x] / 2 / (1 - rho(x))^2 + x / (1 - rho(x))``. The mean is
    finite for every law with a finite mean. Parameters are those of :func:`shortest_job_first`.

    Examples
    --------
    >>> from whonext.distributions import Exponential, Pareto
    >>> round(preemptive_shortest_job_first(Exponential(1), load=0.8), 5)
    2.6589
    >>> round(preemptive_shortest_job_first(Pareto(1.5), load=0.8), 4)
    6.8119
    """
    rate, load = _queue(size, arrival_rate, load)

    def response(x: Array) -> Array:
        before = 1 - rate * size.partial_mean(quadrature.just_below(x))
        through = 1 - rate * size.partial_mean(x)
        seen = rate * np.asarray(size.partial_moment(2.0, x)) / 2
        return seen / (before * through) + x / before

    return _answer(response, size, at, of)


def shortest_remaining_processing_time(
    size: Distribution,
    *,
    arrival_rate: float | None = None,
    load: float | None = None,
    at: ArrayLike | None = None,
    of: Distribution | None = None,
) -> Any:
    """SRPT: the least mean response time that any rule can reach on one server.

    Schrage and Miller: a job of size x first waits,
    ``arrival_rate * E[min(S, x)^2] / 2 / (1 - rho(x))^2``, and then, once begun, is held up only by
    arrivals smaller than what it has left: the integral of ``1 / (1 - rho(t))`` over t up to x.
    The mean is finite for every law with a finite mean.
    Parameters are those of :func:`shortest_job_first`.

    Examples
    --------
    >>> from whonext.distributions import Exponential, Pareto
    >>> round(shortest_remaining_processing_time(Exponential(1), load=0.8), 5)
    2.35277
    >>> round(shortest_remaining_processing_time(Pareto(1.5), load=0.8), 4)
    6.306
    """
    rate, load = _queue(size, arrival_rate, load)

    def waiting(x: Array) -> Array:
        before = 1 - rate * size.partial_mean(quadrature.just_below(x))
        through = 1 - rate * size.partial_mean(x)
        return rate * np.asarray(size.capped_moment(2.0, x)) / 2 / (before * through)

    def stretch(t: Array) -> Array:
        return 1 / (1 - rate * size.partial_mean(t))

    if at is not None:
        x = _sizes(at)
        return waiting(x) + quadrature.integral_up_to(x, stretch, size)
    own = size if of is None else of
    return _mean(waiting, size, own) + quadrature.tail_integral(own, stretch, size)


def longest_remaining_processing_time(
    size: Distribution,
    *,
    arrival_rate: float | None = None,
    load: float | None = None,
    at: ArrayLike | None = None,
    of: Distribution | None = None,
) -> Any:
    """LRPT: every job stays until the busy period ends.

    ``E[T(x)] = x / (1 - load) + arrival_rate * E[S^2] / (2 (1 - load)^2)``, the most that a rule
    which never idles can make of it. Parameters are those of :func:`shortest_job_first`.

    Examples
    --------
    >>> from whonext.distributions import Exponential
    >>> round(longest_remaining_processing_time(Exponential(1), load=0.8), 5)
    25.0
    """
    rate, load = _queue(size, arrival_rate, load)
    residual = rate * require_moment(size, 2, "E[T]") / 2 if rate else 0.0
    return _linear(1 / (1 - load), residual / (1 - load) ** 2, size, at, of)


def foreground_background(
    size: Distribution,
    *,
    arrival_rate: float | None = None,
    load: float | None = None,
    at: ArrayLike | None = None,
    of: Distribution | None = None,
) -> Any:
    """FB, or least attained service: the youngest in service received goes first, ties share.

    A job of size x sees every other as if cut off at x: with ``rho = arrival_rate * E[min(S, x)]``,
    ``E[T(x)] = arrival_rate * E[min(S, x)^2] / 2 / (1 - rho)^2 + x / (1 - rho)``. It needs no sizes
    to run. Parameters are those of :func:`shortest_job_first`.

    Examples
    --------
    >>> from whonext.distributions import Exponential, Pareto
    >>> round(foreground_background(Exponential(1), load=0.8), 5)
    5.0
    >>> round(foreground_background(Pareto(1.5), load=0.8), 3)
    9.268
    """
    rate, load = _queue(size, arrival_rate, load)

    def response(x: Array) -> Array:
        left = 1 - rate * np.asarray(size.capped_moment(1.0, x))
        return rate * np.asarray(size.capped_moment(2.0, x)) / 2 / left**2 + x / left

    return _answer(response, size, at, of)


def processor_sharing(
    size: Distribution,
    *,
    arrival_rate: float | None = None,
    load: float | None = None,
    at: ArrayLike | None = None,
    of: Distribution | None = None,
    servers: int = 1,
) -> Any:
    """PS: all jobs served at once, at equal rates: ``E[T(x)] = x / (1 - load)``.

    Only the mean of the law of size matters. With several servers a job is served at a rate of 1
    at most; the mean number is that of M/M/n, whatever the law, and time is again in proportion
    to size. Parameters are those of :func:`shortest_job_first`.

    Examples
    --------
    >>> from whonext.distributions import Pareto
    >>> round(processor_sharing(Pareto(1.5), load=0.8), 6)
    15.0
    >>> round(processor_sharing(Pareto(1.5), load=0.8, servers=3), 6)
    6.235955
    """
    mean = size.mean
    _, load = rate_and_load(
        mean, arrival_rate=arrival_rate, load=load, servers=servers, model=f"M/G/{servers}"
    )
    stretch = markovian.response_mean(mean, servers, load=load) / mean
    return _linear(stretch, 0.0, size, at, of)


def last_come_first_served_preemptive(
    size: Distribution,
    *,
    arrival_rate: float | None = None,
    load: float | None = None,
    at: ArrayLike | None = None,
    of: Distribution | None = None,
) -> Any:
    """LCFS-PR: an arrival takes the server at once: ``E[T(x)] = x / (1 - load)``, as sharing has.

    Parameters are those of :func:`shortest_job_first`.

    Examples
    --------
    >>> from whonext.distributions import Exponential
    >>> round(last_come_first_served_preemptive(Exponential(1), load=0.8), 6)
    5.0
    """
    return processor_sharing(size, arrival_rate=arrival_rate, load=load, at=at, of=of)


def _queue(
    size: Distribution, arrival_rate: float | None, load: float | None
) -> tuple[float, float]:
    return rate_and_load(size.mean, arrival_rate=arrival_rate, load=load, model="M/G/1")


def _sizes(at: ArrayLike) -> Array:
    x = np.asarray(at, dtype=np.float64)
    if not (np.isfinite(x) & (x > 0)).all():
        raise ValueError(f"at={at!r}: sizes must be finite numbers above 0")
    return x


def _answer(
    response: Callable[[Array], Array],
    size: Distribution,
    at: ArrayLike | None,
    of: Distribution | None,
) -> Any:
    if at is not None:
        return response(_sizes(at))
    return _mean(response, size, size if of is None else of)


def _mean(function: Callable[[Array], Array], size: Distribution, own: Distribution) -> float:
    points, weights = quadrature.expectation_rule(own, quadrature.bends(size))
    return float(weights @ function(points))


def _linear(
    stretch: float, start: float, size: Distribution, at: ArrayLike | None, of: Distribution | None
) -> Any:
    if at is not None:
        return start + stretch * _sizes(at)
    return start + stretch * (size if of is None else of).mean
