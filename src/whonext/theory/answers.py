"""One question to all of theory: what are the mean times under this rule, and if not, why not?"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whonext.distributions import Distribution, Exponential
from whonext.policies import Policy, parse_policy
from whonext.theory import (
    bounds,
    markovian,
    pollaczek_khinchine,
    priorities,
    size_based,
    smiths_rule,
)
from whonext.theory._arguments import InfiniteMomentError, require_moment
from whonext.workload import (
    Batch,
    ClassMean,
    ExactPrediction,
    LogNormalError,
    Poisson,
    Renewal,
    Workload,
)

__all__ = ["Answer", "ClassAnswer", "answer"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ClassAnswer:
    """Mean times of one class of jobs."""

    response_mean: float | None
    waiting_mean: float | None


@dataclass(frozen=True)
class Answer:
    """What theory says of a rule on a workload.

    Attributes
    ----------
    policy, size, servers, load
        What was asked about.
    response_mean, waiting_mean
        E[T], and E[W] as response time less size; ``None`` where there is no value.
    per_class
        The same for each class, by name; empty where there is no value.
    reason
        Why there is no value; ``None`` where there is one.
    source
        Where the formula stands.
    chapter
        The chapter that explains it.
    """

    policy: str
    size: str
    servers: int
    load: float
    response_mean: float | None = None
    waiting_mean: float | None = None
    per_class: dict[str, ClassAnswer] = field(default_factory=dict)
    reason: str | None = None
    source: str | None = None
    chapter: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """As plain values: what ``whonext theory --json`` prints."""
        return {
            "policy": self.policy,
            "servers": self.servers,
            "load": self.load,
            "size": self.size,
            "response": {"mean": self.response_mean, "reason": self.reason},
            "waiting": {"mean": self.waiting_mean, "reason": self.reason},
            "per_class": {
                name: {
                    "response": {"mean": each.response_mean, "reason": self.reason},
                    "waiting": {"mean": each.waiting_mean, "reason": self.reason},
                }
                for name, each in self.per_class.items()
            },
            "reason": self.reason,
            "source": self.source,
            "chapter": self.chapter,
        }


def answer(policy: str | Policy, workload: Workload, servers: int = 1) -> Answer:
    """Give the exact mean times of ``policy`` on ``workload``, or the reason why there are none.

    Parameters
    ----------
    policy
        A rule, or its words on the command line.
    workload
        Poisson arrivals with a load or a rate, unless the formula knows others.
    servers
        Number of servers of speed 1.

    Raises
    ------
    ValueError
        For an unstable load, an unknown rule, or a workload without a load or rate.

    Examples
    --------
    >>> from whonext.workload import Workload
    >>> round(answer("fcfs", Workload("exp:1", load=0.8)).response_mean, 6)
    5.0
    >>> answer("sjf", Workload("exp:1", load=0.8), servers=3).reason
    'no closed form is known for sjf on 3 servers'
    >>> answer("fcfs", Workload("pareto:alpha=1.5", load=0.8)).reason
    'E[W] is infinite: the second moment of pareto:alpha=1.5,low=1 is infinite'
    """
    rule = copy.deepcopy(parse_policy(policy))
    if not isinstance(workload, Workload):
        raise ValueError(f"workload={workload!r}: must be a Workload")
    asked: dict[str, Any] = {
        "policy": rule.spec,
        "size": workload.size.spec,
        "servers": servers,
        "load": workload.load_on(servers),
    }
    if workload.fixed is not None:
        return Answer(**asked, reason="the jobs are a fixed list: formulas need laws, not a trace")
    workload.check_stable(servers)
    rule.bind(workload, servers)
    case = _Case(rule, workload, servers)
    try:
        waits, source, chapter = _waits(case)
    except (InfiniteMomentError, _NoFormulaError) as error:
        return Answer(**asked, reason=str(error))
    waiting = float(np.dot(case.shares, waits))
    return Answer(
        **asked,
        response_mean=waiting + workload.mean_size,
        waiting_mean=waiting,
        per_class={
            name: ClassAnswer(float(wait) + size.mean, float(wait))
            for name, wait, size in zip(workload.names, waits, case.sizes, strict=True)
        },
        source=source,
        chapter=chapter,
    )


class _NoFormulaError(Exception):
    """There is no formula, and this says why."""


class _Case:
    """A rule on a workload, with what the formulas take of it."""

    def __init__(self, rule: Policy, workload: Workload, servers: int) -> None:
        self.rule = rule
        self.workload = workload
        self.servers = servers
        self.load = workload.load_on(servers)
        self.size: Distribution = workload.size
        self.sizes: Sequence[Distribution] = [each.size for each in workload.classes]
        self.shares = np.array([each.share for each in workload.classes])
        self.weights = np.array([each.weight for each in workload.classes])
        self.rates = workload.rate(servers) * self.shares

    @property
    def name(self) -> str:
        return self.rule.name or self.rule.spec

    def all_classes(self, wait: float) -> Array:
        """One mean wait for every class."""
        return np.full(len(self.sizes), wait)

    def ranks(self) -> Array:
        """Rank the classes under a rule that looks at nothing but the class."""
        kinds = np.arange(len(self.sizes))
        jobs = SimpleNamespace(kind=kinds, weight=self.weights, arrival=np.zeros(len(kinds)))
        return np.asarray(self.rule.key(jobs), dtype=np.float64)

    def common_exponential(self) -> float:
        """Mean of the one exponential law that all classes have."""
        first = self.sizes[0]
        if not all(isinstance(s, Exponential) and s == first for s in self.sizes):
            raise _NoFormulaError(
                f"no closed form is known for {self.name} on {self.servers} servers unless "
                f"all sizes are exponential with one mean; here they are {self.size.spec}"
            )
        return first.mean


#: Waits of the classes, the source of the formula, and the chapter that explains it.
_Waits = tuple[Array, str, str]


def _waits(case: _Case) -> _Waits:
    formula = _FORMULAS.get(case.name)
    if formula is None:
        raise _NoFormulaError(
            f"no formula is at hand for {case.name}; there are formulas for {', '.join(_FORMULAS)}"
        )
    if not isinstance(case.workload.arrivals, Poisson):
        return _other_arrivals(case)
    return formula(case)


def _other_arrivals(case: _Case) -> _Waits:
    arrivals = case.workload.arrivals
    blind = case.name in ("fcfs", "lcfs", "random") and case.servers == 1
    if blind and isinstance(arrivals, Batch):
        mean, second = _batch_moments(arrivals)
        wait = pollaczek_khinchine.batch_waiting_mean(case.size, mean, second, load=case.load)
        return case.all_classes(wait), "Pollaczek-Khinchine, with batches", _PK
    reason = f"no closed form is known for {case.name} with {arrivals.spec} arrivals"
    if blind and isinstance(arrivals, Renewal):
        between = arrivals.law.with_mean(1 / case.workload.rate())
        try:
            bound = bounds.kingman(between, case.size)
        except InfiniteMomentError as error:
            reason += f", and {error}"
        else:
            reason += f"; by Kingman's bound, E[W] is at most {bound:.6g}"
    raise _NoFormulaError(reason)


def _batch_moments(arrivals: Batch) -> tuple[float, float]:
    if isinstance(arrivals.size, Distribution):
        return arrivals.size.mean, arrivals.size.second_moment
    return arrivals.size, arrivals.size * (2 * arrivals.size - 1)  # geometric on 1, 2, 3, ...


_PK = "Pollaczek-Khinchine"
_CMU = "The c-mu rule (to come)"
_SMITH = "Smith's rule (to come)"
_SHORTEST = "Shortest first (to come)"


def _size_blind(case: _Case) -> _Waits:
    """First or last come, first served, without preemption."""
    if case.servers > 1:
        wait = markovian.waiting_mean(case.common_exponential(), case.servers, load=case.load)
        return case.all_classes(wait), "Erlang (1917)", "Queues and Kendall's notation"
    wait = pollaczek_khinchine.waiting_mean(case.size, load=case.load)
    return case.all_classes(wait), "Pollaczek (1930), Khinchine (1932)", _PK


def _memoryless_or(formula: Callable[..., float], chapter: str) -> Callable[[_Case], _Waits]:
    """On many servers, say what holds of every rule blind to size that interrupts at no cost.

    What is left of an exponential size is the same for all jobs, so it does not matter which of
    them are served.
    """
    one_server = _by_size(formula, chapter)

    def waits(case: _Case) -> _Waits:
        if case.servers == 1:
            return one_server(case)
        wait = markovian.waiting_mean(case.common_exponential(), case.servers, load=case.load)
        return case.all_classes(wait), "Erlang (1917): sizes without memory", chapter

    return waits


def _sharing(case: _Case) -> _Waits:
    stretch = size_based.processor_sharing(case.size, load=case.load, servers=case.servers)
    means = np.array([size.mean for size in case.sizes])
    source = "Kleinrock II (1976)" if case.servers == 1 else "Cohen (1979)"
    return means * (stretch / case.size.mean - 1), source, _SHORTEST


def _non_preemptive(case: _Case) -> _Waits:
    if case.servers > 1:
        mean = case.common_exponential()
        waits = priorities.non_preemptive_exponential(case.rates, mean, case.servers, case.ranks())
    else:
        waits = priorities.non_preemptive(case.rates, case.sizes, case.ranks())
    return waits, "Cobham (1954)", _CMU


def _preemptive(case: _Case) -> _Waits:
    if case.servers > 1:
        mean = case.common_exponential()
        responses = priorities.preemptive_resume_exponential(
            case.rates, mean, case.servers, case.ranks()
        )
    else:
        for size in case.sizes:
            require_moment(size, 2, "E[T]")
        responses = priorities.preemptive_resume(case.rates, case.sizes, case.ranks())
    return responses - [size.mean for size in case.sizes], "Kleinrock II (1976)", _CMU


def _by_size(formula: Callable[..., float], chapter: str) -> Callable[[_Case], _Waits]:
    """Turn a formula of :mod:`whonext.theory.size_based` into waits of the classes."""

    def waits(case: _Case) -> _Waits:
        _one_server(case)
        by = getattr(case.rule, "by", "size")
        prediction = case.workload.prediction
        if by == "prediction" and not isinstance(prediction, ExactPrediction):
            raise _NoFormulaError(
                f"no closed form is at hand for {case.name} on predictions that can be wrong"
            )
        responses = [formula(case.size, load=case.load, of=size) for size in case.sizes]
        means = [size.mean for size in case.sizes]
        return np.array(responses) - means, _SOURCES[formula.__name__], chapter

    return waits


def _shortest_job_first(case: _Case) -> _Waits:
    _one_server(case)
    if getattr(case.rule, "by", "size") == "prediction":
        waits = _index_waits(case, np.ones(len(case.sizes)), case.workload.prediction)
        return waits, "Phipps (1956), averaged over the predictions", _SHORTEST
    return _by_size(size_based.shortest_job_first, _SHORTEST)(case)


def _smiths_rule(case: _Case) -> _Waits:
    _one_server(case)
    by = getattr(case.rule, "by", "size")
    if (case.weights == 0).any():
        raise _NoFormulaError("a weight of 0 makes size over weight infinite")
    if by == "cost":
        by = case.workload.cost
        if not isinstance(by, str):
            raise _NoFormulaError("no formula is at hand for costs of one's own")
    if by == "one":
        waits = priorities.non_preemptive(case.rates, case.sizes, 1 / case.weights)
    else:
        prediction = case.workload.prediction if by == "prediction" else ExactPrediction()
        waits = _index_waits(case, case.weights, prediction)
    return waits, "Cobham (1954) for the index of Smith (1956)", _SMITH


def _index_waits(case: _Case, weights: Array, prediction: Any) -> Array:
    if isinstance(prediction, ClassMean):
        means = np.array([size.mean for size in case.sizes])
        return priorities.non_preemptive(case.rates, case.sizes, means / weights)
    if isinstance(prediction, ExactPrediction):
        sigma = 0.0
    elif isinstance(prediction, LogNormalError):
        sigma = prediction.sigma
    else:
        raise _NoFormulaError(f"no formula is at hand for {prediction.spec} predictions")
    return smiths_rule.weighted_shortest_first(
        case.rates, case.sizes, weights, prediction_sigma=sigma
    )


def _one_server(case: _Case) -> None:
    if case.servers > 1:
        raise _NoFormulaError(f"no closed form is known for {case.name} on {case.servers} servers")


_SOURCES = {
    "shortest_job_first": "Phipps (1956)",
    "longest_job_first": "Phipps (1956), the other way round",
    "preemptive_shortest_job_first": "Wierman and Harchol-Balter (2003)",
    "shortest_remaining_processing_time": "Schrage and Miller (1966)",
    "longest_remaining_processing_time": "Wierman and Harchol-Balter (2003)",
    "foreground_background": "Schrage (1967)",
    "last_come_first_served_preemptive": "Kleinrock II (1976)",
}

_FORMULAS: dict[str, Callable[[_Case], _Waits]] = {
    "fcfs": _size_blind,
    "lcfs": _size_blind,
    "random": _size_blind,
    "lcfs-pr": _memoryless_or(size_based.last_come_first_served_preemptive, _PK),
    "priority": _non_preemptive,
    "priority-pr": _preemptive,
    "c-mu": _non_preemptive,
    "wspt": _smiths_rule,
    "sjf": _shortest_job_first,
    "ljf": _by_size(size_based.longest_job_first, _SHORTEST),
    "psjf": _by_size(size_based.preemptive_shortest_job_first, _SHORTEST),
    "srpt": _by_size(size_based.shortest_remaining_processing_time, _SHORTEST),
    "lrpt": _by_size(size_based.longest_remaining_processing_time, _SHORTEST),
    "fb": _memoryless_or(size_based.foreground_background, _SHORTEST),
    "ps": _sharing,
}
