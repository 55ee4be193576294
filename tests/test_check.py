"""The conformance kit passes the book's rules and catches each way of breaking the contract."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest

from whonext.check import check_policy
from whonext.policies import Policy, parse_policy, registry


def failures(policy: Policy, tables: int = 12) -> dict[str, str]:
    report = check_policy(policy, tables=tables)
    return {check.name: check.detail for check in report.checks if check.passed is False}


class ShortFirst(Policy):
    """Ten lines are enough."""

    needs = frozenset({"size"})

    def key(self, jobs):
        return jobs.size


class Peeks(Policy):
    def key(self, jobs):
        return jobs.size


class PeeksBehind(Policy):
    """Reaches round the wall that hides sizes."""

    def key(self, jobs):
        source = getattr(jobs, "_source", jobs)
        return getattr(source, "size", 0.0) * 1.0


class OneNumber(Policy):
    def key(self, jobs):
        return np.mean(jobs.arrival)


class Infinite(Policy):
    def key(self, jobs):
        return jobs.arrival * 0 + math.inf


class WholeTable(Policy):
    """A job's key hangs on the other jobs in its table."""

    def key(self, jobs):
        return jobs.arrival - np.max(jobs.arrival)


class Forgetful(Policy):
    """Counts how often it is asked."""

    def __init__(self):
        self.asked = 0

    def choose(self, waiting, now):
        self.asked += 1
        return waiting[self.asked % len(waiting)]


class KeepsBooks(Policy):
    """State, kept where it belongs: a served class goes to the back."""

    def __init__(self):
        self.turn = {}
        self.dispatched = 0

    def choose(self, waiting, now):
        return min(waiting, key=lambda job: (self.turn.get(job.kind, 0), job.arrival, job.id))

    def on_dispatch(self, job, waiting, now):
        self.dispatched += 1
        self.turn[job.kind] = self.dispatched


class Starves(Policy):
    """Never serves the last class."""

    def allocate(self, jobs, servers, now):
        served = [job for job in jobs if job.kind < 2][:servers]
        return dict.fromkeys(served, 1), math.inf


class Lazy(Policy):
    """Waits for a second job before it works, unless it said so."""

    def allocate(self, jobs, servers, now):
        if len(jobs) == 1 and jobs[0].arrival + 1 > now:
            return {}, jobs[0].arrival + 1 - now
        return super().allocate(jobs, servers, now)


class LazyAndSaysSo(Lazy):
    work_conserving = False


class Interrupts(Policy):
    """The shortest cost in service, whoever was started."""

    def allocate(self, jobs, servers, now):
        return dict.fromkeys(sorted(jobs, key=lambda j: (j.cost, j.id))[:servers], 1), math.inf


class Stuck(Policy):
    def allocate(self, jobs, servers, now):
        return super().allocate(jobs, servers, now)[0], 0


class Chancy(Policy):
    """Differs from run to run."""

    count = itertools.count()

    def on_arrival(self, job, now):
        job.key = job.arrival + (next(self.count) * 7919) % 13


class SquaredClock(Policy):
    def key(self, jobs):
        return (jobs.arrival - 3) ** 2


class Unpicklable(Policy):
    def __init__(self):
        self.rule = lambda job: job.arrival

    def key(self, jobs):
        return self.rule(jobs)


class Raises(Policy):
    def key(self, jobs):
        return jobs.arrival + {}["missing"]


class OneServerOnly(Policy):
    def bind(self, workload, servers):
        if servers > 1:
            raise ValueError(f"servers={servers}: this rule is for one")


class NeverBinds(Policy):
    def bind(self, workload, servers):
        raise ValueError("load=0.8: too much for me")


@pytest.mark.parametrize("name", sorted(registry))
def test_the_rules_of_the_book_conform(name):
    report = check_policy(parse_policy(name), tables=9)
    assert report.passed, str(report)
    assert "fit for every engine" in str(report) or not all(c.passed for c in report.checks)


def test_a_rule_of_ones_own_conforms():
    assert not failures(ShortFirst())


def test_a_rule_with_state_conforms_on_the_reference_engine():
    report = check_policy(KeepsBooks(), tables=12)
    assert report.passed, str(report)
    assert "fit for the reference engine" in str(report)


@pytest.mark.parametrize(
    ("rule", "name", "words"),
    [
        (Peeks, "key gives one finite number a job", "does not declare it"),
        (PeeksBehind, "what is hidden stays hidden", "not in needs"),
        (OneNumber, "key gives one finite number a job", "has shape ()"),
        (Infinite, "key gives one finite number a job", "finite number"),
        (WholeTable, "key of a job alone is its key in a table", "alone"),
        (Forgetful, "asking who is next changes nothing, and the answer repeats", "choose"),
        (Starves, "every job leaves, after at least its size", "unserved"),
        (Lazy, "no server idles while a job could use it", "work_conserving"),
        (Interrupts, "a job once started is finished", "preemptive"),
        (Stuck, "every job leaves, after at least its size", "does not move"),
        (Chancy, "two runs are equal", "different"),
        (SquaredClock, "the origin of time does not matter", "origin of time"),
        (Unpicklable, "copies and pickles behave the same", "cannot be copied"),
        (Raises, "key gives one finite number a job", "KeyError: 'missing' (line"),
    ],
)
def test_each_fault_is_found_and_named(rule, name, words):
    found = failures(rule())
    assert name in found
    assert words in found[name]


def test_a_rule_for_one_server_is_checked_on_one():
    assert not failures(OneServerOnly())


def test_a_rule_that_takes_no_workload_is_named():
    assert failures(NeverBinds()) == {
        "bind takes a workload of three classes": "load=0.8: too much for me"
    }


def test_idling_is_allowed_where_it_is_declared():
    assert "no server idles while a job could use it" not in failures(LazyAndSaysSo())


def test_the_example_is_the_smallest():
    detail = failures(WholeTable(), tables=20)["key of a job alone is its key in a table"]
    assert detail.count("arrival") <= 3  # one job is enough, and the sentence


@dataclass(eq=False, repr=False)
class WrongSlope(Policy):
    """Declares SRPT's slope without interrupting; harmless, as nothing is ever partly served."""

    slope: float = -1.0
    needs: frozenset[str] = frozenset({"size"})

    def key(self, jobs):
        return jobs.size


def test_engines_agree_where_a_slope_has_no_effect():
    assert not failures(WrongSlope())


def test_a_report_is_plain_values():
    report = check_policy(Peeks(), tables=3).to_dict()
    assert report["passed"] is False
    assert {"name", "passed", "detail"} == set(report["checks"][0])


def test_tables_must_be_a_number_above_zero():
    with pytest.raises(ValueError, match="tables=0"):
        check_policy(ShortFirst(), tables=0)


def test_the_rule_handed_in_is_not_changed():
    rule = parse_policy("c-mu")
    check_policy(rule, tables=2)
    assert rule._rank_of_kind is None
