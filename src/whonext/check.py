"""The conformance kit: is a rule of one's own fit for every engine, and for real requests?

Each check runs the rule on small random tables of jobs whose times are whole multiples of a
quarter, so that many things happen at one instant and every number is exact. A check that fails
shows the smallest table it fails on.

>>> from whonext.policies import parse_policy
>>> print(check_policy(parse_policy("sjf"), tables=5))  # doctest: +ELLIPSIS
sjf: fit for every engine
  ok    key gives one finite number a job
...
"""

from __future__ import annotations

import copy
import pickle
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from whonext.distributions import Exponential, Uniform
from whonext.engines import queue
from whonext.engines.reference import run_reference
from whonext.policies import Job, Policy, Visible
from whonext.policies.base import HIDDEN
from whonext.workload import JobClass, JobTable, Workload

__all__ = ["Check", "Report", "check_policy"]

_COLUMNS = ("arrival", "size", "kind", "weight", "prediction", "cost")
_AGREE = "compiled engine and reference agree, job by job"
_PATIENCE = 200  # times a job's share of questions before a rule counts as stuck


@dataclass(frozen=True)
class Check:
    """One line of the report.

    Attributes
    ----------
    name
        What is asked of the rule.
    passed
        ``True``, ``False``, or ``None`` where it does not apply.
    detail
        What went wrong and on which jobs, or a remark.
    """

    name: str
    passed: bool | None
    detail: str = ""

    def __str__(self) -> str:
        mark = {True: "ok  ", False: "FAIL", None: "-   "}[self.passed]
        lines = [f"  {mark}  {self.name}"]
        lines += [f"          {line}" for line in self.detail.splitlines()]
        return "\n".join(lines)


@dataclass(frozen=True)
class Report:
    """All checks of one rule; as text, a checklist."""

    policy: str
    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        """Whether no check failed."""
        return all(each.passed is not False for each in self.checks)

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "policy": self.policy,
            "passed": self.passed,
            "checks": [vars(each) for each in self.checks],
        }

    def __str__(self) -> str:
        failed = sum(each.passed is False for each in self.checks)
        verdict = f"{failed} of {len(self.checks)} checks failed"
        if not failed:
            compiled = any(each.name == _AGREE and each.passed for each in self.checks)
            verdict = f"fit for {'every engine' if compiled else 'the reference engine'}"
        return "\n".join([f"{self.policy}: {verdict}", *map(str, self.checks)])


def check_policy(policy: Policy, tables: int = 30, seed: int = 0) -> Report:
    """Put a rule through the kit.

    Parameters
    ----------
    policy
        The rule, not yet bound to a workload; it is not changed.
    tables
        How many random tables of jobs, from one job to a few dozen.
    seed
        Which random tables.

    Returns
    -------
    Report
    """
    if tables < 1:
        raise ValueError(f"tables={tables}: must be a whole number of at least 1")
    kit = _Kit(policy, tables, seed)
    if not kit.rules and kit.refusal is not None:
        refused = Check("bind takes a workload of three classes", False, kit.said(kit.refusal))
        return Report(policy.spec, (refused,))
    return Report(policy.spec, tuple(kit.run(name, check) for name, check in _CHECKS))


class _FaultError(Exception):
    """What a rule did wrong, in a sentence."""


class _NotApplicableError(Exception):
    """Why a check says nothing about this rule."""


