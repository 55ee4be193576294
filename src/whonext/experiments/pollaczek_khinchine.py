"""Means that exist, means that do not, and intervals that miss."""

from __future__ import annotations

from typing import Any

import numpy as np

from whonext import simulate
from whonext.estimates import interval
from whonext.experiments import experiment
from whonext.results import COUNT, WAITING_1
from whonext.theory import pollaczek_khinchine as theorem
from whonext.workload import Workload

__all__ = ["coverage", "pollaczek_khinchine_run", "running_mean", "waits_in_order"]

LOAD = 0.8

#: The law with an infinite mean wait, and one of the same mean for which the wait has every moment.
HEAVY, LIGHT = "pareto:alpha=1.5", "exp:3"

#: Laws for which the interval is tried, from light to heavy. The mean wait is finite for all; its
#: variance is not for the Pareto laws with an index of 3 or less.
TRIED = ("exp:1", "pareto:alpha=3.5", "pareto:alpha=2.5", "pareto:alpha=2.2")

#: The one of them that is tried again with ten times as many jobs.
LONGER = "pareto:alpha=2.5"


def waits_in_order(arrival: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Waits in one server's queue, first come first served, from an empty start.

    Lindley's recursion, unrolled: the wait is the height of a random walk above its lowest point
    so far.

    Parameters
    ----------
    arrival, size
        Shape (jobs,).

    Returns
    -------
    array of float, shape (jobs,)
    """
    steps = size[:-1] - np.diff(arrival)
    walk = np.concatenate([[0.0], np.cumsum(steps)])
    return walk - np.minimum.accumulate(walk)


def running_mean(
    law: str, jobs: int, runs: int, seed: int = 0, points: int = 120
) -> dict[str, list[Any]]:
    """The mean and the 90 % quantile of the waits of the first jobs, as more jobs come.

    Parameters
    ----------
    law
        The law of sizes; the load is ``LOAD``.
    jobs, runs
        Length and number of the runs.

    Returns
    -------
    dict
        ``jobs``, the numbers of jobs that were looked at, and lists ``mean`` and ``p90`` with a
        row for each run.
    """
    counts = np.unique(np.geomspace(100, jobs, points).astype(int))
    workload = Workload(law, load=LOAD)
    means, quantiles = [], []
    for run in range(runs):
        table = workload.table(jobs, seed=seed + run)
        wait = waits_in_order(table.arrival, table.size)
        means.append((np.cumsum(wait)[counts - 1] / counts).round(4).tolist())
        quantiles.append([round(float(np.quantile(wait[:count], 0.9)), 4) for count in counts])
    return {"jobs": counts.tolist(), "mean": means, "p90": quantiles}


def coverage(
    law: str, trials: int, jobs: int = 200_000, replications: int = 10, seed: int = 0
) -> dict[str, Any]:
    """How often a nominal 95 % normal interval for the mean wait covers the true one.

    Parameters
    ----------
    trials
        Independent simulations, each with its own interval from ``replications`` replications.

    Returns
    -------
    dict
        ``truth``, ``covered`` (share), ``below`` and ``above`` (shares of intervals wholly on one
        side of the truth) and ``intervals``, the first forty as (mean, low, high).
    """
    workload = Workload(law, load=LOAD)
    truth = theorem.waiting_mean(workload.size, load=LOAD)
    rows = []
    for trial in range(trials):
        run = simulate(
            "fcfs", workload, jobs=jobs, replications=replications, seed=seed + trial, cores=1
        )
        means = [t.moments[0, WAITING_1] / t.moments[0, COUNT] for t in run.tallies]
        low, high = interval(means) or (np.nan, np.nan)
        rows.append((float(np.mean(means)), low, high))
    table = np.array(rows)
    below, above = table[:, 2] < truth, table[:, 1] > truth
    return {
        "law": law,
        "truth": truth,
        "trials": trials,
        "jobs": jobs,
        "covered": float(1 - below.mean() - above.mean()),
        "below": float(below.mean()),
        "above": float(above.mean()),
        "intervals": table[:40].round(4).tolist(),
    }


@experiment("pollaczek-khinchine")
def pollaczek_khinchine_run(small: bool = False) -> dict[str, Any]:
    """Running means with and without a limit, and the coverage of normal intervals."""
    jobs, trials = (100_000, 20) if small else (10_000_000, 400)
    return {
        "load": LOAD,
        "running": {law: running_mean(law, jobs, runs=4) for law in (HEAVY, LIGHT)},
        "coverage": [coverage(law, trials) for law in TRIED],
        "coverage_of_longer_runs": coverage(LONGER, trials // 4, jobs=2_000_000),
    }
