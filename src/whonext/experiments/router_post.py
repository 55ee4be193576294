"""The one-server experiment of the post on LLM routers, run long enough to know its noise.

The post simulates three classes on one server, 120,000 requests a configuration, and drops the
first 20,000. Many independent runs of that very length give both a precise mean and the spread of
a single one: what a published number can differ by for no reason but chance.
"""

from __future__ import annotations

import itertools
import math
from functools import partial
from typing import Any

import numpy as np

from whonext import JobClass, LogNormal, Workload, simulate
from whonext.estimates import Honesty, interval
from whonext.experiments import experiment, kept
from whonext.results import COUNT, RESPONSE_1, WAITING_1, Summary, Tally
from whonext.theory import (
    littles_law,
    pollaczek_khinchine,
    priorities,
    size_based,
    smiths_rule,
)

__all__ = ["LOAD", "PUBLISHED", "SIGMA", "post_workload", "router_post"]

LOAD = 0.85
REQUESTS, DROPPED = 120_000, 20_000

#: Spread of the lognormal sizes, which the post leaves out: see ``inference`` in the record.
SIGMA = 1.1
TRIED = (1.0, 1.05, 1.1, 1.15)

NAMES = ("interactive", "standard", "batch")
SHARES = np.array([0.50, 0.35, 0.15])
MEANS = np.array([0.30, 1.00, 4.00])
WEIGHTS = np.array([8.0, 2.0, 0.5])

#: The configurations: a rule, and the spread of the predictions that it is given.
RULES = {
    "fcfs": ("fcfs", None),
    "c-mu": ("c-mu", None),
    "wspt": ("wspt", None),
    "wspt, noise 1": ("wspt:by=prediction", 1.0),
    "wspt, noise 1.5": ("wspt:by=prediction", 1.5),
}

#: What the post prints of each configuration, to its digits; the objective is the mean of weight
#: times response time.
PUBLISHED = {
    "fcfs": {"objective": "105.2", "interactive": "21.9", "batch": "25.5", "p99": "140.3"},
    "c-mu": {"objective": "25.4", "interactive": "4.28", "batch": "39.3", "p99": "40.5"},
    "wspt": {"objective": "22.8", "interactive": "4.17", "batch": "20.0"},
    "wspt, noise 1": {"objective": "24.7"},
    "wspt, noise 1.5": {"objective": "26.6"},
}


def post_workload(sigma: float = SIGMA, load: float = LOAD, noise: float | None = None) -> Workload:
    """Give the post's three classes: interactive, standard and batch.

    Parameters
    ----------
    sigma
        Spread of the lognormal sizes, the same for all classes.
    load
        Load of the one server.
    noise
        Spread of the lognormal error of the predictions; exact unless given.
    """
    classes = [
        JobClass(name, share, LogNormal(mean, sigma), weight)
        for name, share, mean, weight in zip(NAMES, SHARES, MEANS, WEIGHTS, strict=True)
    ]
    prediction = None if noise is None else f"lognormal:sigma={noise:g}"
    return Workload(classes=classes, load=load, prediction=prediction)


def _statistics(tally: Tally) -> dict[str, Any]:
    """What the post prints, from one run."""
    counts, totals = tally.moments[:, COUNT], tally.moments[:, RESPONSE_1]
    first = Summary([tally], 0, 0, Honesty())
    return {
        "objective": float(WEIGHTS @ totals / counts.sum()),
        "interactive": float(totals[0] / counts[0]),
        "standard": float(totals[1] / counts[1]),
        "batch": float(totals[2] / counts[2]),
        "p99": first.quantile(0.99),
        "waits": (tally.moments[:, WAITING_1] / counts).tolist(),
        "work": tally.work_area / tally.elapsed,
        "load": tally.offered / tally.elapsed,
    }


def _runs(rule: str, sigma: float, runs: int, seed: int) -> list[dict[str, Any]]:
    """Independent runs of the post's length; different rules with one seed see the same jobs."""
    policy, noise = RULES[rule]
    result = simulate(
        policy,
        post_workload(sigma, noise=noise),
        jobs=runs * REQUESTS,
        replications=runs,
        warmup=DROPPED,
        seed=seed,
    )
    return [_statistics(tally) for tally in result.tallies]


