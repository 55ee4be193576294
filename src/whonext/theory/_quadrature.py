"""Integrals over laws of size, by Gauss-Legendre panels on a logarithmic axis.

Formulas for size-based rules are averages over the size of functions that bend where the law
does. Panels end at those places, so each panel sees a smooth function, and on the logarithmic axis
a Pareto tail over thirty decades is as tame as an exponential one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whonext.distributions import Deterministic, Empirical, Mixture

if TYPE_CHECKING:
    from whonext.distributions import Distribution

__all__ = ["bends", "expectation_rule", "integral_up_to", "just_below", "tail_integral"]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_PANEL = 0.5  # widest panel, in natural logarithms
_LEVELS = (1e-16, 1e-8, 1e-4, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1 - 1e-4, 1 - 1e-8)


def just_below(x: ArrayLike) -> NDArray[np.float64]:
    """Step to the number just below ``x``: turns "at most" into "less than" where that matters."""
    return np.nextafter(np.asarray(x, dtype=np.float64), -math.inf)


def bends(*laws: Distribution) -> NDArray[np.float64]:
    """Where the laws have mass, begin, end or change scale: ends for the panels."""
    found: list[float] = []
    for law in laws:
        if isinstance(law, Mixture):
            found.extend(bends(*law.laws))
        elif isinstance(law, Deterministic):
            found.append(law.value)
        elif isinstance(law, Empirical):
            found.extend(np.unique(law.values))
        else:
            found.extend(law.quantile(np.array([0.0, *_LEVELS, 1.0])))
    values = np.unique(np.asarray(found, dtype=np.float64))
    return values[(values > 0) & np.isfinite(values)]


def expectation_rule(
    law: Distribution, more_bends: Iterable[float] = ()
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Points and weights such that E[g(S)] is the weighted sum of g at the points.

    Parameters
    ----------
    law
        The law of S.
    more_bends
        Where g bends, beyond the bends of the law itself.

    Notes
    -----
    Beyond the last panel g is taken to be linear through the origin, as response times are in the
    size; what lies there is at most 1e-13 of the mean size except for tails of index close to 1.
    """
    if isinstance(law, Deterministic):
        return np.array([law.value]), np.array([1.0])
    if isinstance(law, Empirical):
        values, counts = np.unique(law.values, return_counts=True)
        return values, counts / counts.sum()
    if isinstance(law, Mixture):
        marks = [*bends(law), *more_bends]  # the load bends wherever any part of the law does
        rules = [expectation_rule(each, marks) for each in law.laws]
        points = np.concatenate([points for points, _ in rules])
        parts = zip(law.weights, rules, strict=True)
        return points, np.concatenate([share * weights for share, (_, weights) in parts])
    low, high = _range(law)
    edges = _edges(low, high, np.concatenate([bends(law), np.asarray(list(more_bends))]))
    points, weights = _panels(edges)
    weights = weights * law.density(points)
    beyond = law.upper_moment(1.0, high)
    return np.append(points, high), np.append(weights, beyond / high)


def tail_integral(
    law: Distribution,
    function: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    *others: Distribution,
) -> float:
    """Integral of P[S > t] * function(t) over t > 0; ``others`` are laws that bend the function.

    ``function`` must be close to constant beyond the largest sizes and below the smallest.
    """
    marks = bends(law, *others)
    low, high = marks.min() / 2, max(_range(law)[1], marks.min())
    points, weights = _panels(_edges(low, high, marks))
    inside = math.fsum(weights * law.tail(points) * function(points))
    before, after = (float(function(np.array([t]))[0]) for t in (low / 2, high))
    return float(low * before + inside + after * law.excess_mean(high))


def integral_up_to(
    x: ArrayLike,
    function: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    *laws: Distribution,
) -> NDArray[np.float64]:
    """Integral of ``function`` from 0 to each x, where the laws bend it."""
    ends = np.asarray(x, dtype=np.float64)
    flat = ends.ravel()
    if not len(flat):
        return ends.copy()
    marks = bends(*laws)
    low = min(flat[flat > 0].min(initial=math.inf), marks.min()) / 2
    edges = _edges(low, max(flat.max(), 2 * low), marks)
    points, weights = _panels(edges)
    start = low * float(function(np.array([low / 2]))[0])
    panels = (weights * function(points)).reshape(len(edges) - 1, -1).sum(axis=1)
    totals = start + np.concatenate([[0.0], np.cumsum(panels)])
    place = np.clip(np.searchsorted(edges, flat, side="right") - 1, 0, len(edges) - 1)
    half = (flat - edges[place]) / 2
    rest = edges[place][:, None] + half[:, None] * (1 + _NODES)
    values = function(rest.ravel()).reshape(rest.shape) @ _WEIGHTS * half
    early = flat <= low
    result = np.where(early, flat * start / low, totals[place] + values)
    return result.reshape(ends.shape)


def _range(law: Distribution) -> tuple[float, float]:
    """Where the law lives, as far as a double can tell."""
    low = float(law.quantile(0.0))
    if low <= 0:
        low = max(float(law.quantile(1e-20)), 1e-250)
    high = float(law.quantile(1.0))
    if not math.isfinite(high):
        high = max(law.mean, 2 * low)
        while law.upper_moment(1.0, high) > 1e-13 * law.mean and high < 1e140:
            high *= 2
    return low, high


def _edges(low: float, high: float, marks: NDArray[np.float64]) -> NDArray[np.float64]:
    inside = marks[(marks > low) & (marks < high)]
    coarse = np.unique(np.concatenate([[low], inside, [high]]))
    spans = np.log(coarse[1:] / coarse[:-1])
    pieces = np.maximum(1, np.ceil(spans / _PANEL)).astype(int)
    fine = [
        coarse[i] * np.exp(spans[i] * np.arange(pieces[i]) / pieces[i]) for i in range(len(spans))
    ]
    return np.append(np.concatenate(fine), coarse[-1])


def _panels(edges: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Points and weights for an integral over dx, by panels in log x."""
    middle = (np.log(edges[1:]) + np.log(edges[:-1])) / 2
    half = (np.log(edges[1:]) - np.log(edges[:-1])) / 2
    points = np.exp(middle[:, None] + half[:, None] * _NODES)
    weights = half[:, None] * _WEIGHTS * points
    return points.ravel(), weights.ravel()
