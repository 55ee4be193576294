"""One vLLM engine for all runs of the live experiment, and what is read from it."""

from __future__ import annotations

import asyncio
import csv
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from whonext.experiments.live_requests import (
    CLASSES,
    TRAINING,
    Plan,
    Slice,
    digits,
    facts_of,
    machine_time,
    ms,
    read_trace,
    requests_of,
    rows_of,
    scaled,
    variant,
)
from whonext.workload import random_stream

__all__ = ["Session", "calibrate"]


class Session:
    """One engine for all runs, started when the first of them needs it."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.runs = 0
        self._engine: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._folder: Any = None

    def close(self) -> None:
        """End the engine's processes, and remove what it wrote."""
        if self._engine is not None:
            self._engine.shutdown()
            self._engine = None
        if self._loop is not None:
            self._loop.run_until_complete(_end_tasks())
            self._loop.close()
            asyncio.set_event_loop(None)
            self._loop = None
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def run(self, sliced: Slice, label: str, name: str) -> dict[str, Any]:
        """Replay the requests of a slice under a policy."""
        from whonext.serving.audit import admissions_out_of_order, bookkeeping_faults

        policy, told = variant(label)
        outcomes, events, steps = self.replay(
            sliced.jobs, policy, told, f"{name}-{label.replace(' ', '-')}"
        )
        failed = [outcome for outcome in outcomes if outcome.error]
        if failed:
            raise RuntimeError(f"{len(failed)} requests failed, the first: {failed[0].error}")
        short = [
            o.id for o, n in zip(outcomes, sliced.jobs["output"], strict=True) if o.tokens != n
        ]
        if short:
            raise RuntimeError(
                f"{len(short)} answers are of the wrong length, the first: {short[0]}"
            )
        if faults := bookkeeping_faults(events):
            raise RuntimeError(f"the event trace has faults, the first: {faults[0]}")
        life = _lives(events)
        order = [_short(outcome.id) for outcome in outcomes]
        ranks = _ranks(events, sliced.jobs, policy, told)
        busy = steps[steps["waiting"] > 0]
        return {
            "response": [ms(o.response) for o in outcomes],
            "ttft": [ms(o.ttft) for o in outcomes],
            "waiting": [ms(life[i]["start"] - life[i]["arrive"]) for i in order],
            "service": [ms(life[i]["finish"] - life[i]["start"]) for i in order],
            "preemptions": sum(life[i]["preempt"] for i in order),
            "steps": len(steps),
            "running": digits(busy["running"].mean() if len(busy) else steps["running"].mean()),
            "kv_usage": digits(steps["kv_usage"].mean()),
            "seconds": digits(max(o.finish for o in outcomes)),
            "late": ms(max(o.sent - o.arrival for o in outcomes)),
            "out_of_order": len(admissions_out_of_order(events, ranks)),
            "step_time": fit_step_time(steps),
        }

    def replay(
        self, jobs: pd.DataFrame, policy: str, told: str, name: str
    ) -> tuple[list[Any], list[tuple[Any, ...]], pd.DataFrame]:
        """Send requests; give outcomes, and the engine's events and steps of this run."""
        from whonext.serving.load import LoadRequest, replay

        engine, loop, folder = self._started()
        self.runs += 1
        (folder / "policy").write_text(policy + "\n", encoding="utf-8")
        tokens = random_stream(self.plan.seed, "live prompts", len(jobs))
        vocabulary = engine.model_config.get_vocab_size()
        requests = [
            LoadRequest(
                f"{name}.{row}",
                float(job.arrival),
                tokens.integers(100, vocabulary - 100, int(job.prompt)).tolist(),
                int(job.output),
                facts_of(job, told),
            )
            for row, job in enumerate(rows_of(jobs))
        ]
        outcomes = loop.run_until_complete(replay(engine, requests))
        time.sleep(0.2)  # the engine writes the last lines just after the last token
        events = _read_events(folder / "events.csv", name)
        steps = pd.read_csv(folder / "steps.csv")
        within = steps["time"].between(events[0][0], events[-1][0])
        return outcomes, events, steps[within].reset_index(drop=True)

    def _started(self) -> tuple[Any, asyncio.AbstractEventLoop, Path]:
        if self._engine is None:
            from whonext.serving.facts import ServingConfig
            from whonext.serving.model import smollm2
            from whonext.serving.server import start_engine

            plan = self.plan
            self._folder = tempfile.TemporaryDirectory(prefix="whonext-live-")
            folder = Path(self._folder.name)
            (folder / "policy").write_text("fcfs\n", encoding="utf-8")
            config = ServingConfig(
                policy_file=str(folder / "policy"),
                classes=[{"name": c["name"], "weight": c["weight"]} for c in CLASSES],
                events=str(folder / "events.csv"),
                steps=str(folder / "steps.csv"),
            )
            self._loop = asyncio.new_event_loop()
            asyncio.set_event_loop(self._loop)

            async def start() -> Any:  # the engine's front end belongs to the loop it starts in
                return start_engine(
                    smollm2(),
                    config,
                    max_num_seqs=plan.max_num_seqs,
                    max_num_batched_tokens=plan.max_num_batched_tokens,
                    max_model_len=plan.max_model_len,
                    block_size=plan.block_size,
                    num_gpu_blocks_override=plan.num_blocks,
                    enable_prefix_caching=False,
                    disable_log_stats=True,
                )

            self._engine = self._loop.run_until_complete(start())
            warm = requests_of(plan, read_trace(small=True), 0, 8).assign(arrival=0.0)
            self.replay(warm, "fcfs", "nothing", "warm")
        assert self._loop is not None
        return self._engine, self._loop, Path(self._folder.name)


