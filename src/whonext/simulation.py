"""Run a policy on a workload: ``simulate`` one, ``compare`` several on the same jobs."""

from __future__ import annotations

import copy
import math
import os
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from whonext.engines import queue
from whonext.estimates import Honesty, honesty
from whonext.policies import Policy, parse_policy
from whonext.results import Comparison, Result, Tally
from whonext.resume import Kept, settings_of
from whonext.workload import JobTable, Workload, random_stream

__all__ = ["compare", "simulate"]

ENGINES = ("auto", "queue", "reference")
_WORTH_A_SECOND_CORE = 2_000_000  # jobs; below this, starting workers costs more than it saves


def simulate(
    policy: str | Policy,
    workload: Workload,
    servers: int = 1,
    jobs: float = 1_000_000,
    seed: int = 0,
    replications: int = 10,
    warmup: int | None = None,
    *,
    cores: int | None = None,
    engine: str = "auto",
    trace: bool = False,
    horizon: float | None = None,
    progress: bool | None = None,
    resume: str | Path | None = None,
) -> Result:
    """Run ``policy`` on ``workload``.

    Parameters
    ----------
    policy
        A rule, or its words on the command line (``"sjf:by=prediction"``).
    workload
        Random jobs, or a fixed table of them. A fixed table is run once, from empty to empty.
    servers
        Number of unit-speed servers, each serving one job at a time.
    jobs
        Jobs in all, shared among the replications, warm-up included.
    seed
        Two policies with one seed see the same jobs. A seed gives the same bits whatever
        ``cores`` is.
    replications
        Independent parts of the run; the intervals come from their spread.
    warmup
        Jobs at the start of each replication that are not counted; a tenth of it by default,
        and none for a fixed table.
    cores
        Processes to use; by default one for a short run and all for a long one. A joblib
        ``parallel_config`` (a Dask cluster, say) is respected.
    engine
        ``"queue"`` (compiled; rules that are a key and a slope, and PS), ``"reference"`` (SimPy;
        any rule), or ``"auto"``: the first that can run the rule.
    trace
        Keep the raw jobs and the event trace, of one replication.
    horizon
        Stop the clock there instead of counting jobs: jobs still inside are left inside. The
        only way to simulate an overloaded system.
    progress
        Show progress on a run over two seconds; by default where a terminal can show it.
    resume
        A file in which each replication is kept as it finishes. Called again with the same
        settings after it was stopped, the run goes on from there, and ends in the same bits as
        one that was never stopped.

    Returns
    -------
    Result

    Raises
    ------
    ValueError
        On bad input, naming the parameter, its value and what is allowed.

    Examples
    --------
    >>> from whonext import Exponential, Workload, simulate
    >>> result = simulate("fcfs", Workload(Exponential(1), load=0.5), jobs=200_000)
    >>> low, high = result.response.ci95
    >>> low < 2 < high
    True
    """
    rule = copy.deepcopy(parse_policy(policy))
    servers = _whole("servers", servers, 1)
    jobs = _whole("jobs", jobs, 1)
    seed = _whole("seed", seed, 0)
    fixed = workload.length is not None
    replications = (
        1 if fixed or trace or horizon is not None else _whole("replications", replications, 1)
    )
    if not fixed and horizon is None and jobs < 2 * replications:
        raise ValueError(f"jobs={jobs}: {replications} replications need at least two jobs each")
    if engine not in ENGINES:
        raise ValueError(f"engine={engine!r}: choose one of {', '.join(ENGINES)}")
    if horizon is not None and not (math.isfinite(horizon) and horizon > 0):
        raise ValueError(f"horizon={horizon}: must be a positive, finite time")
    if not fixed and horizon is None:
        workload.check_stable(servers)
    rule.bind(workload, servers)
    if engine == "auto":
        engine = "reference" if queue.kernel_for(rule, servers) is None else "queue"
    asked: dict[str, Any] = {
        "policy": rule.spec,
        "size": workload.size.spec,
        "servers": servers,
        "load": workload.load_on(servers),
        "seed": seed,
        "names": list(workload.names),
        "shares": [c.share for c in workload.classes],
        "weights": [c.weight for c in workload.classes],
    }
    if fixed or trace or horizon is not None:
        if resume is not None:
            raise ValueError(
                f"resume={str(resume)!r}: only replications can be kept, and fixed jobs, a trace "
                "or a horizon is run in one piece"
            )
        source = np.random.SeedSequence(seed).spawn(1)[0]
        table = _table(workload, jobs, source, servers, horizon)
        rule.seed(random_stream(source, "policy"))
        warmup = _whole("warmup", warmup or 0, 0, len(table) - 1)
        tally, extra = _run_table(rule, table, servers, workload, warmup, engine, trace, horizon)
        reason = "the jobs are fixed: one run is all there is" if fixed else None
        honest = _honest(rule, workload, servers, fixed, reason)
        return Result(
            **asked, jobs=len(table), warmup=warmup, tallies=[tally], honest=honest, **extra
        )
    share, over = divmod(jobs, replications)
    sizes = [share + (r < over) for r in range(replications)]
    warmup = _whole("warmup", share // 10 if warmup is None else warmup, 0, share - 1)
    kept = None
    if resume is not None:
        others = {"jobs": jobs, "replications": replications, "warmup": warmup, "engine": engine}
        kept = Kept(resume, settings_of(rule, workload, servers, seed, **others))
    tallies = _replicate(
        rule, workload, servers, sizes, warmup, seed, engine, cores, progress, kept
    )
    honest = _honest(rule, workload, servers, False, None)
    return Result(**asked, jobs=jobs, warmup=warmup, tallies=tallies, honest=honest)


def compare(
    policies: Iterable[str | Policy],
    workload: Workload,
    servers: int = 1,
    *,
    resume: str | Path | None = None,
    **settings: Any,
) -> Comparison:
    """Run several policies on the same jobs.

    Parameters
    ----------
    policies
        The rules; the others are held against the first.
    workload, servers, **settings
        As for :func:`simulate`.
    resume
        Likewise, with a file for each rule: this name and ``.1``, ``.2``, …

    Returns
    -------
    Comparison
        Each result, and paired differences in which the noise of the shared jobs cancels.

    Raises
    ------
    ValueError
        With fewer than two rules or the same rule twice, and as :func:`simulate` does.

    Examples
    --------
    >>> from whonext import Exponential, Workload, compare
    >>> both = compare(["fcfs", "sjf"], Workload(Exponential(1), load=0.8), jobs=200_000)
    >>> both.differences()["sjf"].value < 0
    True
    """
    rules = [parse_policy(p) for p in policies]
    names = [rule.spec for rule in rules]
    if len(set(names)) < 2 or len(set(names)) < len(names):
        raise ValueError(f"policies={names}: give at least two different rules")
    files = [None if resume is None else f"{resume}.{k}" for k in range(1, len(rules) + 1)]
    return Comparison(
        {
            rule.spec: simulate(rule, workload, servers, resume=file, **settings)
            for rule, file in zip(rules, files, strict=True)
        }
    )


def _whole(name: str, value: Any, least: int, most: int | None = None) -> int:
    """A whole number within bounds; 1e6 is one, 1.5 and nan are not."""
    allowed = f"at least {least}" if most is None else f"from {least} to {most}"
    try:
        number = int(value)
        exact = number == float(value)
    except (TypeError, ValueError, OverflowError):
        exact, number = False, least
    if not exact or number < least or (most is not None and number > most):
        raise ValueError(f"{name}={value}: must be a whole number, {allowed}")
    return number


def _honest(
    rule: Policy, workload: Workload, servers: int, fixed: bool, reason: str | None
) -> dict[str, Honesty]:
    if fixed:
        return dict.fromkeys(
            ("response", "waiting", "slowdown", "number", "work"), Honesty(None, reason)
        )
    busy = workload.rate(servers) * workload.mean_size
    return honesty(rule, workload.size, servers, busy)


def _table(
    workload: Workload,
    jobs: int,
    source: np.random.SeedSequence,
    servers: int,
    horizon: float | None,
) -> JobTable:
    """The jobs of a run that keeps them all."""
    if horizon is None:
        return workload.table(jobs, source, servers)
    jobs = math.ceil(workload.rate(servers) * horizon * 1.2) + 100
    table = workload.table(jobs, source, servers)
    while table.arrival[-1] <= horizon and len(table) == jobs:
        jobs *= 2
        table = workload.table(jobs, source, servers)
    inside = int(np.searchsorted(table.arrival, horizon, side="right"))
    if inside == 0:
        raise ValueError(f"horizon={horizon}: no job arrives before it")
    return table.rows(0, inside)


def _run_table(
    rule: Policy,
    table: JobTable,
    servers: int,
    workload: Workload,
    warmup: int,
    engine: str,
    trace: bool,
    horizon: float | None,
) -> tuple[Tally, dict[str, Any]]:
    """Run a table on either engine; the raw jobs and the trace come along if asked for."""
    classes = len(workload.classes)
    until = math.inf if horizon is None else horizon
    if engine == "queue":
        tally, raw = queue.run_table(rule, table, servers, classes, warmup, until, trace)
        response, waiting = raw.response, raw.waiting
        events: Any = raw.events
    else:
        from whonext.engines.reference import run_reference

        began = time.perf_counter()
        response, events = run_reference(rule, table, servers)
        waiting = np.maximum(response - table.size, 0)
        tally = Tally.of_table(table, response, waiting, classes, (warmup, None), until)
        tally.seconds = time.perf_counter() - began
    if not trace:
        return tally, {}
    from whonext.results import events_frame

    frame = table.to_frame().assign(response=response, waiting=waiting)
    return tally, {"jobs_table": frame, "events": events_frame(events, table.kind)}


def _replicate(
    rule: Policy,
    workload: Workload,
    servers: int,
    sizes: list[int],
    warmup: int,
    seed: int,
    engine: str,
    cores: int | None,
    progress: bool | None,
    kept: Kept | None,
) -> list[Tally]:
    """Run the replications that are not kept from before, on one core or several."""
    import joblib
    from joblib.parallel import get_active_backend
    from tqdm.auto import tqdm

    run = _one_stream if engine == "queue" else _one_reference
    seeds = np.random.SeedSequence(seed).spawn(len(sizes))
    done = {} if kept is None else dict(kept.tallies)
    todo = [r for r in range(len(sizes)) if r not in done]
    if cores is None:
        _, cores = get_active_backend()
        if cores == 1 and sum(sizes[r] for r in todo) >= _WORTH_A_SECOND_CORE:
            cores = min(os.cpu_count() or 1, len(todo))
    show = sys.stderr.isatty() if progress is None else progress
    with tqdm(
        total=sum(sizes),
        initial=sum(sizes[r] for r in done),
        unit="job",
        unit_scale=True,
        delay=2,
        disable=not show,
        leave=False,
    ) as bar:

        def keep(replication: int, tally: Tally) -> None:
            done[replication] = tally
            if kept is not None:
                kept.add(replication, tally)

        if cores == 1:
            for r in todo:
                keep(r, run(rule, workload, servers, sizes[r], warmup, seeds[r], bar.update))
        elif todo:
            tasks = (
                joblib.delayed(_numbered)(
                    r, run, rule, workload, servers, sizes[r], warmup, seeds[r]
                )
                for r in todo
            )
            for r, tally in joblib.Parallel(n_jobs=cores, return_as="generator_unordered")(tasks):
                keep(r, tally)
                bar.update(tally.jobs)
    return [done[r] for r in range(len(sizes))]


def _numbered(replication: int, run: Callable[..., Tally], *settings: Any) -> tuple[int, Tally]:
    """A replication with its number: they finish in any order."""
    return replication, run(*settings, None)


def _one_stream(
    rule: Policy,
    workload: Workload,
    servers: int,
    jobs: int,
    warmup: int,
    seed: np.random.SeedSequence,
    progress: Callable[[int], Any] | None,
) -> Tally:
    return queue.run_stream(copy.deepcopy(rule), workload, servers, jobs, warmup, seed, progress)


def _one_reference(
    rule: Policy,
    workload: Workload,
    servers: int,
    jobs: int,
    warmup: int,
    seed: np.random.SeedSequence,
    progress: Callable[[int], Any] | None,
) -> Tally:
    """The same, on the reference engine: a tenth more jobs come so that none is cut off."""
    from whonext.engines.reference import run_reference

    table = workload.table(jobs + jobs // 10 + 100, seed, servers)
    rule.seed(random_stream(seed, "policy"))
    began = time.perf_counter()
    response, _ = run_reference(rule, table, servers, progress=progress)
    waiting = np.maximum(response - table.size, 0)
    tally = Tally.of_table(table, response, waiting, len(workload.classes), (warmup, jobs))
    tally.seconds = time.perf_counter() - began
    return tally