def _summary(values: list[float]) -> dict[str, Any]:
    """Mean with interval, and the interval that a single further run falls in, 95 times in 100.

    The latter is Student's prediction interval on a logarithmic scale.
    """
    from scipy import stats

    logs = np.log(values)
    reach = float(stats.t.ppf(0.975, len(logs) - 1))
    half = reach * logs.std(ddof=1) * math.sqrt(1 + 1 / len(logs))
    low, high = math.exp(logs.mean() - half), math.exp(logs.mean() + half)
    mean_ci = interval(values)
    return {"mean": float(np.mean(values)), "ci95": mean_ci, "one_run": [low, high]}


def _exact(sigma: float) -> dict[str, dict[str, float]]:
    """The same by theory, as far as it goes."""
    workload = post_workload(sigma)
    rates, sizes = workload.rate() * SHARES, [each.size for each in workload.classes]
    alike = pollaczek_khinchine.waiting_mean(workload.size, load=LOAD)
    waits = {"fcfs": np.full(3, alike), "c-mu": priorities.non_preemptive(rates, sizes)}
    for rule, (_, noise) in RULES.items():
        if rule.startswith("wspt"):
            waits[rule] = smiths_rule.weighted_shortest_first(
                rates, sizes, WEIGHTS, prediction_sigma=noise or 0.0
            )
    found = {}
    for rule, each in waits.items():
        response = each + MEANS
        found[rule] = {"objective": float(WEIGHTS * SHARES @ response)} | dict(
            zip(NAMES, response.tolist(), strict=True)
        )
    found["fcfs"]["p99"] = pollaczek_khinchine.response_quantile(
        0.99, workload.size, sizes[0], load=LOAD
    )
    return found


def _inference(runs_of: dict[float, dict[str, list[dict[str, Any]]]]) -> dict[str, Any]:
    """Which spread the post's own numbers point at."""
    workload = post_workload(1.0)
    rate = workload.rate()
    second = float(SHARES @ MEANS**2)  # E[S^2] is this times exp(sigma^2)
    weighted = float(WEIGHTS @ (SHARES * MEANS))
    wait = (float(PUBLISHED["fcfs"]["objective"]) - weighted) / float(WEIGHTS @ SHARES)
    from_fcfs = math.sqrt(math.log(wait * 2 * (1 - LOAD) / (rate * second)))
    ahead = rate * SHARES[0] * MEANS[0]
    first_wait = float(PUBLISHED["c-mu"]["interactive"]) - MEANS[0]
    from_c_mu = math.sqrt(math.log(first_wait * (1 - ahead) * 2 / (rate * second)))
    tried = []
    for sigma, runs in runs_of.items():
        outside = []
        for rule, numbers in PUBLISHED.items():
            for statistic, published in numbers.items():
                low, high = _summary([run[statistic] for run in runs[rule]])["one_run"]
                if not low <= float(published) <= high:
                    outside.append(f"{rule}: {statistic}")
        tried.append({"sigma": sigma, "outside": outside})
    return {
        "from_fcfs_by_pollaczek_khinchine": from_fcfs,
        "from_c_mu_by_cobham": from_c_mu,
        "numbers": sum(len(numbers) for numbers in PUBLISHED.values()),
        "tried": tried,
    }