@dataclass(frozen=True)
class _Case:
    """A rule, bound to a workload, on a table of jobs and a number of servers."""

    policy: Policy
    table: JobTable
    servers: int

    def bound(self) -> Policy:
        """A copy of the rule, to run."""
        return copy.deepcopy(self.policy)

    def keys(self, rule: Policy | None = None, table: JobTable | None = None) -> np.ndarray:
        rule = self.bound() if rule is None else rule
        return queue.keys_of(rule, self.table if table is None else table)

    def jobs(self) -> list[Job]:
        """The rows as single jobs, with what the rule may not see taken away."""
        rows = []
        for i in range(len(self.table)):
            values = {name: getattr(self.table, name)[i].item() for name in _COLUMNS}
            rows.append(Job(id=i, **values).hide(self.policy.needs))
        return rows

    def responses(self, rule: Policy | None = None, table: JobTable | None = None) -> np.ndarray:
        """Response times on the reference engine."""
        rule = _limited(self.bound() if rule is None else rule, len(self.table))
        return run_reference(rule, self.table if table is None else table, self.servers)[0]

    def shown(self) -> str:
        """The jobs, as a reader would write them down."""
        lines = [f"on {self.servers} server(s), with the jobs"]
        for i in range(min(len(self.table), 8)):
            parts = (f"{name} {getattr(self.table, name)[i]:g}" for name in _COLUMNS)
            lines.append(f"  {i}: {', '.join(parts)}")
        if len(self.table) > 8:
            lines.append(f"  … and {len(self.table) - 8} more")
        return "\n".join(lines)


class _Kit:
    """Runs checks over many cases and shrinks those that fail."""

    def __init__(self, policy: Policy, tables: int, seed: int) -> None:
        self.policy = policy
        generator = np.random.default_rng(seed)
        self.workload = _workload()
        self.rules: dict[int, Policy] = {}
        self.refusal: Exception | None = None
        for servers in (1, 2, 3):
            self._bind(servers)
        sizes = [min(1 + i, 24) for i in range(tables)]
        self.tables = [_table(generator, jobs) for jobs in sizes]

    def run(self, name: str, check: Callable[[_Case], str | None]) -> Check:
        remark, skipped = "", []
        for i, table in enumerate(self.tables):
            servers = list(self.rules)[i % len(self.rules)]
            case = _Case(self.rules[servers], table, servers)
            try:
                remark = check(case) or remark
            except _NotApplicableError as error:
                skipped.append(str(error))
            except Exception as error:  # noqa: BLE001 - whatever a stranger's code may raise
                smallest, error = _shrink(case, check, error)
                return Check(name, False, f"{self.said(error)}\n{smallest.shown()}")
        if len(skipped) == len(self.tables):
            return Check(name, None, skipped[0])
        return Check(name, True, remark or (skipped[0] if skipped else ""))

    def _bind(self, servers: int) -> None:
        """Bind a copy of the rule, where it takes so many servers: some are for one alone."""
        rule = copy.deepcopy(self.policy)
        try:
            rule.bind(self.workload, servers)
        except Exception as error:  # noqa: BLE001 - as below
            self.refusal = self.refusal or error
        else:
            self.rules[servers] = rule

    def said(self, error: Exception) -> str:
        """The sentence of a fault; for an exception in the rule's own code, where it happened."""
        if isinstance(error, _FaultError | ValueError):
            return str(error)
        frames = traceback.extract_tb(error.__traceback__)
        own = _file_of(self.policy)
        line = next((f.lineno for f in reversed(frames) if f.filename == own), None)
        where = f" (line {line} of {type(self.policy).__name__}'s file)" if line else ""
        return f"{type(error).__name__}: {error}{where}"


def _shrink(
    case: _Case, check: Callable[[_Case], str | None], error: Exception
) -> tuple[_Case, Exception]:
    """Drop jobs one by one for as long as the check still fails."""
    shorter = True
    while shorter and len(case.table) > 1:
        shorter = False
        for skip in range(len(case.table)):
            rows = [i for i in range(len(case.table)) if i != skip]
            columns = {name: getattr(case.table, name)[rows] for name in _COLUMNS}
            smaller = _Case(case.policy, JobTable.from_arrays(**columns), case.servers)
            try:
                check(smaller)
            except _NotApplicableError:
                continue
            except Exception as found:  # noqa: BLE001 - as above
                case, error, shorter = smaller, found, True
                break
    return case, error