async def _end_tasks() -> None:
    """End the front end's own tasks, which outlive its shutdown."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def calibrate(session: Session, plan: Plan, trace: pd.DataFrame) -> dict[str, Any]:
    """Measure what the engine does when it is never short of work: a burst, sent all at once.

    Returns
    -------
    dict
        ``requests``, ``running``, ``step_time``, ``tokens_per_second``, ``requests_per_second``,
        as :mod:`whonext.experiments.live` describes them.
    """
    burst = requests_of(plan, trace, TRAINING - plan.burst, plan.burst).assign(arrival=0.0)
    _, events, steps = session.replay(burst, "fcfs", "nothing", f"burst{session.runs}")
    full = steps[steps["waiting"] > 0]
    began, ended = events[0][0], full["time"].iloc[-1]
    measured = {"running": digits(full["running"].mean()), "step_time": fit_step_time(steps)}
    replayed = scaled(plan, trace).iloc[TRAINING:]
    # Every request in a step makes a token, but for those with a part of the prompt still to do.
    return {
        **measured,
        "requests": plan.burst,
        "tokens_per_second": digits(float(full["requests"].sum()) / (ended - began)),
        "requests_per_second": digits(1.0 / float(machine_time(replayed, measured).mean())),
    }


def _read_events(path: Path, name: str) -> list[tuple[Any, ...]]:
    """The events of the requests of a run. The engine adds a tail of its own to their names."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))[1:]
    return [
        (float(time), event, job, int(kind), int(server), int(inside))
        for time, event, job, kind, server, inside in rows
        if job.startswith(name + ".")
    ]


def _short(job: str) -> str:
    """The row in a name: ``r0-sjf.17`` or, from the engine, ``r0-sjf.17-8f3a``."""
    return job.rpartition(".")[2].partition("-")[0]


def _lives(events: Sequence[tuple[Any, ...]]) -> dict[str, dict[str, Any]]:
    """Times of arrival, first start and finish at the scheduler, and preemptions, by row."""
    lives: dict[str, dict[str, Any]] = {}
    for at, event, job, *_ in events:
        life = lives.setdefault(_short(job), {"preempt": 0})
        if event == "preempt":
            life["preempt"] += 1
        else:
            life.setdefault(event, at)
    return lives


def _ranks(
    events: Sequence[tuple[Any, ...]], jobs: pd.DataFrame, policy: str, told: str
) -> dict[str, float]:
    """The rank that each request should have had, worked out from the table."""
    rule = policy.partition(":")[0]
    length = None if told == "nothing" else jobs[told].to_numpy()
    ranks = {}
    for place, (_, event, job, *_) in enumerate(events):
        if event == "arrive":
            row = int(_short(job))
            if rule == "fcfs" or length is None:
                ranks[job] = float(place)
            else:
                ranks[job] = length[row] / (jobs["weight"][row] if rule == "wspt" else 1.0)
    return ranks


def fit_step_time(steps: pd.DataFrame) -> list[float]:
    """Seconds a step: a constant, so much a request, so much a prompt token; none negative."""
    from scipy.optimize import nnls

    took = np.diff(steps["time"].to_numpy())
    went_on = (steps["running"] + steps["waiting"]).to_numpy()[:-1] > 0
    after = steps.iloc[1:][went_on]
    design = np.column_stack(
        [np.ones(len(after)), after["requests"].to_numpy(), after["prefill_tokens"].to_numpy()]
    ).astype(float)
    fitted, _ = nnls(design, took[went_on])
    return [digits(max(value, 1e-9)) for value in fitted]