def _identities(runs: dict[str, list[dict[str, Any]]], seed: int) -> dict[str, Any]:
    """What the post states without a number of its own."""
    workload = post_workload()
    sizes = [each.size for each in workload.classes]
    rates = workload.rate() * SHARES
    waits = {rule: np.array([run["waits"] for run in runs[rule]]) for rule in ("fcfs", "c-mu")}
    work = {rule: np.array([run["work"] for run in each]) for rule, each in runs.items()}
    moved = max(float(np.abs(work[rule] / work["fcfs"] - 1).max()) for rule in ("c-mu", "wspt"))
    given = Workload.from_table(workload.table(100_000, seed), names=NAMES)
    frame: Any = simulate("c-mu", given, trace=True).jobs_table
    leave = frame["arrival"] + frame["response"]
    path = littles_law.sample_path(frame["arrival"], leave)
    growth = []
    for load in (0.9, 0.99, 0.999):
        last = [_last_wait(each) for each in (load, load + (1 - load) / 100)]
        growth.append(math.log(last[1] / last[0]) / math.log(100 / 99))
    orders = priorities.region_vertices(rates, sizes)
    costs = {order: float(WEIGHTS * SHARES @ (each + MEANS)) for order, each in orders.items()}
    return {
        "pollaczek_khinchine": {
            "formula": pollaczek_khinchine.waiting_mean(workload.size, load=LOAD),
            **_summary([float(SHARES @ run) for run in waits["fcfs"]]),
        },
        "cobham": {
            "formula": float(priorities.non_preemptive(rates, sizes)[2]),
            **_summary([float(run[2]) for run in waits["c-mu"]]),
        },
        "little": {
            "number": path.mean_number,
            "rate_times_time": path.arrival_rate * path.mean_time,
            "jobs": path.jobs,
        },
        "conservation": {"largest_relative_change": moved, "work": float(work["fcfs"].mean())},
        "growth_of_the_last_wait": growth,
        "cost_of_each_order": sorted([cost, *order] for order, cost in costs.items()),
        "srpt_objective": _srpt_objective(workload),
        "smith": _smith(seed),
    }


def _last_wait(load: float) -> float:
    workload = post_workload(load=load)
    sizes = [each.size for each in workload.classes]
    return float(priorities.non_preemptive(workload.rate() * SHARES, sizes)[2])


def _srpt_objective(workload: Workload) -> float:
    response = [
        size_based.shortest_remaining_processing_time(workload.size, load=LOAD, of=each.size)
        for each in workload.classes
    ]
    return float(WEIGHTS * SHARES @ np.array(response))


def _smith(seed: int, instances: int = 200, jobs: int = 6) -> dict[str, int]:
    """Smith's rule against every order there is, on random lists of jobs."""
    generator = np.random.default_rng(seed)
    orders = np.array(list(itertools.permutations(range(jobs))))
    beaten = 0
    for _ in range(instances):
        size, weight = generator.integers(1, 100, (2, jobs)).astype(float)
        best = (np.cumsum(size[orders], axis=1) * weight[orders]).sum(axis=1).min()
        rule = np.argsort(size / weight, kind="stable")
        beaten += bool((np.cumsum(size[rule]) * weight[rule]).sum() > best * (1 + 1e-12))
    return {"instances": instances, "jobs": jobs, "orders": len(orders), "beaten": beaten}


@experiment("ledger-router-post", seed=1)
def router_post(small: bool = False) -> dict[str, Any]:
    """The post on LLM routers: its one-server figures, with the noise of one of its runs."""
    seed = 1
    runs_of: dict[float, dict[str, list[dict[str, Any]]]] = {}
    for sigma in (SIGMA,) if small else TRIED:
        count = 12 if small else 400 if sigma == SIGMA else 100
        runs_of[sigma] = {}
        for rule in RULES:
            compute = partial(_runs, rule, sigma, count, seed)
            step = f"{rule}, sigma {sigma:g}, {count} runs, seed {seed}"
            runs_of[sigma][rule] = kept(step, compute)
    runs = runs_of[SIGMA]
    figures: dict[str, Any] = {}
    for rule, each in runs.items():
        names = ("objective", *NAMES, "p99")
        figures[rule] = {name: _summary([run[name] for run in each]) for name in names}
    for rule in ("c-mu", "wspt"):
        pairs = zip(runs[rule], runs["fcfs"], strict=True)
        kept_share = [a["objective"] / b["objective"] for a, b in pairs]
        figures[rule]["objective over fcfs"] = _summary(kept_share)
    for rule in ("wspt, noise 1", "wspt, noise 1.5"):
        pairs = zip(runs[rule], runs["wspt"], strict=True)
        figures[rule]["objective over exact"] = _summary(
            [a["objective"] / b["objective"] for a, b in pairs]
        )
    return {
        "sigma": SIGMA,
        "load": LOAD,
        "requests": REQUESTS,
        "dropped": DROPPED,
        "runs": len(runs["fcfs"]),
        "jobs": len(runs["fcfs"]) * REQUESTS,
        "figures": figures,
        "exact": _exact(SIGMA),
        "loads": _summary([run["load"] for run in runs["fcfs"]]),
        "inference": _inference(runs_of),
        "identities": _identities(runs, seed),
    }