def _workload() -> Workload:
    """Three classes, so that rules which look at classes have something to look at."""
    return Workload(
        classes=[
            JobClass("chat", 0.5, Uniform(0, 2), weight=4),
            JobClass("code", 0.3, Exponential(2), weight=2),
            JobClass("batch", 0.2, Exponential(3), weight=1),
        ],
        load=0.8,
    )


def _table(generator: np.random.Generator, jobs: int) -> JobTable:
    """Jobs in quarters of a unit of time, often several at one instant and of one size."""
    kind = generator.integers(0, 3, jobs)
    return JobTable.from_arrays(
        arrival=np.cumsum(generator.integers(0, 6, jobs) * generator.integers(0, 2, jobs)) / 4,
        size=generator.integers(1, 13, jobs) / 4,
        kind=kind,
        weight=np.array([4.0, 2.0, 1.0])[kind],
        prediction=generator.integers(1, 13, jobs) / 4,
        cost=generator.integers(1, 9, jobs) / 2,
    )


# ------------------------------------------------------------------------------------------------
# The checks. Each takes a case and raises what is wrong; it may return a remark.
# ------------------------------------------------------------------------------------------------


def _key_is_finite(case: _Case) -> None:
    case.keys()


def _key_of_one_job(case: _Case) -> None:
    keys = case.keys()
    rule = case.bound()
    for i, job in enumerate(case.jobs()):
        single = np.asarray(rule.key(job), dtype=float)
        if single.shape != () or single != keys[i]:
            raise _FaultError(
                f"key of job {i} alone is {single}, and {keys[i]:g} in the table: "
                "key must treat a number as it treats an array"
            )


def _key_repeats(case: _Case) -> None:
    rule = case.bound()
    before = _snapshot(rule)
    first = case.keys(rule)
    if not np.array_equal(first, case.keys(rule)):
        raise _FaultError("key gave two answers to one question")
    if _snapshot(rule) != before:
        raise _FaultError("key changed the rule: keep books in on_arrival")


def _hidden_stays_hidden(case: _Case) -> str | None:
    """Change what the rule may not see: its keys must stay. Note what it could do without."""
    keys = case.keys()
    columns = {name: getattr(case.table, name) for name in _COLUMNS}
    for name in HIDDEN - case.policy.needs:
        moved = JobTable.from_arrays(**(columns | {name: columns[name][::-1] + 1}))
        if not np.array_equal(keys, case.keys(table=moved)):
            raise _FaultError(
                f"key changes with the {name} of a job, which is not in needs: "
                f"add needs = frozenset({{{name!r}}}) to the class"
            )
    case.responses()  # choose and the others get jobs without the hidden columns
    read: set[str] = set()
    case.bound().key(Visible(_Recorder(case.table, read), case.policy.needs, "the rule"))
    idle = sorted(case.policy.needs - read)
    if idle and queue.kernel_for(case.policy, case.servers) is not None:
        return f"declares {', '.join(idle)} but key does not read it"
    return None


def _origin_of_time(case: _Case) -> None:
    """Engines move the origin of time, so that the clock never loses digits."""
    queue.clock_rate(case.bound(), case.table)
    columns = {name: getattr(case.table, name) for name in _COLUMNS}
    later = JobTable.from_arrays(**(columns | {"arrival": columns["arrival"] + 1024.0}))
    if _differ(case.responses(), case.responses(table=later)).any():
        raise _FaultError("response times change when all jobs come 1024 units of time later")


def _asking_changes_nothing(case: _Case) -> None:
    faults: list[str] = []
    case.responses(_watched(case.bound(), faults))
    if faults:
        raise _FaultError(faults[0])


def _every_job_leaves(case: _Case) -> None:
    responses = case.responses()
    short = np.flatnonzero(~(responses >= case.table.size))
    if len(short):
        raise _FaultError(f"job {short[0]} left after {responses[short[0]]:g}, less than its size")


