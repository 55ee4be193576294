"""Who goes next? Scheduling for LLM serving: proved, simulated, and run inside live vLLM.

>>> from whonext import Exponential, Workload, simulate
>>> simulate("fcfs", Workload(Exponential(1), load=0.8), jobs=100_000).servers
1

Names are imported when first used, so that ``whonext --help`` need not wait for numba.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from whonext.distributions import (
        BoundedPareto,
        Deterministic,
        Distribution,
        Empirical,
        Erlang,
        Exponential,
        Gamma,
        HyperExponential,
        LogNormal,
        Mixture,
        Pareto,
        Uniform,
        Weibull,
        parse_law,
    )
    from whonext.policies import Job, Policy, parse_policy
    from whonext.results import Comparison, Result
    from whonext.simulation import compare, simulate
    from whonext.workload import JobClass, JobTable, Workload

__version__ = "0.1.0"

_ROOMS = {
    "distributions": (
        "BoundedPareto Deterministic Distribution Empirical Erlang Exponential Gamma "
        "HyperExponential LogNormal Mixture Pareto Uniform Weibull parse_law"
    ),
    "policies": "Job Policy parse_policy",
    "results": "Comparison Result",
    "simulation": "compare simulate",
    "workload": "JobClass JobTable Workload",
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names.split()}

__all__ = [
    "BoundedPareto",
    "Comparison",
    "Deterministic",
    "Distribution",
    "Empirical",
    "Erlang",
    "Exponential",
    "Gamma",
    "HyperExponential",
    "Job",
    "JobClass",
    "JobTable",
    "LogNormal",
    "Mixture",
    "Pareto",
    "Policy",
    "Result",
    "Uniform",
    "Weibull",
    "Workload",
    "compare",
    "parse_law",
    "parse_policy",
    "policies",
    "simulate",
]


def __getattr__(name: str) -> Any:
    if name == "policies":
        return importlib.import_module("whonext.policies")
    if name not in _ROOM_OF:
        raise AttributeError(f"module 'whonext' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"whonext.{_ROOM_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
