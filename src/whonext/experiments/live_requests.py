"""The requests of the live experiment: slices of a trace, scaled, and what is told of each."""

from __future__ import annotations

import hashlib
import json
import math
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from whonext.traces import load_trace, synthetic
from whonext.workload import random_stream

__all__ = [
    "CLASSES",
    "TRACE",
    "TRAINING",
    "VARIANTS",
    "Plan",
    "Slice",
    "digits",
    "facts_of",
    "learned_predictor",
    "machine_time",
    "ms",
    "read_trace",
    "requests_of",
    "rows_of",
    "scaled",
    "take_slice",
    "variant",
]

TRACE = "azure-conversation"

#: Classes of requests. The weights are holding costs per second.
CLASSES: tuple[dict[str, Any], ...] = (
    {"name": "interactive", "weight": 4.0, "share": 0.3},
    {"name": "standard", "weight": 2.0, "share": 0.4},
    {"name": "batch", "weight": 1.0, "share": 0.3},
)

#: What is compared: label, policy, and the column of lengths that it is told.
VARIANTS: tuple[tuple[str, str, str], ...] = (
    ("fcfs", "fcfs", "nothing"),
    ("sjf", "sjf:by=size", "size"),
    ("sjf predicted", "sjf:by=prediction", "predicted"),
    ("sjf noisy", "sjf:by=prediction", "noisy"),
    ("wspt", "wspt:by=size", "size"),
    ("wspt predicted", "wspt:by=prediction", "predicted"),
)

#: Requests of the trace that are not replayed: the predictor learns from them.
TRAINING = 6000


@dataclass(frozen=True)
class Plan:
    """The settings of a run.

    Parameters
    ----------
    rounds
        Slices of the trace, each run under every policy.
    requests
        Requests in a round under one policy; 0 to choose it after the calibration, so that the
        run takes about ``budget`` seconds.
    least, most
        Bounds on that choice.
    budget
        Seconds of replay aimed at.
    labels
        The policies, by their labels in :data:`VARIANTS`.
    load
        See the module.
    burst
        Requests in the calibration's burst.
    prompt_divisor, output_divisor, longest_prompt, longest_output
        Scaling of the trace's lengths, and caps on the result.
    max_num_seqs, max_num_batched_tokens, max_model_len, block_size, num_blocks
        The engine's limits.
    sigma
        Of the noisy prediction's lognormal error.
    seed
        For classes, prompts, noise and the bootstrap.
    """

    rounds: int = 4
    requests: int = 0
    least: int = 110
    most: int = 400
    budget: float = 1150.0
    labels: tuple[str, ...] = tuple(label for label, _, _ in VARIANTS)
    load: float = 0.9
    burst: int = 80
    prompt_divisor: int = 64
    output_divisor: int = 16
    longest_prompt: int = 64
    longest_output: int = 64
    max_num_seqs: int = 6
    max_num_batched_tokens: int = 256
    max_model_len: int = 128
    block_size: int = 32
    num_blocks: int = 8
    sigma: float = 0.7
    seed: int = 1

    def requests_at(self, requests_per_second: float) -> int:
        """Requests in a round under one policy, on an engine that can take so many a second."""
        runs = self.rounds * len(self.labels)
        chosen = int(self.budget * self.load * requests_per_second / runs)
        return self.requests or min(max(chosen, self.least), self.most)

    def key(self) -> str:
        """A short name for these settings."""
        text = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:10]


@dataclass(frozen=True)
class Slice:
    """Requests of one round: the columns of ``jobs`` are those of the record."""

    first: int
    stretch: float
    jobs: pd.DataFrame

    @property
    def span(self) -> float:
        """Seconds from the first arrival to the last."""
        return float(self.jobs["arrival"].iloc[-1])


