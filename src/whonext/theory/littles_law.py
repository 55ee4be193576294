"""Little's law: the mean number in a system is the rate of arrivals times the mean time inside.

It needs no law of arrivals or sizes, no order of service, not even a queue: only a boundary that
jobs cross once in and once out, and long-run averages that exist. On a window of time that begins
and ends empty it holds exactly, as two ways of measuring one area; on any other window it misses
by the time that the window's edges cut off, and :func:`sample_path` says by how much.

Source: J. D. C. Little, "A proof for the queuing formula: L = lambda W", Operations Research 9(3),
1961; the argument by areas follows S. Stidham, "A last word on L = lambda W", Operations Research
22(2), 1974.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whonext.theory._arguments import number

__all__ = ["LittlesLaw", "SamplePath", "littles_law", "number_in_system", "sample_path"]


class LittlesLaw(NamedTuple):
    """Three averages, of which any two give the third."""

    mean_number: float
    arrival_rate: float
    mean_time: float


def littles_law(
    mean_number: float | None = None,
    arrival_rate: float | None = None,
    mean_time: float | None = None,
) -> LittlesLaw:
    """Give the third of three averages from the other two.

    Parameters
    ----------
    mean_number
        Time average of the number of jobs inside, E[N].
    arrival_rate
        Jobs in a unit of time, lambda.
    mean_time
        Average over jobs of the time inside, E[T], in the same unit.

    Returns
    -------
    LittlesLaw
        All three.

    Raises
    ------
    ValueError
        Unless exactly two are given, or where the third is not determined.

    Examples
    --------
    Forty requests inside at a time, eight a second: each stays five seconds.

    >>> littles_law(mean_number=40, arrival_rate=8)
    LittlesLaw(mean_number=40.0, arrival_rate=8.0, mean_time=5.0)
    """
    given = {"mean_number": mean_number, "arrival_rate": arrival_rate, "mean_time": mean_time}
    known = {
        name: number(name, value, least=0.0) for name, value in given.items() if value is not None
    }
    if len(known) != 2:
        raise ValueError(
            "give exactly two of mean_number, arrival_rate and mean_time: "
            f"{' and '.join(known) or 'none'} given"
        )
    if "mean_number" not in known:
        return LittlesLaw(known["arrival_rate"] * known["mean_time"], **known)
    divisor = next(name for name in known if name != "mean_number")
    if known[divisor] == 0:
        raise ValueError(f"{divisor}=0: must be above 0 to give the third average")
    known[next(name for name in given if name not in known)] = known["mean_number"] / known[divisor]
    return LittlesLaw(**known)


def number_in_system(
    arrival: ArrayLike, departure: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Count the jobs inside as a step function of time.

    Parameters
    ----------
    arrival, departure
        Times at which each job came and left, shape (jobs,); ``inf`` for one that has not left.

    Returns
    -------
    times : ndarray
        The distinct moments at which the number changes or is touched, increasing.
    numbers : ndarray
        The number inside from each moment to the next.

    Examples
    --------
    >>> times, numbers = number_in_system([0, 1], [3, 4])
    >>> times.tolist(), numbers.tolist()
    ([0.0, 1.0, 3.0, 4.0], [1, 2, 1, 0])
    """
    come, leave = _jobs(arrival, departure)
    leave = leave[np.isfinite(leave)]
    times, where = np.unique(np.concatenate([come, leave]), return_inverse=True)
    steps = np.zeros(len(times), dtype=np.int64)
    np.add.at(steps, where[: len(come)], 1)
    np.add.at(steps, where[len(come) :], -1)
    return times, np.cumsum(steps)


@dataclass(frozen=True)
class SamplePath:
    """Both sides of Little's law, measured on one window of one sample path.

    Attributes
    ----------
    start, end
        The window.
    jobs
        Jobs that arrived in the window.
    area
        Area under the number inside, over the window: job-seconds.
    time_of_arrivals
        Total time inside, from arrival to departure, of the jobs that arrived in the window.
    inside_before
        Job-seconds in the window of jobs that were there when it opened.
    beyond_end
        Time that the jobs which arrived in the window spend after it closes.
    """

    start: float
    end: float
    jobs: int
    area: float
    time_of_arrivals: float
    inside_before: float
    beyond_end: float

    @property
    def mean_number(self) -> float:
        """Time average of the number inside."""
        return self.area / (self.end - self.start)

    @property
    def arrival_rate(self) -> float:
        """Arrivals in a unit of time."""
        return self.jobs / (self.end - self.start)

    @property
    def mean_time(self) -> float:
        """Average time inside of the jobs that arrived; ``nan`` if none did."""
        return self.time_of_arrivals / self.jobs if self.jobs else float("nan")

    @property
    def gap(self) -> float:
        """``mean_number - arrival_rate * mean_time``: what the window's edges cut off.

        Zero where the window begins and ends empty. It is
        ``(inside_before - beyond_end) / (end - start)``, and so fades as the window grows, unless
        the number inside grows with it.
        """
        return (self.inside_before - self.beyond_end) / (self.end - self.start)


def sample_path(
    arrival: ArrayLike,
    departure: ArrayLike,
    start: float | None = None,
    end: float | None = None,
) -> SamplePath:
    """Measure both sides of Little's law on a window of a sample path.

    Parameters
    ----------
    arrival, departure
        Times at which each job came and left, shape (jobs,).
    start, end
        The window, arrivals at ``start`` included and those at ``end`` not; by default all of
        the path, from the first arrival to the last departure.

    Raises
    ------
    ValueError
        For an empty window, or a job that leaves before it comes.

    Examples
    --------
    Two jobs, inside for 3 each; together they cover an area of 6 in 4 units of time.

    >>> path = sample_path([0, 1], [3, 4])
    >>> path.mean_number, path.arrival_rate, path.mean_time, path.gap
    (1.5, 0.5, 3.0, 0.0)

    Cut the window at 3.5 and the law misses, by the half unit that the second job is still owed:

    >>> path = sample_path([0, 1], [3, 4], end=3.5)
    >>> path.gap * 3.5
    -0.5
    """
    come, leave = _jobs(arrival, departure)
    start = float(come[0] if len(come) else 0.0) if start is None else float(start)
    end = float(leave.max(initial=start)) if end is None else float(end)
    if not start < end or not np.isfinite(end):
        raise ValueError(f"end={end:g}: must be a time after start={start:g}")
    inside = np.clip(np.minimum(leave, end) - np.maximum(come, start), 0.0, None)
    arrived = (come >= start) & (come < end)
    times = leave[arrived] - come[arrived]
    return SamplePath(
        start=start,
        end=end,
        jobs=int(np.count_nonzero(arrived)),
        area=float(inside.sum()),
        time_of_arrivals=float(times.sum()),
        inside_before=float(inside[come < start].sum()),
        beyond_end=float(np.clip(leave[arrived] - end, 0.0, None).sum()),
    )


def _jobs(
    arrival: ArrayLike, departure: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    come = np.asarray(arrival, dtype=np.float64)
    leave = np.asarray(departure, dtype=np.float64)
    if come.ndim != 1 or come.shape != leave.shape:
        raise ValueError(
            f"arrival and departure: must be two columns of one length, not of shapes "
            f"{come.shape} and {leave.shape}"
        )
    if not (np.isfinite(come).all() and (leave >= come).all()):
        raise ValueError("departure: every job must arrive at a finite time and leave no earlier")
    order = np.argsort(come, kind="stable")
    return come[order], leave[order]