def _works_while_there_is_work(case: _Case) -> None:
    if not getattr(case.policy, "work_conserving", True):
        raise _NotApplicableError("the rule says that it may idle (work_conserving = False)")
    _allocations(case, _wants_all_servers)


def _wants_all_servers(jobs: Sequence[Job], servers: int, rates: dict[Job, Any]) -> None:
    total, wanted = float(sum(rates.values())), min(servers, len(jobs))
    if total < wanted * (1 - 1e-9):
        raise _FaultError(
            f"serves at a total rate of {total:g} with {len(jobs)} jobs and {servers} server(s): "
            "set work_conserving = False if that is meant"
        )


def _never_interrupts(case: _Case) -> None:
    if case.policy.preemptive:
        raise _NotApplicableError("the rule is preemptive")
    _allocations(case, _keeps_started_jobs)


def _keeps_started_jobs(jobs: Sequence[Job], _servers: int, rates: dict[Job, Any]) -> None:
    stopped = [job.id for job in jobs if job.started and rates.get(job, 0) != 1]
    if stopped:
        raise _FaultError(
            f"job {stopped[0]} was started and is not served at rate 1 till it ends: "
            "set preemptive = True if that is meant"
        )


def _allocations(case: _Case, judge: Callable[[Sequence[Job], int, dict[Job, Any]], None]) -> None:
    """Judge every allocation of a run."""
    rule = case.bound()
    plain = type(rule).allocate

    def allocate(self: Policy, jobs: Sequence[Job], servers: int, now: Any) -> Any:
        rates, until = plain(self, jobs, servers, now)
        judge(jobs, servers, rates)
        return rates, until

    case.responses(_variant(rule, allocate=allocate))


def _runs_repeat(case: _Case) -> None:
    if not np.array_equal(case.responses(), case.responses()):
        raise _FaultError("two runs on the same jobs gave different response times")


def _engines_agree(case: _Case) -> None:
    if queue.kernel_for(case.policy, case.servers) is None:
        raise _NotApplicableError(
            f"no compiled engine runs it on {case.servers} server(s): the reference does"
        )
    _, raw = queue.run_table(case.bound(), case.table, case.servers, 3)
    wanted = case.responses()
    wrong = np.flatnonzero(_differ(raw.response, wanted))
    if len(wrong):
        i = wrong[0]
        raise _FaultError(
            f"job {i} takes {raw.response[i]:g} on the compiled engine "
            f"and {wanted[i]:g} on the reference"
        )


