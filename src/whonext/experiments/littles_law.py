"""Three ways to read a mean response time off a window, and what each of them cuts off."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from whonext import parse_law, simulate
from whonext.estimates import interval
from whonext.experiments import experiment
from whonext.experiments.pollaczek_khinchine import waits_in_order
from whonext.theory import pollaczek_khinchine
from whonext.workload import Workload

__all__ = ["READINGS", "Reading", "dashboard", "littles_law", "overload", "read_windows"]

#: The three readings, in the order in which the chapter names them.
READINGS = ("came and left", "left", "area over arrivals")

SIZE = "lognormal:mean=12,sigma=1.2"
HOUR = 3600.0
OVERLOADS = (1.1, 1.5, 2.0)


@dataclass(frozen=True)
class Reading:
    """The three readings of a mean response time, from windows of one length.

    Attributes
    ----------
    came_and_left
        Mean over the jobs that came and left inside one window.
    left
        Mean over the jobs that left in any of the windows.
    area_by_arrivals
        Area under the number inside, over the number of arrivals.
    inside_at_end
        Jobs inside as the last window closes.
    """

    came_and_left: float
    left: float
    area_by_arrivals: float
    inside_at_end: int


def read_windows(
    arrival: np.ndarray, response: np.ndarray, start: float, length: float, count: int = 1
) -> Reading:
    """Read windows that follow one another on one sample path, as ratios of their sums.

    Parameters
    ----------
    arrival, response
        Time of arrival and time in the system of each job, shape (jobs,).
    start, length, count
        Where the first window opens, how long each is, and how many there are.
    """
    leave = arrival + response
    end = start + count * length
    came = (arrival >= start) & (arrival < end)
    left = (leave >= start) & (leave < end)
    same = np.floor((arrival - start) / length) == np.floor((leave - start) / length)
    area = np.clip(np.minimum(leave, end) - np.maximum(arrival, start), 0.0, None).sum()
    return Reading(
        came_and_left=float(response[came & left & same].mean()),
        left=float(response[left].mean()),
        area_by_arrivals=float(area / came.sum()),
        inside_at_end=int(((arrival < end) & (leave >= end)).sum()),
    )


def _readings(rows: list[Reading]) -> list[dict[str, Any]]:
    """Mean and 95 % interval of each of the three readings."""
    columns = (
        [row.came_and_left for row in rows],
        [row.left for row in rows],
        [row.area_by_arrivals for row in rows],
    )
    return [
        {"reading": name, **_mean_and_interval(values)}
        for name, values in zip(READINGS, columns, strict=True)
    ]


def _mean_and_interval(values: list[float]) -> dict[str, Any]:
    return {"mean": float(np.mean(values)), "ci95": list(interval(values) or ())}


def dashboard(
    size: str = SIZE, load: float = 0.95, hours: int = 16_000, replications: int = 10, seed: int = 0
) -> dict[str, Any]:
    """A service that has been running for long, read one hour at a time, under FCFS.

    Parameters
    ----------
    size
        The law of sizes, in seconds.
    hours
        Hours in each replication, after a tenth as many of warm-up.

    Returns
    -------
    dict
        ``truth`` (Pollaczek-Khinchine) and ``readings``, over the replications.
    """
    workload = Workload(size, load=load)
    warmup = hours // 10
    jobs = int(workload.rate() * HOUR * (hours + warmup) * 1.05) + 1000
    rows = []
    for r in range(replications):
        table = workload.table(jobs, seed=seed + r)
        response = waits_in_order(table.arrival, table.size) + table.size
        rows.append(read_windows(table.arrival, response, HOUR * warmup, HOUR, hours))
    truth = pollaczek_khinchine.response_mean(workload.size, load=load)
    return {
        "load": load,
        "hours": hours * replications,
        "truth": truth,
        "readings": _readings(rows),
    }


def overload(
    policy: str, load: float, size: str = SIZE, hours: int = 200, seed: int = 0
) -> dict[str, Any]:
    """The first hour of an overloaded service that starts empty; then arrivals stop.

    Returns
    -------
    dict
        ``truth``: the mean response time of all that arrived, each followed to its end, after the
        hour if need be. ``readings``: what the hour itself shows. ``cut_off``: the mean share of
        the arrivals that were inside as it closed. All over ``hours`` independent hours, which
        are the same for every policy.
    """
    rate = load / parse_law(size).mean
    workload = Workload(size, arrival_rate=rate)
    truth, rows, cut = [], [], []
    for h in range(hours):
        table = workload.table(int(rate * HOUR * 1.5) + 100, seed=seed + h)
        hour = table.rows(0, int(np.searchsorted(table.arrival, HOUR)))
        run = simulate(policy, Workload.from_table(hour), trace=True).jobs_table
        assert run is not None  # it was asked for
        response = run["response"].to_numpy()
        reading = read_windows(run["arrival"].to_numpy(), response, 0.0, HOUR)
        truth.append(float(response.mean()))
        rows.append(reading)
        cut.append(reading.inside_at_end / len(hour))
    return {
        "policy": policy,
        "load": load,
        "hours": hours,
        "truth": _mean_and_interval(truth),
        "readings": _readings(rows),
        "cut_off": float(np.mean(cut)),
    }


@experiment("littles-law")
def littles_law(small: bool = False) -> dict[str, Any]:
    """One-hour readings of a busy service, and of overloaded ones."""
    scale = 20 if small else 1
    return {
        "size": SIZE,
        "dashboard": dashboard(hours=16_000 // scale),
        "overloaded": [
            overload(policy, load, hours=200 // scale)
            for load in OVERLOADS
            for policy in ("fcfs", "sjf")
        ],
    }
