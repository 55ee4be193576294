"""The reference engine: any policy, in SimPy, slow and obvious. It asks ``allocate`` alone.

Given whole numbers or ``Fraction`` in the table, every time in it is exact.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Generator
from fractions import Fraction
from typing import Any

import numpy as np
import simpy

from whonext.policies.base import Job, Policy
from whonext.workload import JobTable

__all__ = ["run_reference"]


class _Server:
    """One pool of unit-speed servers under one policy, as two SimPy processes."""

    def __init__(
        self, policy: Policy, servers: int, jobs: list[Job], sizes: list[Any], start: Any
    ) -> None:
        self.policy = policy
        self.servers = servers
        self.todo = jobs
        self.size_of = dict(zip(jobs, sizes, strict=True))
        self.env = simpy.Environment(initial_time=start)
        self.present: list[Job] = []
        self.arrived: list[Job] = []
        self.bell = self.env.event()
        self.finish: dict[Any, Any] = {}
        self.place: dict[Job, int] = {}
        self.events: list[tuple[Any, str, Any, int, int, int]] = []
        self.on_progress: Callable[[int], Any] | None = None

    def run(self) -> None:
        self.env.process(self._arrivals())
        self.env.run(until=self.env.process(self._serve()))

    def _arrivals(self) -> Generator[simpy.Event, Any, None]:
        jobs = list(self.todo)
        while jobs:
            yield self.env.timeout(jobs[0].arrival - self.env.now)
            while jobs and jobs[0].arrival <= self.env.now:  # all of this instant, in table order
                self.arrived.append(jobs.pop(0))
            self.bell.succeed()
            self.bell = self.env.event()

    def _serve(self) -> Generator[simpy.Event, Any, None]:
        while len(self.finish) < len(self.todo):
            now = self.env.now
            rates, until = (
                self.policy.allocate(self.present, self.servers, now)
                if self.present
                else ({}, math.inf)
            )
            self._check(rates)
            self._begin(rates, now)
            left = {
                job: (self.size_of[job] - job.age) / rate for job, rate in rates.items() if rate
            }
            step = min([*left.values(), until])
            waited_for = [self.bell]
            timer = None
            if step < math.inf:
                timer = self.env.timeout(max(step, 0))
                waited_for.append(timer)
            elif self._all_arrived():
                raise RuntimeError(f"{self.policy.spec} leaves {len(self.present)} jobs unserved")
            yield self.env.any_of(waited_for)
            yield self.env.timeout(0)  # let every arrival of this instant come in
            elapsed = self.env.now - now
            on_time = timer is not None and timer.processed
            done = [job for job in left if on_time and left[job] <= step]
            for job, rate in rates.items():
                amount = rate * elapsed
                job.age = self.size_of[job] if job in done else job.age + amount
                self.policy.on_service(job, amount, self.env.now)
            for job in done:
                self._leave(job)
            while self.arrived:
                self._enter(self.arrived.pop(0))

    def _all_arrived(self) -> bool:
        return len(self.finish) + len(self.present) == len(self.todo) > len(self.finish)

    def _check(self, rates: dict[Job, Any]) -> None:
        total = sum(rates.values())
        if total > self.servers * (1 + 1e-9) or any(not 0 <= r <= 1 for r in rates.values()):
            raise ValueError(
                f"allocate of {self.policy.spec} gave rates {sorted(map(float, rates.values()))}: "
                f"each must be between 0 and 1, and together at most {self.servers}"
            )

    def _begin(self, rates: dict[Job, Any], now: Any) -> None:
        """Mark who is in service, and tell the policy of first starts."""
        served = {job for job, rate in rates.items() if rate}
        for job in [job for job in self.place if job not in served]:
            job.serving = False
            self._note("preempt", job, self.place.pop(job))
        free = [s for s in range(self.servers) if s not in self.place.values()]
        for job in rates:
            if job in self.place or job not in served:
                continue
            # jobs that share servers have no place of their own
            place = free.pop(0) if free else -1
            if not job.started:
                waiting = [other for other in self.present if not other.started]
                self.policy.on_dispatch(job, waiting, now)
            self.place[job] = place
            self._note("resume" if job.started else "start", job, place)
            job.started = job.serving = True

    def _enter(self, job: Job) -> None:
        job.key = self.policy.key(job)
        self.policy.on_arrival(job, self.env.now)
        self.present.append(job)
        self._note("arrive", job, -1)

    def _leave(self, job: Job) -> None:
        self.present.remove(job)
        self.finish[job.id] = self.env.now
        self._note("finish", job, self.place.pop(job))
        self.policy.on_finish(job, self.env.now)
        if self.on_progress:
            self.on_progress(1)

    def _note(self, event: str, job: Job, place: int) -> None:
        self.events.append((self.env.now, event, job.id, job.kind, place, len(self.present)))


def run_reference(
    policy: Policy,
    jobs: JobTable,
    servers: int,
    exact: bool = False,
    progress: Callable[[int], Any] | None = None,
) -> tuple[np.ndarray, list[tuple[Any, ...]]]:
    """Run a table of jobs from empty until empty.

    Parameters
    ----------
    policy
        Any rule, bound already; a copy of it is run.
    jobs
        The jobs, with absolute times.
    servers
        Number of unit-speed servers.
    exact
        Whether to compute in fractions.
    progress
        Called with 1 for each job that leaves.

    Returns
    -------
    response : array, one number a job
        Floats, or ``Fraction`` objects if ``exact``.
    events : list of (time, event, job, kind, server, in_system)

    Raises
    ------
    ValueError
        If the policy gives rates that the servers do not have.
    RuntimeError
        If the policy leaves jobs unserved for ever.
    """
    number = Fraction if exact else float
    policy = copy.deepcopy(policy)
    rows = [
        Job(
            id=i,
            arrival=number(jobs.arrival[i]),
            size=number(jobs.size[i]),
            prediction=number(jobs.prediction[i]),
            cost=number(jobs.cost[i]),
            weight=number(jobs.weight[i]),
            kind=int(jobs.kind[i]),
        )
        for i in range(len(jobs))
    ]
    sizes = [job.size for job in rows]
    for job in rows:
        job.hide(policy.needs)
    server = _Server(policy, servers, rows, sizes, number(0))
    server.on_progress = progress
    server.run()
    finish = [server.finish[job.id] - job.arrival for job in rows]
    return np.array(finish, dtype=object if exact else float), server.events