def _differ(found: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Find times that differ: at all where all are quarters, by 1e-9 where sharing makes thirds."""
    if all(np.array_equal(4 * times, np.rint(4 * times)) for times in (found, wanted)):
        return found != wanted
    return np.abs(found - wanted) > 1e-9 * np.maximum(wanted, 1.0)


def _copies(case: _Case) -> None:
    rule = case.bound()
    try:
        twins = {"deepcopy": copy.deepcopy(rule), "pickle": pickle.loads(pickle.dumps(rule))}
    except Exception as error:
        raise _FaultError(f"cannot be copied to another process: {error}") from error
    for how, twin in twins.items():
        if not np.array_equal(case.responses(rule), case.responses(twin)):
            raise _FaultError(f"a copy made by {how} gives other response times")


_CHECKS: tuple[tuple[str, Callable[[_Case], str | None]], ...] = (
    ("key gives one finite number a job", _key_is_finite),
    ("key of a job alone is its key in a table", _key_of_one_job),
    ("key repeats itself and changes nothing", _key_repeats),
    ("what is hidden stays hidden", _hidden_stays_hidden),
    ("the origin of time does not matter", _origin_of_time),
    ("asking who is next changes nothing, and the answer repeats", _asking_changes_nothing),
    ("every job leaves, after at least its size", _every_job_leaves),
    ("no server idles while a job could use it", _works_while_there_is_work),
    ("a job once started is finished", _never_interrupts),
    ("two runs are equal", _runs_repeat),
    (_AGREE, _engines_agree),
    ("copies and pickles behave the same", _copies),
)


# ------------------------------------------------------------------------------------------------
# Watching a rule at work
# ------------------------------------------------------------------------------------------------


def _variant(rule: Policy, **methods: Any) -> Policy:
    """A copy of the rule with some methods wrapped."""
    own = type(rule)
    named = {"__module__": own.__module__, "__qualname__": own.__qualname__}
    other = copy.deepcopy(rule)
    other.__class__ = type(own.__name__, (own,), named | methods)
    return other


def _limited(rule: Policy, jobs: int) -> Policy:
    """The rule, ended with an error where it asks for attention without end."""
    plain = type(rule).allocate
    asked = [0]

    def allocate(self: Policy, present: Sequence[Job], servers: int, now: Any) -> Any:
        asked[0] += 1
        if asked[0] > _PATIENCE * (jobs + 1):
            raise _FaultError(f"asked {asked[0]} times for {jobs} job(s), time does not move on")
        return plain(self, present, servers, now)

    return _variant(rule, allocate=allocate)


def _watched(rule: Policy, faults: list[str]) -> Policy:
    """The rule, with every question to ``choose`` and ``allocate`` asked twice."""

    def twice(name: str) -> Callable[..., Any]:
        plain = getattr(type(rule), name)

        def ask(self: Policy, jobs: Sequence[Job], *rest: Any) -> Any:
            before = _snapshot(self), _snapshot(list(jobs))
            first = plain(self, jobs, *rest)
            again = plain(self, jobs, *rest)
            if _snapshot(first) != _snapshot(again):
                faults.append(f"{name} gave two answers to one question")
            if _snapshot(self) != before[0]:
                faults.append(f"{name} changed the rule: keep books in on_dispatch or on_service")
            if _snapshot(list(jobs)) != before[1]:
                faults.append(f"{name} changed a job")
            if name == "choose" and not any(first is job for job in jobs):
                faults.append("choose gave something that is not one of the waiting jobs")
            return first

        return ask

    return _variant(rule, choose=twice("choose"), allocate=twice("allocate"))


class _Recorder:
    """A table that notes which columns are read."""

    def __init__(self, table: JobTable, read: set[str]) -> None:
        self._table, self._read = table, read

    def __getattr__(self, name: str) -> Any:
        self._read.add(name)
        return getattr(self._table, name)


def _snapshot(value: Any, seen: dict[int, int] | None = None) -> Any:
    """Everything reachable from a value, in a form that ``==`` compares by content."""
    seen = {} if seen is None else seen
    if value is None or isinstance(value, bool | int | float | complex | str | bytes | type):
        return value
    if id(value) in seen:
        return ("seen", seen[id(value)])
    seen[id(value)] = len(seen)
    if isinstance(value, np.ndarray):
        return ("array", value.shape, value.tolist())
    if isinstance(value, dict):
        return ("dict", [(_snapshot(k, seen), _snapshot(v, seen)) for k, v in value.items()])
    if isinstance(value, set | frozenset):
        return ("set", sorted(map(repr, value)))
    if isinstance(value, list | tuple):
        return (type(value).__name__, [_snapshot(each, seen) for each in value])
    if isinstance(value, np.random.Generator):
        return ("generator", repr(value.bit_generator.state))
    if isinstance(value, Job):
        names = [name for name in Job.__slots__ if name not in HIDDEN and name != "tag"]
        return ("job", [_snapshot(getattr(value, name), seen) for name in names])
    state = getattr(value, "__dict__", None)
    return (type(value).__name__, repr(value) if state is None else _snapshot(state, seen))


def _file_of(policy: Policy) -> str | None:
    import sys

    return getattr(sys.modules.get(type(policy).__module__), "__file__", None)
