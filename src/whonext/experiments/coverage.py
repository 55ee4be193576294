"""How often the intervals that :func:`whonext.simulate` gives cover the truth.

The same simulation is repeated a thousand times with other seeds. Where an interval is refused,
the one that would have been given is looked at all the same: to show why it is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import stats

from whonext.distributions import parse_law
from whonext.estimates import ENOUGH, interval
from whonext.experiments import experiment, kept
from whonext.results import COUNT, RESPONSE_1, Summary
from whonext.simulation import simulate
from whonext.theory import answer, pollaczek_khinchine
from whonext.workload import Workload

__all__ = ["CASES", "Case", "binomial_interval", "coverage", "covered", "trials"]

LOAD = 0.8
JOBS = 200_000
REPLICATIONS = 10
REPEATS = 1_000
CHUNK = 100

#: The quantile looked at.
P = 0.99


@dataclass(frozen=True)
class Case:
    """A rule and a law of sizes, on one server."""

    policy: str
    law: str

    @property
    def workload(self) -> Workload:
        """The stream of jobs."""
        return Workload(self.law, load=LOAD)


#: From light to heavy, first come first served; then two of the heavy under a rule that keeps long
#: jobs from holding up the others.
CASES = (
    Case("fcfs", "exp:1"),
    Case("fcfs", "lognormal:mean=1,sigma=1"),
    Case("fcfs", "pareto:alpha=3.5"),
    Case("fcfs", "pareto:alpha=2.5"),
    Case("fcfs", "pareto:alpha=1.5"),
    Case("srpt", "pareto:alpha=2.5"),
    Case("srpt", "pareto:alpha=1.5"),
)


def trials(case: Case, first: int, count: int, jobs: int = JOBS) -> dict[str, list[Any]]:
    """Repeat one simulation, and keep what its intervals are made of.

    Parameters
    ----------
    case
        What is simulated.
    first, count
        Seeds: ``first`` and the ``count`` - 1 after it.
    jobs
        Jobs of one simulation, in all.

    Returns
    -------
    dict
        Lists with an entry for each simulation: ``means`` and ``quantiles`` of the replications,
        the ``pooled`` quantile, the ``least`` number of jobs beyond it in a replication, and the
        interval given for mean (``mean_ci``) and quantile
        (``quantile_ci``), ``None`` where it was refused; and ``mean_reason``, one for all.
    """
    out: dict[str, list[Any]] = {
        name: [] for name in ("means", "quantiles", "pooled", "least", "mean_ci", "quantile_ci")
    }
    reason = None
    for seed in range(first, first + count):
        run = simulate(
            case.policy, case.workload, 1, jobs, seed, replications=REPLICATIONS, cores=1
        )
        out["means"].append([t.moments[0, RESPONSE_1] / t.moments[0, COUNT] for t in run.tallies])
        alone = [Summary([t], 0, None, run.honest["response"]) for t in run.tallies]
        pooled = run.response.quantile(P)
        out["quantiles"].append([each.quantile(P) for each in alone])
        out["pooled"].append(pooled)
        out["least"].append(min(float(s.exceedance(pooled)[0]) * s.count for s in alone))
        out["mean_ci"].append(run.response.ci95)
        out["quantile_ci"].append(run.response.quantile_ci(P))
        reason = run.response.reason
    out["mean_reason"] = [reason]
    return out


# ------------------------------------------------------------------------------------------------
# What was covered
# ------------------------------------------------------------------------------------------------


def binomial_interval(hits: int, tries: int, level: float = 0.95) -> tuple[float, float]:
    """Clopper and Pearson's interval for a share.

    Examples
    --------
    >>> low, high = binomial_interval(950, 1000)
    >>> round(low, 3), round(high, 3)
    (0.935, 0.963)
    """
    found = stats.binomtest(hits, tries).proportion_ci(level, method="exact")
    return float(found.low), float(found.high)


def covered(intervals: list[Any], truth: float) -> dict[str, Any]:
    """Count how many intervals cover the truth.

    Parameters
    ----------
    intervals
        Pairs, or ``None`` for an interval that was refused: it is counted apart.

    Returns
    -------
    dict
        ``given``, and of these the share ``covered`` with its interval ``ci95``, the shares
        wholly ``below`` and ``above`` the truth, and the median ``half_width`` relative to it.
        All but the first are ``None`` where none was given.
    """
    pairs = np.array([pair for pair in intervals if pair is not None], dtype=float)
    if len(pairs) == 0:
        return {
            "given": 0, "covered": None, "ci95": None, "below": None, "above": None,
            "half_width": None,
        }  # fmt: skip
    below, above = pairs[:, 1] < truth, pairs[:, 0] > truth
    hits = int((~below & ~above).sum())
    return {
        "given": len(pairs),
        "covered": hits / len(pairs),
        "ci95": binomial_interval(hits, len(pairs)),
        "below": float(below.mean()),
        "above": float(above.mean()),
        "half_width": float(np.median(pairs[:, 1] - pairs[:, 0]) / 2 / truth),
    }


def _around(centre: float, values: list[float]) -> tuple[float, float] | None:
    """The interval that the spread of the replications' own quantiles would give."""
    bounds = interval(values)
    if bounds is None:
        return None
    half = (bounds[1] - bounds[0]) / 2
    return max(centre - half, 0.0), centre + half


def summarise(case: Case, found: dict[str, list[Any]]) -> dict[str, Any]:
    """Hold the intervals of one case against the truth.

    The quantile first come, first served, is that of theory; under other rules, for which there
    is none, the mean of all the pooled quantiles stands in, whose own error is a thirtieth of
    that of one simulation. ``given`` counts the intervals that the package gives; ``plain``
    those of Student's rule in every simulation, refused or not.
    """
    theory = answer(case.policy, case.workload)
    if case.policy == "fcfs":
        quantile = pollaczek_khinchine.response_quantile(
            P, parse_law(case.law), load=LOAD, cells=8192
        )
        source = "theory"
    else:
        quantile, source = float(np.mean(found["pooled"])), "all simulations together"
    out: dict[str, Any] = {
        "policy": case.policy,
        "law": case.law,
        "simulations": len(found["means"]),
        "mean": {"truth": theory.response_mean, "reason": found["mean_reason"][0]},
        "quantile": {
            "truth": quantile,
            "source": source,
            "bias": float(np.mean(found["pooled"]) / quantile - 1),
            "given": covered(found["quantile_ci"], quantile),
            "plain": covered(
                [_around(*pair) for pair in zip(found["pooled"], found["quantiles"], strict=True)],
                quantile,
            ),
        },
    }
    if theory.response_mean is not None:
        everything = [interval(values) for values in found["means"]]
        out["mean"]["given"] = covered(found["mean_ci"], theory.response_mean)
        out["mean"]["plain"] = covered(everything, theory.response_mean)
    return out


@experiment("coverage")
def coverage(small: bool = False) -> dict[str, Any]:
    """What nominal 95 % intervals cover, for the mean and the 99 % quantile."""
    repeats, chunk, jobs = (10, 10, 20_000) if small else (REPEATS, CHUNK, JOBS)
    rows = []
    for case in CASES:
        parts = []
        for first in range(0, repeats, chunk):
            step = f"{case.policy} {case.law} {first} {chunk} jobs={jobs}"
            parts.append(kept(step, partial(trials, case, first, chunk, jobs)))
        found = {name: [each for part in parts for each in part[name]] for name in parts[0]}
        rows.append(summarise(case, found))
    return {
        "load": LOAD,
        "jobs": jobs,
        "replications": REPLICATIONS,
        "p": P,
        "enough": ENOUGH,
        "rows": rows,
    }
