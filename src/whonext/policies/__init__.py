"""Every scheduling rule of the book, each written once.

>>> parse_policy("sjf:by=prediction")
<sjf:by=prediction>
>>> sorted(registry)[:3]
['boost', 'c-mu', 'edf']
"""

from __future__ import annotations

import difflib
import importlib
import sys
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from whonext.policies.arrival_order import Fcfs, Lcfs, LcfsPreemptive, RandomOrder
from whonext.policies.base import HIDDEN, Job, Policy, Visible
from whonext.policies.deadlines import Boost, Edf, EdfPreemptive, GammaBoost
from whonext.policies.sharing import Fb, Lrpt, Ps
from whonext.policies.size_based import Ljf, Psjf, SizeBased, Sjf, Srpt
from whonext.policies.weighted import CMu, Priority, PriorityPreemptive, Wspt

__all__ = [
    "HIDDEN",
    "Boost",
    "CMu",
    "Edf",
    "EdfPreemptive",
    "Fb",
    "Fcfs",
    "GammaBoost",
    "Job",
    "Lcfs",
    "LcfsPreemptive",
    "Ljf",
    "Lrpt",
    "Policy",
    "Priority",
    "PriorityPreemptive",
    "Ps",
    "Psjf",
    "RandomOrder",
    "SizeBased",
    "Sjf",
    "Srpt",
    "Visible",
    "Wspt",
    "parse_policy",
    "registry",
]

#: The rules by their names on the command line.
registry: dict[str, type[Policy]] = {
    rule.name: rule
    for rule in (
        Fcfs,
        Lcfs,
        RandomOrder,
        LcfsPreemptive,
        Priority,
        PriorityPreemptive,
        CMu,
        Wspt,
        Sjf,
        Ljf,
        Psjf,
        Srpt,
        Lrpt,
        Fb,
        Ps,
        Edf,
        EdfPreemptive,
        Boost,
        GammaBoost,
    )
}


def parse_policy(text: str | Policy) -> Policy:
    """Turn the command line's words for a rule into the rule.

    Parameters
    ----------
    text
        ``NAME``, ``NAME:parameter=value,…``, or ``module:Class`` for a rule of one's own (found
        from the current folder too), again with ``:parameter=value,…``.

    Returns
    -------
    Policy

    Raises
    ------
    ValueError
        If there is no such rule or parameter, naming it and what there is.
    """
    if isinstance(text, Policy):
        return text
    name, *rest = str(text).strip().split(":")
    if name in registry:
        rule: type[Policy] = registry[name]
    elif rest and "=" not in rest[0]:
        rule = _import_rule(name, rest.pop(0), text)
    else:
        near = difflib.get_close_matches(name, registry, n=1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise ValueError(
            f"policy={text!r}: unknown{hint}; there are {', '.join(registry)}, "
            "and module:Class for a rule of your own"
        )
    if len(rest) > 1:
        raise ValueError(f"policy={text!r}: write parameters as {name}:a=1,b=2")
    return _build(rule, rest[0] if rest else "", text)


def _import_rule(module_name: str, class_name: str, text: str) -> type[Policy]:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except Exception as error:  # anything a module of the user's may raise as it is imported
        raise ValueError(
            f"policy={text!r}: importing {module_name!r} failed: {type(error).__name__}: {error}"
        ) from error
    rule = getattr(module, class_name, None)
    if not (isinstance(rule, type) and issubclass(rule, Policy)):
        raise ValueError(
            f"policy={text!r}: {module_name!r} has no whonext.Policy class {class_name!r}"
        )
    return rule


def _build(rule: type[Policy], settings: str, text: str) -> Policy:
    known: dict[str, Any] = {}
    if is_dataclass(rule):
        known = {f.name: f for f in fields(rule) if f.init}
    values: dict[str, Any] = {}
    for setting in filter(None, settings.split(",")):
        key, equals, value = setting.partition("=")
        if not equals or key not in known:
            has = f"has {', '.join(known)}" if known else "takes no parameters"
            raise ValueError(f"policy={text!r}: no parameter {key!r}; {rule.__name__} {has}")
        values[key] = _convert(value, known[key].type, key, text)
    try:
        return rule(**values)
    except TypeError as error:
        raise ValueError(f"policy={text!r}: {error}") from error


def _convert(value: str, kind: Any, key: str, text: str) -> Any:
    kind = kind if isinstance(kind, str) else getattr(kind, "__name__", "str")
    converters: dict[str, Any] = {"int": int, "float": float, "bool": _yes_or_no}
    try:
        return converters.get(kind, str)(value)
    except ValueError:
        raise ValueError(f"policy={text!r}: {key}={value!r} is not of type {kind}") from None


def _yes_or_no(value: str) -> bool:
    if value.lower() not in ("true", "false", "yes", "no", "1", "0"):
        raise ValueError(value)
    return value.lower() in ("true", "yes", "1")
