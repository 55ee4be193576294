"""Non-preemptive order by an index of the single job: Smith's rule, true sizes or predicted ones.

Any rule that gives each job a number at arrival, and starts the waiting job of least number, is a
priority queue with as many classes as there are numbers. Cobham's formula then reads

    E[W(i)] = R / ((1 - load of numbers below i) (1 - load of numbers up to i)),

R being the mean work left of the job in service, the same for every such rule. For Smith's rule
the number is size over weight; a noisy prediction only blurs the loads below i.

Sources: A. Cobham, Operations Research 2, 1954; T. E. Phipps, Operations Research 4, 1956 (a
continuum of classes); W. E. Smith, "Various optimizers for single-stage production", Naval
Research Logistics Quarterly 3, 1956 (the rule). The average over noise is worked out here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import CubicSpline

from whonext.theory import _quadrature as quadrature
from whonext.theory._arguments import number
from whonext.theory.priorities import _classes, _residual_work

if TYPE_CHECKING:
    from whonext.distributions import Distribution

__all__ = ["index_order", "weighted_shortest_first"]

Array = NDArray[np.float64]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_REACH = 8.5  # standard deviations of the noise that are looked at


def weighted_shortest_first(
    arrival_rates: ArrayLike,
    sizes: Sequence[Distribution],
    weights: ArrayLike,
    *,
    prediction_sigma: float = 0.0,
) -> Array:
    """Mean wait of each class under Smith's rule: least size per weight first, no preemption.

    Parameters
    ----------
    arrival_rates
        Jobs of each class in a unit of time, shape (classes,).
    sizes
        Law of the size of each class.
    weights
        Holding cost of a job of each class for a unit of time, above 0.
    prediction_sigma
        The rule sees ``size * exp(prediction_sigma * Z)``, Z standard normal and independent; 0
        for exact sizes.

    Returns
    -------
    ndarray
        E[W] of each class, shape (classes,). With one class and no noise this is shortest job
        first.

    Raises
    ------
    ValueError
        Where the total load is not below 1 or a second moment is infinite.

    Examples
    --------
    >>> from whonext.distributions import Exponential
    >>> weighted_shortest_first([0.8], [Exponential(1)], [1]).round(5).tolist()
    [1.88222]

    Predictions that are often off by a factor of e cost some of the gain over the 4 of first come,
    first served:

    >>> weighted_shortest_first([0.8], [Exponential(1)], [1], prediction_sigma=1).round(4).tolist()
    [2.3886]
    """
    rates, _ = _classes(arrival_rates, sizes)
    w = np.asarray(weights, dtype=np.float64)
    if w.shape != rates.shape or not (np.isfinite(w) & (w > 0)).all():
        raise ValueError(f"weights={w.tolist()}: must be one number above 0 for each class")
    sigma = number("prediction_sigma", prediction_sigma, least=0.0)
    scaled = [size.scaled(1 / weight) for size, weight in zip(sizes, w, strict=True)]
    return index_order(rates, sizes, scaled, sigma, w)


def index_order(
    arrival_rates: ArrayLike,
    sizes: Sequence[Distribution],
    indices: Sequence[Distribution],
    sigma: float,
    weights: Array,
) -> Array:
    """Mean waits where job of class k has index ``S / weights[k] * exp(sigma * Z)``.

    ``indices`` are the laws of ``S / weights[k]``; see :func:`weighted_shortest_first`.
    """
    rates, _ = _classes(arrival_rates, sizes)
    residual = _residual_work(rates, sizes)
    if sigma == 0:
        marks = quadrature.bends(*indices)

        def wait(index: Array) -> Array:
            below = _load_up_to(quadrature.just_below(index), rates, indices, weights)
            return residual / ((1 - below) * (1 - _load_up_to(index, rates, indices, weights)))

        rules = [quadrature.expectation_rule(law, marks) for law in indices]
        return np.array([chances @ wait(points) for points, chances in rules])
    return _noisy(rates, indices, weights, sigma, residual)


def _load_up_to(
    index: Array, rates: Array, indices: Sequence[Distribution], weights: Array
) -> Array:
    """Load of the jobs whose exact index is at most each number."""
    parts = zip(rates, indices, weights, strict=True)
    return sum(rate * weight * law.partial_mean(index) for rate, law, weight in parts)


def _noisy(
    rates: Array,
    indices: Sequence[Distribution],
    weights: Array,
    sigma: float,
    residual: float,
) -> Array:
    """Do the same with indices blurred by a lognormal factor: smooth, so tabulated and splined."""
    noise, chances = _normal_rule(sigma)
    rules = [quadrature.expectation_rule(law) for law in indices]
    log_points = [np.log(points) for points, _ in rules]
    reach = sigma * noise[-1]
    low = min(logs.min() for logs in log_points) - reach
    high = max(logs.max() for logs in log_points) + reach
    grid = np.linspace(low, high, max(400, math.ceil((high - low) / (0.02 * max(1.0, sigma)))))
    load = np.zeros_like(grid)
    for z, chance in zip(noise, chances, strict=True):
        exact = np.exp(np.clip(grid - sigma * z, -600, 600))
        load += chance * _load_up_to(exact, rates, indices, weights)
    wait: Callable[[Array], Array] = CubicSpline(grid, residual / (1 - load) ** 2)
    waits = []
    for logs, (_, weight) in zip(log_points, rules, strict=True):
        heavy = weight > 1e-16
        blurred = wait(logs[heavy, None] + sigma * noise)
        waits.append(float(weight[heavy] @ (blurred @ chances)))
    return np.array(waits)


def _normal_rule(sigma: float) -> tuple[Array, Array]:
    """Points and probabilities that stand for a standard normal variable.

    The panels are fine enough for functions of ``sigma * Z`` that change over about one unit.
    """
    edges = np.linspace(-_REACH, _REACH, 1 + min(10 + math.ceil(3 * sigma), 500))
    half = (edges[1:] - edges[:-1]) / 2
    points = ((edges[1:] + edges[:-1]) / 2)[:, None] + half[:, None] * _NODES
    chances = half[:, None] * _WEIGHTS * np.exp(-(points**2) / 2)
    return points.ravel(), chances.ravel() / chances.sum()
