"""Theory against simulation, for every rule that has both, judged as one.

A run simulates one rule on one stream of jobs, and gives several *cells*: the mean response time of
all jobs, that of each class, and, first come first served, tail probabilities of the wait. A cell
is theory's value, the simulation's, and how far the two are apart in standard errors: z.

Each run has a seed of its own, so that runs are independent. Cells of one run are not.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import stats

from whonext.distributions import Exponential, parse_law
from whonext.estimates import Honesty, standard_score
from whonext.experiments import experiment, kept
from whonext.results import COUNT, RESPONSE_1, Result, Summary
from whonext.simulation import simulate
from whonext.theory import answer, markovian, pollaczek_khinchine
from whonext.workload import JobClass, Workload

__all__ = ["ALARM", "Case", "cases", "judge", "measure", "validation"]

#: Chance that the verdict on a whole record is wrong where every program and formula is right.
ALARM = 1e-5

LOADS = (0.5, 0.8, 0.95)

#: Jobs of a run by load: correlation between waits reaches further at a high load, as
#: 1 / (1 - load)^2 or so, and eats up what more jobs give.
JOBS = {0.5: 1_000_000, 0.8: 2_000_000, 0.95: 8_000_000}
REPLICATIONS = 20

#: Laws with a mean of 1 and all moments, so that replications have means close to normal. The
#: bounded Pareto law spans two decades: a hundredth of its jobs brings a tenth of the work.
LAWS = {
    "exponential": "exp:1",
    "deterministic": "det:1",
    "uniform": "uniform:low=0,high=2",
    "lognormal": "lognormal:mean=1,sigma=1",
    "bounded Pareto": "bounded-pareto:alpha=1.5,low=0.37,high=37",
}

#: A law without a fourth moment, for rules whose mean needs only the first.
HEAVY = "pareto:alpha=3.5"

ONE_SERVER = ("fcfs", "lcfs", "random", "lcfs-pr", "sjf", "ljf", "psjf", "srpt", "lrpt", "fb", "ps")
BLIND = ("fcfs", "lcfs", "random", "lcfs-pr")
NEEDS_NO_SECOND_MOMENT = ("lcfs-pr", "psjf", "srpt", "fb", "ps")
WEIGHTED = ("priority", "priority-pr", "c-mu", "wspt")
BY_PREDICTION = ("sjf:by=prediction", "wspt:by=prediction")
ERRORS = "lognormal:sigma=1"  # a prediction is off by a factor of e, more or less
BY_CLASS = ("priority", "priority-pr", "c-mu")


def _one(law: str, **settings: Any) -> Workload:
    return Workload(law, **settings)


def _two(law: str, **settings: Any) -> Workload:
    """Long jobs that are listed first, and short ones that matter more."""
    each = parse_law(law)
    long, short = each.with_mean(2.5), each.with_mean(0.5)
    classes = [JobClass("long", 0.25, long), JobClass("short", 0.75, short, weight=3)]
    return Workload(classes=classes, **settings)


def _three(_: str, **settings: Any) -> Workload:
    """Classes whose sizes have laws of three kinds."""
    classes = [
        JobClass("uniform", 0.5, parse_law("uniform:low=0,high=1"), weight=2),
        JobClass("erlang", 0.3, parse_law("erlang:phases=2,mean=1"), weight=9),
        JobClass("lognormal", 0.2, parse_law("lognormal:mean=2.25,sigma=1"), weight=1),
    ]
    return Workload(classes=classes, **settings)


def _alike(_: str, **settings: Any) -> Workload:
    """Three classes of one exponential law, of different weights."""
    shares = {"a": (0.5, 1), "b": (0.3, 4), "c": (0.2, 2)}
    classes = [JobClass(name, share, Exponential(1), w) for name, (share, w) in shares.items()]
    return Workload(classes=classes, **settings)


MIXES: dict[str, Callable[..., Workload]] = {
    "one": _one,
    "two": _two,
    "three": _three,
    "alike": _alike,
}


@dataclass(frozen=True)
class Case:
    """One run: a rule, the jobs, the servers and the load.

    Attributes
    ----------
    policy
        A rule, as on the command line.
    mix
        ``one`` class of the law, ``two`` classes of it, ``three`` classes of laws of their own, or
        three classes ``alike``.
    law
        A law as on the command line; empty where the mix has its own.
    load, servers
        Load for each server, and their number.
    prediction, arrivals
        As on the command line; empty for exact ones and for Poisson arrivals.
    """

    policy: str
    mix: str
    law: str
    load: float
    servers: int = 1
    prediction: str = ""
    arrivals: str = ""

    @property
    def name(self) -> str:
        """All of it in one line."""
        parts = [self.policy, self.mix, self.law, self.prediction, self.arrivals]
        parts += [f"servers={self.servers}", f"load={self.load:g}"]
        return " ".join(filter(None, parts))

    @property
    def workload(self) -> Workload:
        """The stream of jobs."""
        settings: dict[str, Any] = {"load": self.load}
        if self.prediction:
            settings["prediction"] = self.prediction
        if self.arrivals:
            settings["arrivals"] = self.arrivals
        return MIXES[self.mix](self.law, **settings)

    @property
    def seed(self) -> int:
        """A seed that no other case has, and that does not depend on which cases there are."""
        return zlib.crc32(self.name.encode())


def cases() -> list[Case]:
    """Every run of the record."""
    out = []
    for load in LOADS:
        for law in LAWS.values():
            out += [Case(policy, "one", law, load) for policy in ONE_SERVER]
            out += [Case(policy, "two", law, load) for policy in WEIGHTED]
            out += [Case(p, "one", law, load, prediction=ERRORS) for p in BY_PREDICTION]
            out.append(Case("ps", "one", law, load, servers=3))
        out += [Case(policy, "one", HEAVY, load) for policy in NEEDS_NO_SECOND_MOMENT]
        out += [Case(policy, "three", "", load) for policy in (*ONE_SERVER, *WEIGHTED)]
        out.append(Case(BY_PREDICTION[1], "three", "", load, prediction=ERRORS))
        for servers in (2, 8):
            out += [Case(p, "one", "exp:1", load, servers) for p in BLIND]
            out += [Case(p, "alike", "", load, servers) for p in BY_CLASS]
        out += [Case(p, "one", "exp:1", load, arrivals="batch:3") for p in ("fcfs", "lcfs")]
    return out


# ------------------------------------------------------------------------------------------------
# Cells
# ------------------------------------------------------------------------------------------------


def measure(case: Case, jobs: int | None = None) -> dict[str, Any]:
    """Run a case and hold it against theory.

    Parameters
    ----------
    case
        What to run.
    jobs
        How many jobs, in all; by default as many as the record has at that load.

    Returns
    -------
    dict
        The case, ``jobs``, and ``cells``: for each its name, theory's value, the simulated one,
        half of its 95 % interval, and z.

    Raises
    ------
    ValueError
        Where there is no formula, or no honest interval: then the case does not belong here.
    """
    jobs = JOBS[case.load] if jobs is None else jobs
    workload = case.workload
    theory = answer(case.policy, workload, case.servers)
    if theory.reason:
        raise ValueError(f"case={case.name!r}: {theory.reason}")
    run = simulate(
        case.policy, workload, case.servers, jobs, case.seed, replications=REPLICATIONS, cores=1
    )
    if run.response.reason:
        raise ValueError(f"case={case.name!r}: {run.response.reason}")
    cells = [_cell("all", theory.response_mean, _means(run, slice(None)))]
    if len(run.names) > 1:
        for k, (name, each) in enumerate(theory.per_class.items()):
            cells.append(_cell(name, each.response_mean, _means(run, slice(k, k + 1))))
    if case.policy == "fcfs" and case.mix == "one" and not case.arrivals:
        cells += _tails(case, run, theory.waiting_mean or 1.0)
    return {
        "policy": case.policy,
        "mix": case.mix,
        "law": case.law,
        "load": case.load,
        "servers": case.servers,
        "prediction": case.prediction,
        "arrivals": case.arrivals,
        "jobs": jobs,
        "cells": cells,
    }


def _means(run: Result, classes: slice) -> np.ndarray:
    """Mean response time of each replication."""
    sums = np.array([t.moments[classes].sum(axis=0) for t in run.tallies])
    return sums[:, RESPONSE_1] / sums[:, COUNT]


def _tails(case: Case, run: Result, mean: float) -> list[dict[str, Any]]:
    """P[W > t] at 0 and at the edges of histogram bins around once and four times the mean."""
    times = np.array([0.0, *(2.0 ** round(math.log2(mean * far)) for far in (1, 4))])
    if case.servers > 1:
        exact = markovian.waiting_tail(times, 1.0, case.servers, load=case.load)
    else:
        law = parse_law(case.law)
        exact = pollaczek_khinchine.waiting_tail(times, law, load=case.load, cells=8192).middle
    each = np.array([Summary([t], 1, None, Honesty()).exceedance(times)[0] for t in run.tallies])
    return [
        _cell(f"P[W > {t:g}]", float(p), values)
        for t, p, values in zip(times, exact, each.T, strict=True)
    ]


def _cell(name: str, theory: float | None, values: np.ndarray) -> dict[str, Any]:
    if theory is None:
        raise ValueError(f"cell={name!r}: theory has no value for it")
    score = standard_score(values, theory)
    return {
        "of": name,
        "theory": float(f"{theory:.9g}"),
        "simulated": float(f"{values.mean():.9g}"),
        "half_width": float(f"{score.half_width:.4g}"),
        "z": round(score.z, 4),
    }


# ------------------------------------------------------------------------------------------------
# The verdict
# ------------------------------------------------------------------------------------------------


def judge(runs: Iterable[dict[str, Any]], alarm: float = ALARM) -> dict[str, Any]:
    """Say whether all cells together look like noise around theory.

    Three tests share the false alarms. The largest z in absolute value, after Bonferroni, is for
    one cell that is far off; it needs no independence. The sum of the squares over the runs (one
    cell of each: all jobs) is for many that are a little off, and for intervals that are too wide.
    Their plain sum is for a small bias in all.

    Parameters
    ----------
    runs
        What :func:`measure` gives.
    alarm
        Chance of an alarm where nothing is wrong.

    Returns
    -------
    dict
        ``runs, cells, alarm``, the three statistics with their p-values, and ``passed``.
    """
    runs = list(runs)
    every = np.array([cell["z"] for run in runs for cell in run["cells"]])
    alone = np.array([run["cells"][0]["z"] for run in runs])
    largest = float(np.abs(every).max())
    squares = float((alone**2).sum())
    total = float(alone.sum() / math.sqrt(len(alone)))
    below = stats.chi2.cdf(squares, len(alone))
    above = stats.chi2.sf(squares, len(alone))
    p_values = {
        "largest": min(1.0, 2 * len(every) * float(stats.norm.sf(largest))),
        "squares": 2 * float(min(below, above)),
        "sum": 2 * float(stats.norm.sf(abs(total))),
    }
    return {
        "runs": len(runs),
        "cells": len(every),
        "alarm": alarm,
        "largest": largest,
        "squares": squares,
        "sum": total,
        "p": p_values,
        "passed": all(p > alarm / len(p_values) for p in p_values.values()),
    }


def _some(everything: Sequence[Case], count: int, seed: int) -> list[Case]:
    """A random part of the cases."""
    chosen = np.random.default_rng(seed).choice(len(everything), count, replace=False)
    return [everything[k] for k in sorted(chosen)]


@experiment("validation")
def validation(small: bool = False) -> dict[str, Any]:
    """Theory against simulation, for every rule that has both.

    The seed of each run is a checksum of its settings.
    """
    chosen = [c for c in cases() if c.load < 0.9] if small else cases()
    if small:
        chosen = _some(chosen, 12, seed=1)
    runs = []
    for case in chosen:
        jobs = 200_000 if small else JOBS[case.load]
        step = f"{case.name} jobs={jobs}"
        runs.append(kept(step, partial(measure, case, jobs)))
    return {"laws": LAWS | {"Pareto": HEAVY}, "runs": runs, "verdict": judge(runs)}
