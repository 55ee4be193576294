"""What a scheduling rule is: four levels, each with a default made from the one before it.

1. ``key``: a number for each job, fixed at its arrival; the lowest goes first.
2. ``choose``: the waiting job to start next.
3. ``allocate``: which jobs are served now, at what rates, and until when at the latest.
4. routing: which endpoint a job joins, where there are several.

A rule states the highest level that it can. Engines use the level they can make fast, and the
reference engine uses ``allocate`` alone, so that the two can be held against each other.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    import numpy as np

__all__ = ["HIDDEN", "Job", "Policy", "Visible", "ratio"]

#: Columns of a job that a policy sees only when it lists them in ``needs``.
HIDDEN = frozenset({"size", "prediction"})


@dataclass(eq=False, slots=True)
class Job:
    """One job, as ``choose`` and ``allocate`` see it.

    Attributes
    ----------
    id
        Row in the table of jobs, or the engine's own name for a request.
    arrival
        Time of arrival.
    size
        Service requirement, hidden from a policy unless it ``needs`` it.
    prediction
        Predicted size, likewise hidden unless needed.
    cost
        What serving the job is charged at, known at arrival.
    weight
        Holding cost for each unit of time in the system.
    kind
        Index of the job's class, in the order of the workload's classes.
    key
        What the policy's ``key`` gave at arrival.
    age
        Service attained so far.
    started
        Whether it has ever been served.
    serving
        Whether it is in service now.
    """

    id: Any
    arrival: Any
    size: Any
    prediction: Any = None
    cost: Any = 1.0
    weight: Any = 1.0
    kind: int = 0
    key: Any = 0.0
    age: Any = 0
    started: bool = False
    serving: bool = False
    tag: Any = field(default=None, repr=False)

    def hide(self, needs: frozenset[str]) -> Job:
        """Take away the columns that a policy with these ``needs`` may not see."""
        for name in HIDDEN - needs:
            delattr(self, name)
        return self

    def __getattr__(self, name: str) -> Any:  # reached only for a column that was taken away
        if name in HIDDEN:
            raise AttributeError(_hidden(name, "the policy"))
        raise AttributeError(f"a job has no {name!r}")


def _hidden(name: str, owner: str) -> str:
    return (
        f"{owner} reads the {name} of a job but does not declare it: "
        f"add needs = frozenset({{{name!r}}}) to the class"
    )


class Visible:
    """A job, or a table of jobs, with the columns a policy has not declared hidden.

    Parameters
    ----------
    source
        Anything with the attributes of :class:`Job` (numbers or arrays).
    needs
        The hidden columns that may be seen.
    owner
        Name used in the error.

    Raises
    ------
    AttributeError
        On reading a hidden column that the policy did not declare.
    """

    __slots__ = ("_needs", "_owner", "_source")

    def __init__(self, source: Any, needs: frozenset[str], owner: str) -> None:
        self._source = source
        self._needs = needs
        self._owner = owner

    def __getattr__(self, name: str) -> Any:
        if name in HIDDEN and name not in self._needs:
            raise AttributeError(_hidden(name, self._owner))
        return getattr(self._source, name)


class Policy:
    """A scheduling rule.

    The ten-line version overrides ``key`` and nothing else::

        class ShortPromptFirst(Policy):
            needs = frozenset({"size"})

            def key(self, jobs):
                return jobs.size

    Attributes
    ----------
    name
        The word for it on the command line; empty for a rule of one's own.
    needs
        Hidden columns that ``key`` and the methods below may read: ``"size"``, ``"prediction"``.
    preemptive
        Whether a job in service may be set aside for one of lower rank. Equal ranks never preempt.
    slope
        Rank is ``key + slope * attained service``: negative for rules that favour a job the more
        it has been served (SRPT), zero for fixed ranks, positive for rules that favour the young
        (FB); equal rising ranks share the servers.
    shape
        The kernel that runs the rule, for an engine that has one: ``"ranked"`` unless the rule
        says otherwise. A subclass that changes ``rank``, ``choose``, ``allocate`` or the events
        below loses its kernel, unless it names another.
    mean_needs_moment
        The moment of the size law that must be finite on one server for the mean response time
        to be finite: 2 where a job can wait behind a whole long one, 1 where it cannot.
    """

    name: ClassVar[str] = ""
    needs: frozenset[str] = frozenset()
    preemptive: bool = False
    slope: float = 0.0
    shape: ClassVar[str] = "ranked"
    mean_needs_moment: int = 2

    def bind(self, workload: Any, servers: int) -> None:
        """Learn what the rule needs to know of the workload (class means, thresholds)."""

    def seed(self, generator: np.random.Generator) -> None:
        """Take randomness from here, if the rule needs any; called before a run."""

    # 1. A number at arrival.

    def key(self, jobs: Any) -> Any:
        """Rank at arrival, lowest first: arrays in, an array of the same shape out.

        ``jobs`` has ``arrival``, ``kind``, ``weight``, ``cost`` and what ``needs`` declares. The
        same method is called with a single job, whose columns are numbers.
        """
        return jobs.arrival

    # 2. A choice, and the events that a rule with state keeps its books by.

    def on_arrival(self, job: Job, now: Any) -> None:
        """A job has come; its ``key`` is set."""

    def on_dispatch(self, job: Job, waiting: Sequence[Job], now: Any) -> None:
        """The choice is obeyed: ``job`` starts for the first time. Charge it here, once."""

    def on_service(self, job: Job, amount: Any, now: Any) -> None:
        """``job`` has just received ``amount`` of service."""

    def on_finish(self, job: Job, now: Any) -> None:
        """``job`` has left."""

    def rank(self, job: Job, now: Any) -> Any:
        """Rank now: the key, moved by attained service where ``slope`` is not zero."""
        return job.key + self.slope * job.age if self.slope else job.key

    def choose(self, waiting: Sequence[Job], now: Any) -> Job:
        """The waiting job to start next. Pure: it is asked many times before it is obeyed."""
        return min(waiting, key=lambda job: (self.rank(job, now), job.arrival, job.id))

    # 3. Who is served, how fast, until when.

    def allocate(self, jobs: Sequence[Job], servers: int, now: Any) -> tuple[dict[Job, Any], Any]:
        """Rates for the jobs present, and the latest time for which they hold.

        Parameters
        ----------
        jobs
            All jobs in the system.
        servers
            Number of unit-speed servers; a job is served at a rate of at most 1.
        now
            The time.

        Returns
        -------
        rates : dict
            Rate for each job served; the others wait.
        until : number
            How long this allocation holds at the most; ``math.inf`` until a job comes or goes.
        """
        if not self.preemptive:
            served = [job for job in jobs if job.started]
            waiting = [job for job in jobs if not job.started]
            while waiting and len(served) < servers:
                job = self.choose(waiting, now)
                waiting.remove(job)
                served.append(job)
            return dict.fromkeys(served, 1), math.inf
        order = sorted(
            jobs, key=lambda job: (self.rank(job, now), not job.serving, job.arrival, job.id)
        )
        if self.slope > 0 and len(order) > servers:
            return self._share_rising(order, servers, now)
        return dict.fromkeys(order[:servers], 1), math.inf

    def _share_rising(self, order: list[Job], servers: int, now: Any) -> tuple[dict[Job, Any], Any]:
        """Serve the lowest ranks; jobs level at the last place share what is left."""
        level = self.rank(order[servers - 1], now)
        # Levels that met in floating point differ by rounding; in fractions they are equal.
        slack = 1e-12 * (1 + abs(level)) if isinstance(level, float) else 0
        below = [job for job in order if self.rank(job, now) < level - slack]
        above = [job for job in order if self.rank(job, now) > level + slack]
        tied = [job for job in order if job not in below and job not in above]
        rate = min(1, ratio(servers - len(below), len(tied)))
        until: Any = math.inf
        if above:  # the tied climb to the next level
            until = (self.rank(above[0], now) - level) / (self.slope * rate)
        for job in below:  # those below climb faster, and join the tied
            if rate < 1:
                catch_up = (level - self.rank(job, now)) / (self.slope * (1 - rate))
                until = min(until, catch_up)
        return {**dict.fromkeys(below, 1), **dict.fromkeys(tied, rate)}, until

    # Its name on the command line.

    @property
    def spec(self) -> str:
        """The text that :func:`whonext.policies.parse_policy` turns back into this rule."""
        name = self.name or f"{type(self).__module__}:{type(self).__qualname__}"
        settings = _settings(self)
        return f"{name}:{','.join(settings)}" if settings else name

    def __repr__(self) -> str:
        return f"<{self.spec}>"


def ratio(numerator: int, denominator: int) -> Fraction | int:
    """An exact quotient, a whole number where it is one."""
    value = Fraction(numerator, denominator)
    return value.numerator if value.denominator == 1 else value


def _settings(policy: Policy) -> Iterable[str]:
    if not is_dataclass(policy):
        return []
    return [
        f"{f.name}={getattr(policy, f.name)}"
        for f in fields(policy)
        if f.init and getattr(policy, f.name) != f.default
    ]
