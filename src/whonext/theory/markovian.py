"""M/M/1 and M/M/c: Poisson arrivals, exponential sizes, first come first served.

The only queue on many servers whose waiting time has a formula anyone would write down. A job
waits with Erlang's probability C, and a wait, once there is one, is exponential with rate
``servers * service_rate - arrival_rate``. The wait is the same, in the mean, for any order that
does not look at sizes and does not preempt.

Sources: A. K. Erlang, 1917 (the probability of waiting); any text for the rest, such as
L. Kleinrock, Queueing Systems I, 1975, sections 3.2 and 3.5.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq

from whonext.theory._arguments import count, number, rate_and_load

__all__ = [
    "blocking_probability",
    "number_mean",
    "number_probability",
    "response_mean",
    "response_quantile",
    "response_tail",
    "waiting_mean",
    "waiting_probability",
    "waiting_quantile",
    "waiting_tail",
]


def blocking_probability(offered_load: float, servers: int) -> float:
    """Erlang's B: the share of arrivals that find all servers busy when none may wait (M/M/c/c).

    Parameters
    ----------
    offered_load
        Arrival rate times mean size, which may exceed ``servers``.
    servers
        Number of servers.

    Examples
    --------
    >>> round(blocking_probability(offered_load=2, servers=3), 6)
    0.210526

    Notes
    -----
    By the recursion on the number of servers, of which every term is positive and at most 1:
    nothing cancels or overflows, with ten servers or ten thousand.
    """
    offered_load = number("offered_load", offered_load, least=0.0)
    blocked = 1.0
    for k in range(1, count("servers", servers) + 1):
        blocked = offered_load * blocked / (k + offered_load * blocked)
    return blocked


def waiting_probability(
    mean_size: float = 1.0,
    servers: int = 1,
    *,
    arrival_rate: float | None = None,
    load: float | None = None,
) -> float:
    """Erlang's C: the share of jobs that must wait.

    Parameters
    ----------
    mean_size
        Mean of the exponential size, E[S].
    servers
        Number of servers of speed 1.
    arrival_rate, load
        Exactly one of the two; ``load`` is ``arrival_rate * mean_size / servers``.

    Raises
    ------
    ValueError
        Where the load is not below 1.

    Examples
    --------
    >>> round(waiting_probability(load=0.8), 6)
    0.8
    >>> round(waiting_probability(load=0.8, servers=3), 6)
    0.647191
    """
    _, load, _ = _queue(mean_size, servers, arrival_rate, load)
    blocked = blocking_probability(load * servers, servers)
    return blocked / (1 - load * (1 - blocked))


def waiting_mean(
    mean_size: float = 1.0,
    servers: int = 1,
    *,
    arrival_rate: float | None = None,
    load: float | None = None,
) -> float:
    """Mean time in the queue, E[W], in the unit of ``mean_size``.

    Parameters are those of :func:`waiting_probability`.

    Examples
    --------
    >>> round(waiting_mean(load=0.8), 6)
    4.0
    >>> round(waiting_mean(load=0.8, servers=3), 6)
    1.078652
    """
    _, load, drain = _queue(mean_size, servers, arrival_rate, load)
    return waiting_probability(mean_size, servers, load=load) / drain


def response_mean(
    mean_size: float = 1.0,
    servers: int = 1,
    *,
    arrival_rate: float | None = None,
    load: float | None = None,
) -> float:
    """Mean time from arrival to departure, E[T].

    Examples
    --------
    >>> round(response_mean(load=0.8), 6)
    5.0
    """
    return mean_size + waiting_mean(mean_size, servers, arrival_rate=arrival_rate, load=load)


def number_mean(
    mean_size: float = 1.0,
    servers: int = 1,
    *,
    arrival_rate: float | None = None,
    load: float | None = None,
) -> float:
    """Mean number in the system, E[N], by Little's law.

    Examples
    --------
    >>> round(number_mean(load=0.8), 6)
    4.0
    """
    rate, load, _ = _queue(mean_size, servers, arrival_rate, load)
    return rate * response_mean(mean_size, servers, load=load)


def number_probability(
    jobs: ArrayLike,
    mean_size: float = 1.0,
    servers: int = 1,
    *,
    arrival_rate: float | None = None,
    load: float | None = None,
) -> NDArray[np.float64]:
    """Probability of each number of jobs in the system, which is also what an arrival sees.

    Parameters
    ----------
    jobs
        Whole numbers, any shape.

    Examples
    --------
    >>> number_probability([0, 1, 2], load=0.8).round(4).tolist()
    [0.2, 0.16, 0.128]
    """
    _, load, _ = _queue(mean_size, servers, arrival_rate, load)
    n = np.asarray(jobs)
    if not np.issubdtype(n.dtype, np.integer) or (n < 0).any():
        raise ValueError("jobs: must be whole numbers of at least 0")
    if load == 0:
        return np.where(n == 0, 1.0, 0.0)
    # Anchored at P[N = servers] = C (1 - load), so that no factorial is ever formed.
    full = waiting_probability(mean_size, servers, load=load) * (1 - load)
    below = np.arange(servers, 0, -1) / (load * servers)  # P[k - 1] / P[k]
    logs = math.log(full) + np.concatenate([[0.0], np.cumsum(np.log(below))])
    less = np.clip(servers - n, 0, servers)
    return np.exp(logs[less] + np.clip(n - servers, 0, None) * math.log(load))


def waiting_tail(
    time: ArrayLike,
    mean_size: float = 1.0,
    servers: int = 1,
    *,
    arrival_rate: float | None = None,
    load: float | None = None,
) -> NDArray[np.float64]:
    """Probability of waiting longer than each ``time``, P[W > t].

    Examples
    --------
    >>> waiting_tail([0, 10], load=0.8).round(6).tolist()
    [0.8, 0.108268]
    """
    _, load, drain = _queue(mean_size, servers, arrival_rate, load)
    t = np.asarray(time, dtype=np.float64)
    waits = waiting_probability(mean_size, servers, load=load)
    return np.where(t < 0, 1.0, waits * np.exp(-drain * np.maximum(t, 0)))


def waiting_quantile(
    probability: float,
    mean_size: float = 1.0,
    servers: int = 1,
    *,
    arrival_rate: float | None = None,
    load: float | None = None,
) -> float:
    """Give the time that a share of jobs wait at most; 0 where that many never wait.

    Examples
    --------
    >>> round(waiting_quantile(0.99, load=0.8), 4)
    21.9101
    >>> waiting_quantile(0.1, load=0.8)
    0.0
    """
    _probability(probability)
    _, load, drain = _queue(mean_size, servers, arrival_rate, load)
    waits = waiting_probability(mean_size, servers, load=load)
    if waits <= 1 - probability:
        return 0.0
    return math.log(waits / (1 - probability)) / drain


def response_tail(
    time: ArrayLike,
    mean_size: float = 1.0,
    servers: int = 1,
    *,
    arrival_rate: float | None = None,
    load: float | None = None,
) -> NDArray[np.float64]:
    """Probability of a response time longer than each ``time``, P[T > t].

    On one server it is exponential with rate ``service_rate - arrival_rate``.

    Examples
    --------
    >>> response_tail([0, 10], load=0.8).round(6).tolist()
    [1.0, 0.135335]
    """
    _, load, drain = _queue(mean_size, servers, arrival_rate, load)
    t = np.maximum(np.asarray(time, dtype=np.float64), 0)
    waits = waiting_probability(mean_size, servers, load=load)
    serve = 1 / mean_size
    # A wait and a service, both exponential: written so that equal rates are no special case.
    apart = abs(serve - drain)
    shared = np.exp(-min(serve, drain) * t)
    overlap = shared * (t if apart == 0 else -np.expm1(-apart * t) / apart)
    after_waiting = np.exp(-drain * t) + drain * overlap
    return (1 - waits) * np.exp(-serve * t) + waits * after_waiting


def response_quantile(
    probability: float,
    mean_size: float = 1.0,
    servers: int = 1,
    *,
    arrival_rate: float | None = None,
    load: float | None = None,
) -> float:
    """Give the response time that a share ``probability`` of jobs do not exceed.

    Examples
    --------
    >>> round(response_quantile(0.99, load=0.8), 4)
    23.0259
    """
    _probability(probability)
    _, load, drain = _queue(mean_size, servers, arrival_rate, load)
    if probability == 0:
        return 0.0
    target = math.log1p(-probability)

    def above(t: float) -> float:
        return math.log(float(response_tail(t, mean_size, servers, load=load))) - target

    high = (1 - target) * (mean_size + 1 / drain)
    while above(high) > 0:
        high *= 2
    return float(brentq(above, 0.0, high, xtol=1e-14 * high, rtol=1e-13))


def _queue(
    mean_size: float, servers: int, arrival_rate: float | None, load: float | None
) -> tuple[float, float, float]:
    """Arrival rate, load, and the rate at which a wait runs out."""
    mean_size = number("mean_size", mean_size, above=0.0)
    rate, load = rate_and_load(
        mean_size, arrival_rate=arrival_rate, load=load, servers=servers, model=f"M/M/{servers}"
    )
    return rate, load, servers * (1 - load) / mean_size


def _probability(probability: float) -> None:
    if not 0 <= probability < 1:
        raise ValueError(f"probability={probability:g}: must be at least 0 and below 1")