def read_trace(small: bool) -> pd.DataFrame:
    """The trace's file if there is one or it can be had; else a synthetic one stands in."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if small:
            return load_trace(TRACE, fallback="synthetic", seed=0)
        try:
            return load_trace(TRACE)
        except ValueError:
            return synthetic(TRACE)


def scaled(plan: Plan, trace: pd.DataFrame) -> pd.DataFrame:
    """The whole trace with the lengths that are run."""
    prompt = np.ceil(trace["prompt"].to_numpy() / plan.prompt_divisor)
    output = np.ceil(trace["output"].to_numpy() / plan.output_divisor)
    return pd.DataFrame(
        {
            "arrival": trace["arrival"].to_numpy(),
            "prompt": np.clip(prompt, 1, plan.longest_prompt).astype(int),
            "output": np.clip(output, 2, plan.longest_output).astype(int),
            "prompt_in_trace": trace["prompt"].to_numpy(),
        }
    )


def learned_predictor(plan: Plan, trace: pd.DataFrame) -> Any:
    """The predictor, taught by the part of the trace that is not replayed."""
    from whonext.serving.predictor import LengthBuckets

    learned = scaled(plan, trace).iloc[:TRAINING]
    return LengthBuckets.fit(learned["prompt_in_trace"], learned["output"])


def take_slice(
    plan: Plan, trace: pd.DataFrame, number: int, requests: int, measured: Mapping[str, Any]
) -> Slice:
    """The requests of a round, the same whatever the policy."""
    first = TRAINING + number * ((len(trace) - TRAINING - requests) // max(plan.rounds, 1))
    jobs = requests_of(plan, trace, first, requests)
    span = float(machine_time(jobs, measured).sum()) / plan.load
    stretch = span / (jobs["arrival"].iloc[-1] or 1.0)
    jobs["arrival"] *= stretch
    return Slice(first, float(stretch), jobs)


def machine_time(jobs: pd.DataFrame, measured: Mapping[str, Any]) -> pd.Series:
    """Seconds of the engine that each request takes, if its steps are shared by a full batch.

    Parameters
    ----------
    jobs
        Columns ``prompt`` and ``output``.
    measured
        The calibration: ``step_time`` and ``running``.
    """
    base, per_request, per_prompt_token = measured["step_time"]
    share = base / measured["running"] + per_request
    return per_prompt_token * jobs["prompt"] + share * jobs["output"]


def requests_of(plan: Plan, trace: pd.DataFrame, first: int, count: int) -> pd.DataFrame:
    """Rows of the trace, with the lengths that are run and what it does not have."""
    from whonext.serving.predictor import with_error

    jobs = scaled(plan, trace).iloc[first : first + count].reset_index(drop=True)
    jobs["arrival"] -= jobs["arrival"].iloc[0]
    shares = [each["share"] for each in CLASSES]
    draws = random_stream(plan.seed, "live classes", first).random(count)
    jobs["kind"] = np.searchsorted(np.cumsum(shares)[:-1], draws, side="right")
    jobs["weight"] = np.array([each["weight"] for each in CLASSES])[jobs["kind"]]
    jobs["size"] = jobs["output"].astype(float)
    jobs["predicted"] = learned_predictor(plan, trace).predict(jobs["prompt_in_trace"]).round(2)
    noise = random_stream(plan.seed, "live noise", first)
    jobs["noisy"] = with_error(jobs["output"], plan.sigma, noise).round(2)
    return jobs


def rows_of(jobs: pd.DataFrame) -> Iterable[Any]:
    """The rows, each with the columns as attributes."""
    return jobs.itertuples()


def variant(label: str) -> tuple[str, str]:
    """Policy and the column it is told, by label."""
    return next((policy, told) for name, policy, told in VARIANTS if name == label)


def facts_of(job: Any, told: str) -> dict[str, Any]:
    """What the scheduler is told of a request."""
    facts: dict[str, Any] = {"class": CLASSES[int(job.kind)]["name"]}
    if told == "size":
        facts["size"] = float(job.size)
    elif told != "nothing":
        facts["prediction"] = float(getattr(job, told))
    return facts


def ms(seconds: float) -> int:
    """Whole milliseconds."""
    return round(1000 * seconds)


def digits(value: float) -> float:
    """Four digits: more would be noise, and half the record."""
    return float(f"{value:.4g}") if math.isfinite(value) else value
