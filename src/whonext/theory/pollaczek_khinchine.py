"""M/G/1, first come first served: Poisson arrivals, any law of size, one server.

The mean wait is the work found on arrival. By PASTA that is the mean work in the system, and it
solves one line: with probability ``load`` a job is in service, with a mean residual life of
``E[S^2] / (2 E[S])`` to go, and each job waiting adds its whole size. Hence Pollaczek and
Khinchine's formula, Takács's moments, and the law of the wait itself: a geometric number of
independent residual lives.

Sources: F. Pollaczek, 1930; A. Y. Khinchine, 1932; L. Takács, "Introduction to
the Theory of Queues", 1962; for heavy tails J. W. Cohen, 1973, and N. Veraverbeke, 1977.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whonext.theory._arguments import InfiniteMomentError, count, rate_and_load, require_moment

if TYPE_CHECKING:
    from whonext.distributions import Distribution

__all__ = [
    "Bracket",
    "batch_waiting_mean",
    "busy_period_mean",
    "busy_period_second_moment",
    "heavy_tail",
    "residual_life_mean",
    "response_mean",
    "response_quantile",
    "response_tail",
    "response_variance",
    "waiting_mean",
    "waiting_moment",
    "waiting_quantile",
    "waiting_tail",
    "waiting_variance",
    "work_mean",
]


def residual_life_mean(size: Distribution) -> float:
    """Give what is left, on average, of the job that a random moment finds in service.

    ``E[S^2] / (2 E[S])``: long jobs fill more of the time, so a random moment tends to fall in one.

    Raises
    ------
    ValueError
        Where the second moment of the size is infinite.

    Examples
    --------
    >>> from whonext.distributions import Deterministic, Exponential
    >>> residual_life_mean(Deterministic(2)), residual_life_mean(Exponential(2))
    (1.0, 2.0)
    """
    return require_moment(size, 2, "the mean residual life") / (2 * size.mean)


def waiting_mean(
    size: Distribution, *, arrival_rate: float | None = None, load: float | None = None
) -> float:
    """Mean time in the queue, ``E[W] = arrival_rate * E[S^2] / (2 (1 - load))``.

    The same for every order of service that neither looks at sizes nor preempts.

    Parameters
    ----------
    size
        Law of the size, with a finite second moment.
    arrival_rate, load
        Exactly one of the two; ``load`` is ``arrival_rate * E[S]``.

    Raises
    ------
    ValueError
        Where the load is not below 1, or E[S^2] is infinite and with it E[W].

    Examples
    --------
    At one mean and one load, variance alone decides:

    >>> from whonext.distributions import Deterministic, Exponential, LogNormal
    >>> for law in Deterministic(1), Exponential(1), LogNormal(mean=1, sigma=1.5):
    ...     print(round(waiting_mean(law, load=0.8), 4))
    2.0
    4.0
    18.9755
    """
    rate, load = _queue(size, arrival_rate, load)
    if rate == 0:
        return 0.0
    return rate * require_moment(size, 2, "E[W]") / (2 * (1 - load))


def response_mean(
    size: Distribution, *, arrival_rate: float | None = None, load: float | None = None
) -> float:
    """Mean time from arrival to departure, E[T] = E[W] + E[S].

    Examples
    --------
    >>> from whonext.distributions import Exponential
    >>> round(response_mean(Exponential(1), load=0.8), 6)
    5.0
    """
    return waiting_mean(size, arrival_rate=arrival_rate, load=load) + size.mean


def work_mean(
    size: Distribution, *, arrival_rate: float | None = None, load: float | None = None
) -> float:
    """Mean unfinished work in the system, under every rule that never idles with work to do.

    Equal to the mean wait of first come first served, whatever the rule: scheduling moves work
    about and does not make or destroy any.

    Examples
    --------
    >>> from whonext.distributions import Exponential
    >>> round(work_mean(Exponential(1), load=0.8), 6)
    4.0
    """
    return waiting_mean(size, arrival_rate=arrival_rate, load=load)


def waiting_moment(
    order: int,
    size: Distribution,
    *,
    arrival_rate: float | None = None,
    load: float | None = None,
) -> float:
    """Takács's recursion for ``E[W^order]``; it needs ``E[S^(order + 1)]`` finite.

    Examples
    --------
    For M/M/1 at load 0.8, ``E[W^k] = 0.8 * k! * 5**k``:

    >>> from whonext.distributions import Exponential
    >>> [round(waiting_moment(k, Exponential(1), load=0.8), 6) for k in (1, 2, 3)]
    [4.0, 40.0, 600.0]
    """
    order = count("order", order)
    rate, load = _queue(size, arrival_rate, load)
    if rate == 0:
        return 0.0
    sizes = [require_moment(size, k + 1, f"E[W^{order}]") / (k + 1) for k in range(1, order + 1)]
    moments = [1.0]
    for k in range(1, order + 1):
        terms = (math.comb(k, i) * sizes[i - 1] * moments[k - i] for i in range(1, k + 1))
        moments.append(rate / (1 - load) * math.fsum(terms))
    return moments[order]


def waiting_variance(
    size: Distribution, *, arrival_rate: float | None = None, load: float | None = None
) -> float:
    """Variance of the wait; it needs E[S^3] finite.

    Examples
    --------
    >>> from whonext.distributions import Exponential
    >>> round(waiting_variance(Exponential(1), load=0.8), 6)
    24.0
    """
    rate, load = _queue(size, arrival_rate, load)
    mean = waiting_moment(1, size, load=load)
    if rate == 0:
        return 0.0
    return mean * mean + rate * require_moment(size, 3, "Var W") / (3 * (1 - load))


def response_variance(
    size: Distribution, *, arrival_rate: float | None = None, load: float | None = None
) -> float:
    """Variance of the response time: a job's wait does not depend on its own size.

    Examples
    --------
    >>> from whonext.distributions import Exponential
    >>> round(response_variance(Exponential(1), load=0.8), 6)
    25.0
    """
    return waiting_variance(size, arrival_rate=arrival_rate, load=load) + size.variance


def batch_waiting_mean(
    size: Distribution,
    batch_mean: float,
    batch_second_moment: float,
    *,
    arrival_rate: float | None = None,
    load: float | None = None,
) -> float:
    """Mean wait when batches arrive as a Poisson process: a batch waits, and then its members do.

    Parameters
    ----------
    size
        Law of one job's size.
    batch_mean, batch_second_moment
        E[X] and E[X^2] of the number of jobs in a batch.
    arrival_rate, load
        Exactly one of the two; ``arrival_rate`` counts jobs, not batches.

    Examples
    --------
    Pairs instead of single jobs, at one load:

    >>> from whonext.distributions import Exponential
    >>> round(batch_waiting_mean(Exponential(1), 2, 4, load=0.8), 6)
    6.5
    """
    _, load = _queue(size, arrival_rate, load)
    single = waiting_mean(size, load=load)
    return single + (batch_second_moment / batch_mean - 1) * size.mean / (2 * (1 - load))


def busy_period_mean(
    size: Distribution, *, arrival_rate: float | None = None, load: float | None = None
) -> float:
    """Mean time from an arrival to an empty system until it is next empty, E[S] / (1 - load).

    Examples
    --------
    >>> from whonext.distributions import Exponential
    >>> round(busy_period_mean(Exponential(1), load=0.8), 6)
    5.0
    """
    _, load = _queue(size, arrival_rate, load)
    return size.mean / (1 - load)


def busy_period_second_moment(
    size: Distribution, *, arrival_rate: float | None = None, load: float | None = None
) -> float:
    """Second moment of the busy period, E[S^2] / (1 - load)^3.

    Examples
    --------
    >>> from whonext.distributions import Exponential
    >>> round(busy_period_second_moment(Exponential(1), load=0.8), 6)
    250.0
    """
    _, load = _queue(size, arrival_rate, load)
    return require_moment(size, 2, "E[B^2]") / (1 - load) ** 3


def heavy_tail(
    time: ArrayLike,
    size: Distribution,
    *,
    arrival_rate: float | None = None,
    load: float | None = None,
) -> NDArray[np.float64]:
    """Give the asymptote of P[W > t] for heavy-tailed sizes: ``load / (1 - load) * P[S_e > t]``.

    One long job, found in service or just before, is the way that long waits come about. It is a
    limit for t to infinity where the residual life S_e is subexponential (Pareto, lognormal,
    Weibull of shape below 1), and can be far off at the sizes of interest: see
    :func:`waiting_tail` for the law itself.

    Examples
    --------
    >>> from whonext.distributions import Pareto
    >>> heavy_tail([10, 1000], Pareto(2.5), load=0.5).round(7).tolist()
    [0.0126491, 1.26e-05]
    """
    _, load = _queue(size, arrival_rate, load)
    return load / (1 - load) * np.asarray(size.equilibrium_tail(np.asarray(time, dtype=float)))


class Bracket(NamedTuple):
    """Two numbers, or arrays, that the true value lies between, and the best guess inside."""

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    middle: NDArray[np.float64]


def waiting_tail(
    time: ArrayLike,
    size: Distribution,
    *,
    arrival_rate: float | None = None,
    load: float | None = None,
    cells: int = 4096,
) -> Bracket:
    """P[W > t] between two bounds, for any size with a finite mean.

    W is a geometric number of independent residual lives. Rounding each residual life down, and
    up, to a grid gives two sums whose laws can be computed exactly, and W lies between them.
    No transform is inverted; every term is positive, so small probabilities keep their digits.

    Parameters
    ----------
    time
        Times, shape (any).
    size
        Law of the size; the second moment may be infinite.
    arrival_rate, load
        Exactly one of the two.
    cells
        Grid points up to the largest time. The bracket narrows as 1 / cells; the work grows as
        cells squared.

    Examples
    --------
    >>> from whonext.distributions import Exponential
    >>> bracket = waiting_tail(10.0, Exponential(1), load=0.8)
    >>> round(float(bracket.low), 4), round(float(bracket.high), 4)
    (0.1081, 0.1085)
    """
    _, load = _queue(size, arrival_rate, load)
    t = np.asarray(time, dtype=np.float64)
    if t.size == 0 or t.max() <= 0 or load == 0:
        flat = np.where(t < 0, 1.0, load)
        return Bracket(flat, flat, flat)
    step, down, up = _bracketing_laws(size, load, float(t.max()), count("cells", cells))
    # On the grid: a residual life lies above its rounding down, so W > t already where the lower
    # sum is t itself; it may equal its rounding up, so W > t only where the upper sum is above t.
    low = np.concatenate([[load], 1 - np.cumsum(down)[:-1]])
    high = 1 - np.cumsum(up)
    place = np.clip(t / step, 0, cells)
    near = np.abs(place - np.rint(place)) < 1e-9 * cells
    before = np.where(near, np.rint(place), np.floor(place)).astype(np.int64)
    after = np.where(near, np.rint(place), np.ceil(place)).astype(np.int64)
    middle = np.interp(place, np.arange(cells + 1), (low + high) / 2)
    return Bracket(*(np.where(t < 0, 1.0, tail) for tail in (low[after], high[before], middle)))


def response_tail(
    time: ArrayLike,
    size: Distribution,
    own_size: Distribution | None = None,
    *,
    arrival_rate: float | None = None,
    load: float | None = None,
    cells: int = 4096,
) -> Bracket:
    """P[T > t] between two bounds: the wait of :func:`waiting_tail` and an independent size.

    Parameters
    ----------
    own_size
        Law of the size of the jobs asked about, where it differs from that of all jobs: one class
        of several in a common queue.

    Examples
    --------
    >>> from whonext.distributions import Exponential
    >>> response_tail([10.0], Exponential(1), load=0.8).middle.round(4).tolist()
    [0.1353]
    """
    own_size = size if own_size is None else own_size
    _, load = _queue(size, arrival_rate, load)
    t = np.asarray(time, dtype=np.float64)
    if t.size == 0 or t.max() <= 0 or load == 0:
        alone = np.asarray(own_size.tail(t), dtype=np.float64)
        return Bracket(alone, alone, alone)
    step, down, up = _bracketing_laws(size, load, float(t.max()), count("cells", cells))
    grid = step * np.arange(cells + 1)

    def tail(law: NDArray[np.float64], at: float) -> float:
        here = grid <= at
        waits_less = law[here]
        return float(waits_less @ own_size.tail(at - grid[here]) + (1 - waits_less.sum()))

    low, high = (
        np.reshape([tail(law, at) if at > 0 else 1.0 for at in t.ravel()], t.shape)
        for law in (down, up)
    )
    return Bracket(low, high, (low + high) / 2)


def waiting_quantile(
    probability: float,
    size: Distribution,
    *,
    arrival_rate: float | None = None,
    load: float | None = None,
    cells: int = 4096,
) -> float:
    """Give the time that a share ``probability`` of jobs wait at most, to about four digits.

    Examples
    --------
    >>> from whonext.distributions import Exponential
    >>> round(waiting_quantile(0.99, Exponential(1), load=0.8), 2)
    21.91
    """
    _, load = _queue(size, arrival_rate, load)
    if load <= 1 - probability:
        return 0.0

    def tail(t: NDArray[np.float64]) -> NDArray[np.float64]:
        return waiting_tail(t, size, load=load, cells=cells).middle

    return _invert(tail, probability, size.mean / (1 - load))


def response_quantile(
    probability: float,
    size: Distribution,
    own_size: Distribution | None = None,
    *,
    arrival_rate: float | None = None,
    load: float | None = None,
    cells: int = 4096,
) -> float:
    """Give the response time that a share of jobs do not exceed, to about four digits.

    Examples
    --------
    >>> from whonext.distributions import Exponential
    >>> round(response_quantile(0.99, Exponential(1), load=0.8), 2)
    23.03
    """
    _, load = _queue(size, arrival_rate, load)

    def tail(t: NDArray[np.float64]) -> NDArray[np.float64]:
        return response_tail(t, size, own_size, load=load, cells=cells).middle

    return _invert(tail, probability, size.mean / (1 - load))


def _queue(
    size: Distribution, arrival_rate: float | None, load: float | None
) -> tuple[float, float]:
    return rate_and_load(size.mean, arrival_rate=arrival_rate, load=load, model="M/G/1")


def _bracketing_laws(
    size: Distribution, load: float, horizon: float, cells: int
) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
    """Grid step, and the laws on the grid of two sums that lie below and above the wait."""
    step = horizon / cells
    edges = np.asarray(size.equilibrium_tail(step * np.arange(cells + 2)), dtype=np.float64)
    masses = -np.diff(edges)  # of a residual life between consecutive grid points
    down = _geometric_sum(load, masses[: cells + 1])
    up = _geometric_sum(load, np.concatenate([[0.0], masses[:cells]]))
    return step, down, up


def _geometric_sum(load: float, masses: NDArray[np.float64]) -> NDArray[np.float64]:
    """Law of a sum of N residual lives, P[N = n] = (1 - load) load^n, by Panjer's recursion."""
    law = np.empty_like(masses)
    keep = 1 - load * masses[0]
    law[0] = (1 - load) / keep
    backwards = masses[::-1].copy()
    cells = len(masses)
    for k in range(1, cells):
        law[k] = load * (backwards[cells - 1 - k : cells - 1] @ law[:k]) / keep
    return law


def _invert(
    tail: Callable[[NDArray[np.float64]], NDArray[np.float64]], probability: float, scale: float
) -> float:
    if not 0 <= probability < 1:
        raise ValueError(f"probability={probability:g}: must be at least 0 and below 1")
    target = 1 - probability
    high = scale
    for _ in range(200):
        if tail(np.array([high]))[0] <= target:
            break
        high *= 2
    else:
        raise InfiniteMomentError(f"no quantile {probability:g} below {high:g}")
    times = np.linspace(0.0, high, 513)
    probabilities = np.minimum.accumulate(tail(times))
    # Straight lines in the logarithm of the tail, which is close to straight there.
    return float(np.interp(-math.log(target), -np.log(np.maximum(probabilities, 1e-300)), times))
