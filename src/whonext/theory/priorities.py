"""Classes in a fixed order of importance, on one server with Poisson arrivals and any laws.

A class waits for what it finds ahead of it, and then for whatever more important work comes in
meanwhile: two factors, the load of the classes above it and that load with its own. Nothing gets
faster. The waits weighted by load add up to the same number in any order (the conservation law),
so a rule only chooses who waits.

Sources: A. Cobham, "Priority assignment in waiting line problems", Operations Research 2, 1954;
L. Kleinrock, Queueing Systems II, 1976 (with interruption, sizes of any law); L. Kleinrock, "A
conservation law for a wide class of queueing disciplines", Naval Research Logistics Quarterly 12,
1965; D. R. Cox and W. L. Smith, Queues, 1961 (the c-mu rule).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whonext.theory import markovian
from whonext.theory._arguments import number, require_moment, stable_load

if TYPE_CHECKING:
    from whonext.distributions import Distribution

__all__ = [
    "c_mu_order",
    "conserved_sum",
    "non_preemptive",
    "non_preemptive_exponential",
    "preemptive_resume",
    "preemptive_resume_exponential",
    "region_vertices",
]


def non_preemptive(
    arrival_rates: ArrayLike, sizes: Sequence[Distribution], ranks: ArrayLike | None = None
) -> NDArray[np.float64]:
    """Cobham's mean wait of each class, the class of lowest rank going first.

    Parameters
    ----------
    arrival_rates
        Jobs of each class in a unit of time, shape (classes,).
    sizes
        Law of the size of each class.
    ranks
        One number a class, lowest first, equal ones in order of arrival; by default the order in
        which the classes are given.

    Returns
    -------
    ndarray
        E[W] of each class, shape (classes,). A job once started is finished.

    Raises
    ------
    ValueError
        Where the total load is not below 1 or a second moment is infinite.

    Examples
    --------
    >>> from whonext.distributions import Exponential
    >>> non_preemptive([0.4, 0.4], [Exponential(1), Exponential(1)]).round(4).tolist()
    [1.3333, 6.6667]
    """
    rates, loads = _classes(arrival_rates, sizes)
    above, through = _load_above_and_through(loads, ranks)
    return _residual_work(rates, sizes) / ((1 - above) * (1 - through))


def preemptive_resume(
    arrival_rates: ArrayLike, sizes: Sequence[Distribution], ranks: ArrayLike | None = None
) -> NDArray[np.float64]:
    """Mean response time of each class where a more important arrival takes the server at once.

    A class sees nothing of those below it. Work set aside is kept. Parameters are those of
    :func:`non_preemptive`; only the classes down to the one asked about need finite second moments
    and a load below 1, and the others get ``inf``.

    Examples
    --------
    >>> from whonext.distributions import Exponential
    >>> preemptive_resume([0.4, 0.4], [Exponential(1), Exponential(1)]).round(4).tolist()
    [1.6667, 8.3333]
    """
    rates, loads = _classes(arrival_rates, sizes, stable=False)
    above, through = _load_above_and_through(loads, ranks)
    means = np.array([size.mean for size in sizes])
    parts = [
        rate * size.second_moment / 2 if rate > 0 else 0.0
        for rate, size in zip(rates, sizes, strict=True)
    ]
    _, residual = _load_above_and_through(np.array(parts), ranks)
    result = np.full(len(rates), math.inf)
    fine = (through < 1) & np.isfinite(residual)
    result[fine] = means[fine] / (1 - above[fine]) + residual[fine] / (
        (1 - above[fine]) * (1 - through[fine])
    )
    return result


def non_preemptive_exponential(
    arrival_rates: ArrayLike,
    mean_size: float = 1.0,
    servers: int = 1,
    ranks: ArrayLike | None = None,
) -> NDArray[np.float64]:
    """Cobham's mean waits on many servers, where all classes have one exponential law of size.

    Examples
    --------
    >>> non_preemptive_exponential([1.2, 1.2], servers=3).round(4).tolist()
    [0.3596, 1.7978]
    """
    rates, mean_size = _rates(arrival_rates), number("mean_size", mean_size, above=0.0)
    loads = rates * mean_size / servers
    load = stable_load(float(loads.sum()), servers, f"M/M/{servers}")
    above, through = _load_above_and_through(loads, ranks)
    waits = markovian.waiting_probability(mean_size, servers, load=load)
    return waits * mean_size / servers / ((1 - above) * (1 - through))


def preemptive_resume_exponential(
    arrival_rates: ArrayLike,
    mean_size: float = 1.0,
    servers: int = 1,
    ranks: ArrayLike | None = None,
) -> NDArray[np.float64]:
    """Mean response times on many servers, with preemption and one exponential law of size.

    The classes down to any rank have the system to themselves, and without memory it does not
    matter which of them is served: their mean number is that of M/M/n.

    Examples
    --------
    >>> preemptive_resume_exponential([1.2, 1.2], servers=3).round(4).tolist()
    [1.0784, 3.0789]
    """
    rates, mean_size = _rates(arrival_rates), number("mean_size", mean_size, above=0.0)
    stable_load(float(rates.sum()) * mean_size / servers, servers, f"M/M/{servers}")
    above, through = _load_above_and_through(rates, ranks)

    def inside(rate: float) -> float:
        return markovian.number_mean(mean_size, servers, arrival_rate=rate)

    pairs = zip(above, through, strict=True)
    return np.array([(inside(b) - inside(a)) / (b - a) if b > a else math.nan for a, b in pairs])


def conserved_sum(arrival_rates: ArrayLike, sizes: Sequence[Distribution]) -> float:
    """Sum the mean waits, each weighted by the load of its class.

    The same under every order of classes, as under first come first served, so long as the rule
    never idles with work to do, never preempts, and looks at no sizes beyond the class.

    Examples
    --------
    >>> from whonext.distributions import Exponential
    >>> round(conserved_sum([0.4, 0.4], [Exponential(1), Exponential(1)]), 6)
    3.2
    """
    rates, loads = _classes(arrival_rates, sizes)
    load = float(loads.sum())
    return load * _residual_work(rates, sizes) / (1 - load)


def c_mu_order(weights: ArrayLike, sizes: Sequence[Distribution]) -> list[int]:
    """Classes by falling ``weight / E[S]``: the order of least mean holding cost, no preemption.

    Ties keep the order given.

    Examples
    --------
    >>> from whonext.distributions import Exponential
    >>> c_mu_order([1, 3], [Exponential(1), Exponential(2)])
    [1, 0]
    """
    index = np.asarray(weights, dtype=float) / np.array([size.mean for size in sizes])
    return [int(k) for k in np.argsort(-index, kind="stable")]


def region_vertices(
    arrival_rates: ArrayLike, sizes: Sequence[Distribution]
) -> dict[tuple[int, ...], NDArray[np.float64]]:
    """Mean waits of the classes, in the order given, under each order of priority.

    These are the corners of all that a size-blind rule without preemption can reach: every such
    rule's vector of mean waits is a mixture of them.

    Examples
    --------
    >>> from whonext.distributions import Exponential
    >>> corners = region_vertices([0.4, 0.4], [Exponential(1), Exponential(1)])
    >>> {order: waits.round(4).tolist() for order, waits in corners.items()}
    {(0, 1): [1.3333, 6.6667], (1, 0): [6.6667, 1.3333]}
    """
    from itertools import permutations

    rates = _rates(arrival_rates)
    corners = {}
    for order in permutations(range(len(sizes))):
        waits = np.empty(len(sizes))
        waits[list(order)] = non_preemptive(rates[list(order)], [sizes[k] for k in order])
        corners[order] = waits
    return corners


def _rates(arrival_rates: ArrayLike) -> NDArray[np.float64]:
    rates = np.atleast_1d(np.asarray(arrival_rates, dtype=np.float64))
    if rates.ndim != 1 or not len(rates) or not (np.isfinite(rates) & (rates >= 0)).all():
        raise ValueError(f"arrival_rates={rates.tolist()}: must be numbers of at least 0")
    return rates


def _classes(
    arrival_rates: ArrayLike, sizes: Sequence[Distribution], stable: bool = True
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    rates = _rates(arrival_rates)
    if len(rates) != len(sizes):
        raise ValueError(f"arrival_rates: {len(rates)} given for {len(sizes)} classes of sizes")
    loads = rates * np.array([size.mean for size in sizes])
    if stable:
        stable_load(float(loads.sum()), 1)
    return rates, loads


def _load_above_and_through(
    loads: NDArray[np.float64], ranks: ArrayLike | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """For each class, the load of the classes before it, and of those not after it."""
    order = np.arange(len(loads)) if ranks is None else np.asarray(ranks, dtype=np.float64)
    if order.shape != loads.shape:
        raise ValueError(f"ranks: {order.size} given for {len(loads)} classes")
    before = order[None, :] < order[:, None]
    level = order[None, :] == order[:, None]
    above, among = (np.where(which, loads, 0.0).sum(axis=1) for which in (before, level))
    return above, above + among


def _residual_work(rates: NDArray[np.float64], sizes: Sequence[Distribution]) -> float:
    """Mean work left of the job that an arrival finds in service."""
    return math.fsum(
        rate * require_moment(size, 2, "E[W]") / 2
        for rate, size in zip(rates, sizes, strict=True)
        if rate > 0
    )
