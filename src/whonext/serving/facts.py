"""What a server is told about its classes, and about each request: read, checked, made into jobs.

Facts about one request travel in ``SamplingParams.extra_args``, which the HTTP server fills from
the request body's ``vllm_xargs``:

============== ============================================================ =====================
key            meaning                                                      where it is missing
============== ============================================================ =====================
``class``      name of one of the server's classes                          the first class
``size``       the true size, if the sender knows it                        ``max_tokens``
``prediction`` the predicted size                                           ``max_tokens``
``weight``     holding cost per second                                      the class's weight
``cost``       what serving it is charged at                                the server's cost model
============== ============================================================ =====================

Sizes and predictions may be in any one unit that all senders share; output tokens is the usual
one. ``max_tokens`` stands in for a missing one because it is the only bound on the length that the
server has been given. Other keys belong to someone else and are left alone.

Who refuses a bad fact (``nan``, a negative weight, an unknown class)? The HTTP server does, with
status 400 and one line (:class:`whonext.serving.server.CheckFacts`). The scheduler sits inside the
engine, where an exception would end every request of every client; it logs a warning and uses what
stands in for the fact.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from whonext.policies import Policy, parse_policy

__all__ = ["CONFIG_VARIABLE", "COSTS", "FACTS", "Facts", "ServedClass", "ServingConfig"]

#: Environment variable that holds the settings: a policy's name, or the JSON of ServingConfig.
CONFIG_VARIABLE = "WHONEXT_SERVING"

#: Keys of ``extra_args`` that are read here.
FACTS = ("class", "size", "prediction", "weight", "cost")

#: Cost models: what a request is charged at when it does not say.
COSTS = ("one", "prompt", "size", "prediction")


@dataclass(frozen=True)
class ServedClass:
    """A class of requests: what :class:`whonext.workload.JobClass` says, where it is known.

    Parameters
    ----------
    name
        Its name, as requests give it.
    weight
        Holding cost of one request for each second in the system.
    share
        Share of the arrivals, if known.
    size
        Law of its size, if known: a distribution, or its words (``"lognormal:mean=80,sigma=1"``).
    """

    name: str
    weight: float = 1.0
    share: float | None = None
    size: Any = None

    def __post_init__(self) -> None:
        if not self.name or not isinstance(self.name, str):
            raise ValueError(f"name={self.name!r}: a class needs a name")
        _number("weight", self.weight)
        if isinstance(self.size, str):
            from whonext.distributions import parse_law

            object.__setattr__(self, "size", parse_law(self.size))


@dataclass(frozen=True)
class Facts:
    """The facts of one request, complete."""

    kind: int
    size: float
    prediction: float
    weight: float
    cost: float


@dataclass(frozen=True)
class ServingConfig:
    """The settings of a scheduler: ``additional_config={"whonext": {...}}`` of the engine.

    Parameters
    ----------
    policy
        The rule, as :func:`whonext.policies.parse_policy` reads it, or (in one process) a policy.
    policy_file
        A file with the rule's name in its first line, read at the start and again, if it has
        changed, whenever a request comes to an empty system: the rule can be changed without a
        restart, and never under a request's feet. Takes the place of ``policy``.
    classes
        The classes, each a mapping or a :class:`ServedClass`; or the path of a TOML file of
        classes. Their order is the order of ``kind``.
    cost
        Cost model for requests that do not say: ``"one"``, ``"prompt"`` (prompt tokens),
        ``"size"`` or ``"prediction"``.
    events
        A file to which the event trace is written, as CSV. For one engine: engines that share the
        load would write over each other.
    steps
        A file to which every finished step is written, as CSV: when it ended, the requests and
        tokens in it.

    Raises
    ------
    ValueError
        If a setting is unknown or has a value that is not allowed.
    """

    policy: str | Policy = "fcfs"
    policy_file: str | None = None
    classes: Sequence[Any] = ()
    cost: str = "one"
    events: str | None = None
    steps: str | None = None

    def __post_init__(self) -> None:
        if self.cost not in COSTS:
            raise ValueError(f"cost={self.cost!r}: one of {', '.join(COSTS)}")
        given = _class_table(self.classes) if isinstance(self.classes, str) else self.classes
        classes = tuple(_served_class(entry) for entry in given)
        names = [served.name for served in classes]
        if len(set(names)) < len(names):
            raise ValueError(f"classes={names!r}: each class may be named once")
        object.__setattr__(self, "classes", classes)

    @classmethod
    def from_engine(cls, additional_config: Any) -> ServingConfig:
        """Read the settings inside an engine process.

        ``additional_config["whonext"]`` if it is there, else the environment variable
        :data:`CONFIG_VARIABLE`, else first come, first served.
        """
        if isinstance(additional_config, Mapping) and "whonext" in additional_config:
            return cls.from_mapping(additional_config["whonext"])
        return cls.from_environment()

    @classmethod
    def from_environment(cls) -> ServingConfig:
        """Read the settings from the environment variable :data:`CONFIG_VARIABLE`."""
        text = os.environ.get(CONFIG_VARIABLE, "").strip()
        if not text.startswith("{"):
            return cls(policy=text or "fcfs")
        try:
            settings = json.loads(text)
        except json.JSONDecodeError as error:
            raise ValueError(f"{CONFIG_VARIABLE}={text!r}: not JSON: {error}") from None
        return cls.from_mapping(settings)

    @classmethod
    def from_mapping(cls, settings: Any) -> ServingConfig:
        """Build from the JSON object, or from a policy's name alone."""
        if isinstance(settings, str):
            return cls(policy=settings)
        if not isinstance(settings, Mapping):
            raise ValueError(f"whonext={settings!r}: a policy's name or an object of settings")
        known = cls.__dataclass_fields__
        for key in settings:
            if key not in known:
                raise ValueError(f"whonext: no setting {key!r}; there are {', '.join(known)}")
        return cls(**settings)

    def to_mapping(self) -> dict[str, Any]:
        """JSON-able settings: ``from_mapping(config.to_mapping())`` is the same."""
        spec = self.policy.spec if isinstance(self.policy, Policy) else self.policy
        classes = [
            {
                "name": served.name,
                "weight": served.weight,
                **({} if served.share is None else {"share": served.share}),
                **({} if served.size is None else {"size": served.size.spec}),
            }
            for served in self.classes
        ]
        settings = {
            "policy": spec,
            "policy_file": self.policy_file,
            "classes": classes,
            "cost": self.cost,
            "events": self.events,
            "steps": self.steps,
        }
        return {key: value for key, value in settings.items() if value is not None}

    def build_policy(self, servers: int) -> Policy:
        """The rule, bound to the classes.

        Parameters
        ----------
        servers
            Requests that run at the same time at most (``max_num_seqs``).

        Raises
        ------
        ValueError
            If there is no such rule, or it needs to know more about the classes than is given.
        """
        policy = parse_policy(self.policy_text())
        if type(policy).bind is Policy.bind:
            return policy
        try:
            policy.bind(_Bound(self.classes), servers)
        except (AttributeError, TypeError, ZeroDivisionError) as error:
            raise ValueError(
                f"policy={policy.spec!r}: it learns from the classes, and they say too little "
                f"({error}); give each class a weight, a share and a size law"
            ) from error
        return policy

    def policy_text(self) -> str | Policy:
        """The rule's name, from the file if there is one."""
        if self.policy_file is None:
            return self.policy
        try:
            lines = Path(self.policy_file).read_text(encoding="utf-8").split("\n")
        except OSError as error:
            raise ValueError(f"policy_file={self.policy_file!r}: {error.strerror}") from None
        return lines[0].strip()

    def read_facts(
        self,
        extra_args: Mapping[str, Any] | None,
        max_tokens: float,
        prompt_tokens: float = 1,
        strict: bool = True,
    ) -> tuple[Facts, list[str]]:
        """Check the facts of a request and fill in those it does not give.

        Parameters
        ----------
        extra_args
            ``SamplingParams.extra_args`` or ``vllm_xargs``.
        max_tokens, prompt_tokens
            What stands in for a missing size or prediction, and for the cost by prompt.
        strict
            Whether to raise on a bad value, or to put the stand-in in its place.

        Returns
        -------
        facts : Facts
        complaints : list of str
            One line for each bad value that was replaced; empty if ``strict``.

        Raises
        ------
        ValueError
            If ``strict`` and a value is bad, naming it and what is allowed.
        """
        given = extra_args or {}
        complaints: list[str] = []

        def checked(check: Any, key: str, stand_in: Any) -> Any:
            if given.get(key) is None:
                return stand_in
            try:
                return check(key, given[key])
            except ValueError as error:
                if strict:
                    raise
                complaints.append(str(error))
                return stand_in

        kind = checked(self._kind, "class", 0)
        size = checked(_number, "size", float(max_tokens))
        prediction = checked(_number, "prediction", float(max_tokens))
        weight = checked(_number, "weight", self.classes[kind].weight if self.classes else 1.0)
        stand_ins = {"one": 1.0, "prompt": prompt_tokens, "size": size, "prediction": prediction}
        cost = checked(_number, "cost", float(stand_ins[self.cost]))
        return Facts(kind, size, prediction, weight, cost), complaints

    def _kind(self, key: str, name: Any) -> int:
        for kind, served in enumerate(self.classes):
            if served.name == name:
                return kind
        there = ", ".join(repr(served.name) for served in self.classes) or "none"
        raise ValueError(f"{key}={name!r}: no such class; the server's classes: {there}")


class _Bound:
    """The part of a workload that a server knows: what ``Policy.bind`` is given here."""

    def __init__(self, classes: Sequence[ServedClass]) -> None:
        self.classes = tuple(classes)
        self.names = [served.name for served in classes]


def _number(key: str, value: Any) -> float:
    allowed = "a finite number above 0"
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{key}={value!r}: {allowed}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not (math.isfinite(number) and number > 0):
        raise ValueError(f"{key}={value!r}: {allowed}")
    return number


def _served_class(entry: Any) -> ServedClass:
    if isinstance(entry, ServedClass):
        return entry
    if not isinstance(entry, Mapping):
        raise ValueError(f"classes: {entry!r} is not a class; write name, weight, share, size")
    known = ServedClass.__dataclass_fields__
    for key in entry:
        if key not in known:
            raise ValueError(f"classes: no key {key!r}; there are {', '.join(known)}")
    if "name" not in entry:
        raise ValueError(f"classes: {dict(entry)!r} has no name")
    return ServedClass(**entry)


def _class_table(path: str) -> list[ServedClass]:
    from whonext.workload import Workload

    return [
        ServedClass(given.name, given.weight, given.share, given.size)
        for given in Workload.from_toml(path).classes
    ]
