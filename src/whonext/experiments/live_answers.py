"""What simulators say of a round of the live experiment, told only of its fcfs run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from whonext.experiments.live_requests import (
    CLASSES,
    Plan,
    Slice,
    digits,
    facts_of,
    rows_of,
    variant,
)
from whonext.workload import JobTable, Workload

__all__ = ["simulate_round"]


def _fit_service_time(jobs: pd.DataFrame, service: np.ndarray) -> np.ndarray:
    """Seconds in service: a constant, so much a prompt token, so much an output token."""
    from scipy.optimize import nnls

    design = np.column_stack([np.ones(len(jobs)), jobs["prompt"], jobs["output"]]).astype(float)
    fitted, _ = nnls(design, service)
    return fitted


def simulate_round(
    plan: Plan, sliced: Slice, runs: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, dict[str, float]]]:
    """Both simulators on a round's requests, calibrated on the round's fcfs run."""
    fcfs = runs["fcfs"]
    line = _fit_service_time(sliced.jobs, np.array(fcfs["service"]) / 1000)
    servers = max(1, round(fcfs["running"]))
    size = line[0] + line[1] * sliced.jobs["prompt"] + line[2] * sliced.jobs["output"]
    size = (size * servers / fcfs["running"]).to_numpy()
    fits = {
        "servers": servers,
        "step_time": fcfs["step_time"],
        "service_time": [digits(value) for value in line],
    }
    answers = {
        label: {
            "queue": _by_queue(sliced.jobs, size, label, servers),
            "step_clock": _by_step_clock(plan, sliced.jobs, label, fcfs["step_time"]),
        }
        for label in runs
    }
    return fits, answers


def _by_queue(jobs: pd.DataFrame, size: np.ndarray, label: str, servers: int) -> float:
    from whonext import simulate

    policy, told = variant(label)
    # What the policy is told is a length in tokens, here as there; the size is in seconds.
    told_column = size if told == "nothing" else jobs[told].to_numpy()
    table = JobTable.from_arrays(
        jobs["arrival"].to_numpy(),
        size,
        kind=jobs["kind"].to_numpy(),
        weight=jobs["weight"].to_numpy(),
        prediction=told_column,
    )
    rule = policy.replace("by=size", "by=prediction")
    result = simulate(rule, Workload.from_table(table), servers=servers, jobs=len(table))
    return digits(float(result.response.sample_mean))


def _by_step_clock(plan: Plan, jobs: pd.DataFrame, label: str, step_time: list[float]) -> float:
    from whonext.serving.step_clock import EngineShape, StepClock, StepRequest, linear_step_time

    policy, told = variant(label)
    shape = EngineShape(
        max_num_seqs=plan.max_num_seqs,
        max_num_batched_tokens=plan.max_num_batched_tokens,
        num_blocks=plan.num_blocks,
        block_size=plan.block_size,
        max_model_len=plan.max_model_len,
    )
    classes = [{"name": each["name"], "weight": each["weight"]} for each in CLASSES]
    clock = StepClock(policy, shape, classes=classes, step_time=linear_step_time(*step_time))
    run = clock.run(
        [
            StepRequest(
                str(row), float(job.arrival), int(job.prompt), int(job.output), facts_of(job, told)
            )
            for row, job in enumerate(rows_of(jobs))
        ]
    )
    responses = [run.finished[str(row)] - arrival for row, arrival in enumerate(jobs["arrival"])]
    return digits(float(np.mean(responses)))
