"""The live experiment: a smoke run in a real engine, and the sums in its record."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

from whonext import experiments
from whonext.experiments import live_requests as requests
from whonext.experiments.live_answers import simulate_round
from whonext.experiments.live_record import Round, make_record
from whonext.experiments.live_session import calibrate, fit_step_time
from whonext.serving.scheduler import EVENT_COLUMNS, STEP_COLUMNS

PLAN = requests.Plan(rounds=2, requests=60, labels=("fcfs", "sjf", "wspt predicted"))
MEASURED = {
    "requests": 80,
    "running": 5.0,
    "step_time": [0.02, 0.002, 0.0015],
    "tokens_per_second": 100.0,
    "requests_per_second": 5.0,
}


@pytest.fixture(scope="module")
def trace() -> pd.DataFrame:
    return requests.read_trace(small=True)


@pytest.fixture(scope="module")
def smoke() -> dict[str, Any]:
    """40 requests under each of two policies, answered by vLLM with the real small model."""
    return experiments.run("live", small=True)


def test_every_request_of_the_smoke_run_is_answered_in_the_policys_order(
    smoke: dict[str, Any],
) -> None:
    (one,) = smoke["data"]["rounds"]
    assert sorted(one["runs"]) == sorted(one["order"]) == ["fcfs", "wspt predicted"]
    for run in one["runs"].values():
        for measure in ("response", "ttft", "waiting"):
            assert len(run[measure]) == 40
        assert all(0 <= w <= t <= r for w, t, r in _columns(run))
        assert run["out_of_order"] == 0
        assert run["steps"] > 0
        assert 0 < run["kv_usage"] <= 1


def _columns(run: dict[str, Any]) -> Any:
    # The client's clock and the scheduler's differ by the way between them, so 5 ms are allowed.
    return zip(
        [max(0, value - 5) for value in run["waiting"]], run["ttft"], run["response"], strict=True
    )


def test_the_record_of_the_smoke_run_is_complete(smoke: dict[str, Any]) -> None:
    data = json.loads(json.dumps(smoke["data"], allow_nan=False))
    assert _fields(data) == _fields(_made_up_record(requests.read_trace(small=True)))
    assert data["about"]["vllm"].startswith("vllm")
    assert data["calibration"]["tokens_per_second"] > 0
    for policy in data["policies"].values():
        assert policy["response"]["ci95"][0] <= policy["response"]["mean"]
        assert policy["simulated"]["queue"] > 0
        assert policy["simulated"]["step_clock"] > 0


def _fields(value: Any, path: str = "") -> set[str]:
    """The fields of a record, with a star in the place of policies and of rows."""
    if isinstance(value, dict):
        return set().union(
            *(_fields(v, f"{path}.{'*' if k in VARIANTS else k}") for k, v in value.items())
        )
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return set().union(*(_fields(each, f"{path}.*") for each in value))
    return {path}


VARIANTS = {label for label, _, _ in requests.VARIANTS}


# Without an engine: rounds whose every time is made up, so that sums can be checked.


def _made_up_run(jobs: pd.DataFrame, speed: float) -> dict[str, Any]:
    count = len(jobs)
    waiting = (np.arange(count) % 7) * 100
    service = (jobs["output"] * 50 * speed).astype(int)
    return {
        "response": (waiting + service).tolist(),
        "ttft": (waiting + 60).tolist(),
        "waiting": waiting.tolist(),
        "service": service.tolist(),
        "preemptions": 2,
        "steps": 500,
        "running": 6.4,
        "kv_usage": 0.8,
        "seconds": 40.0,
        "late": 3,
        "out_of_order": 0,
        "step_time": [0.03, 0.002, 0.004],
    }


def _made_up_rounds(trace: pd.DataFrame) -> list[Round]:
    rounds = []
    for number in range(PLAN.rounds):
        sliced = requests.take_slice(PLAN, trace, number, 60, MEASURED)
        speeds = {"fcfs": 1.0, "sjf": 0.6, "wspt predicted": 0.8}
        runs = {label: _made_up_run(sliced.jobs, speed) for label, speed in speeds.items()}
        rounds.append(Round(sliced, PLAN.labels, runs, MEASURED))
    return rounds


def _made_up_record(trace: pd.DataFrame) -> dict[str, Any]:
    return make_record(PLAN, trace, _made_up_rounds(trace))


def test_sums_and_intervals(trace: pd.DataFrame) -> None:
    rounds = _made_up_rounds(trace)
    data = _made_up_record(trace)
    responses = np.concatenate([each.runs["sjf"]["response"] for each in rounds]) / 1000
    base = np.concatenate([each.runs["fcfs"]["response"] for each in rounds]) / 1000
    weight = np.concatenate([each.sliced.jobs["weight"] for each in rounds])
    sjf = data["policies"]["sjf"]
    assert sjf["response"]["mean"] == pytest.approx(responses.mean(), rel=1e-3)
    assert sjf["response"]["p99"] == pytest.approx(np.quantile(responses, 0.99), rel=1e-3)
    assert sjf["weighted_response"]["mean"] == pytest.approx(
        np.average(responses, weights=weight), rel=1e-3
    )
    against = sjf["against_fcfs"]["response"]
    assert against["mean"] == pytest.approx((responses - base).mean(), rel=1e-3)
    assert against["ci95"][0] < against["mean"] < against["ci95"][1] < 0
    assert sjf["against_fcfs"]["waiting"] == {"mean": 0, "ci95": [0, 0]}
    assert data["policies"]["fcfs"]["against_fcfs"] is None
    assert sjf["requests"] == 120
    assert sjf["preemptions"] == 4


def test_slices_are_the_same_for_all_and_apart_from_what_was_learned(trace: pd.DataFrame) -> None:
    slices = [requests.take_slice(PLAN, trace, number, 60, MEASURED) for number in range(2)]
    again = requests.take_slice(PLAN, trace, 1, 60, MEASURED)
    pd.testing.assert_frame_equal(slices[1].jobs, again.jobs)
    assert slices[0].first >= requests.TRAINING
    assert slices[1].first >= slices[0].first + 60
    for each in slices:
        jobs = each.jobs
        seconds = 0.0015 * jobs["prompt"].sum() + (0.02 / 5 + 0.002) * jobs["output"].sum()
        assert each.span == pytest.approx(seconds / PLAN.load)
        assert jobs["arrival"].is_monotonic_increasing
        assert (jobs["prompt"] + jobs["output"]).max() <= PLAN.max_model_len
        room = (PLAN.num_blocks - 1) * PLAN.block_size
        assert (jobs["prompt"] + jobs["output"]).max() <= room
        assert set(jobs["kind"]) == {0, 1, 2}


def test_the_step_time_is_found() -> None:
    generator = np.random.default_rng(2)
    count = 200
    took = np.zeros(count)
    steps = pd.DataFrame(
        {
            "requests": generator.integers(1, 9, count),
            "prefill_tokens": generator.integers(0, 3, count) * 20,
            "running": 4,
            "waiting": 2,
        }
    )
    took = 0.03 + 0.002 * steps["requests"] + 0.004 * steps["prefill_tokens"]
    steps["time"] = np.cumsum(took)
    steps.loc[50, ["running", "waiting"]] = 0  # then the engine idles, which is no step
    steps.loc[51:, "time"] += 30
    assert fit_step_time(steps) == pytest.approx([0.03, 0.002, 0.004], rel=1e-3)


def test_calibration_counts_only_the_time_when_someone_waits(trace: pd.DataFrame) -> None:
    class Session:
        runs = 0

        def replay(self, jobs: pd.DataFrame, *_: Any) -> Any:
            events = [(10.0, "arrive", "a", 0, 0, 1), (99.0, "finish", "a", 0, 0, 0)]
            assert len(events[0]) == len(EVENT_COLUMNS)
            rows = [(10.0 + n, 8, 8, 0, 5, 8, 0.9) for n in range(1, 41)]
            rows += [(50.0 + n, 2, 2, 0, 0, 2, 0.2) for n in range(1, 41)]
            return [], events, pd.DataFrame(rows, columns=list(STEP_COLUMNS))

    plan = requests.Plan(budget=1000, rounds=5)
    measured = calibrate(Session(), plan, trace)  # type: ignore[arg-type]
    assert measured["tokens_per_second"] == 8.0
    assert measured["running"] == 8
    assert plan.least <= plan.requests_at(measured["requests_per_second"]) <= plan.most
    assert requests.Plan(requests=7).requests_at(5.0) == 7


def test_simulators_put_short_jobs_first_too(trace: pd.DataFrame) -> None:
    one = _made_up_rounds(trace)[0]
    fits, answers = simulate_round(PLAN, one.sliced, one.runs)
    assert fits["servers"] == 6
    for how in ("queue", "step_clock"):
        assert answers["sjf"][how] < answers["fcfs"][how]


def test_the_committed_record_adds_up() -> None:
    record = experiments.load_record("live")
    data = record["data"]
    assert record["command"] == "whonext reproduce live"
    assert len(data["rounds"]) >= 4
    for label, summary in data["policies"].items():
        runs = [one["runs"][label] for one in data["rounds"]]
        responses = np.concatenate([run["response"] for run in runs]) / 1000
        assert summary["requests"] == len(responses) >= 400
        assert summary["response"]["mean"] == pytest.approx(responses.mean(), rel=1e-3)
        assert summary["response"]["p99"] == pytest.approx(np.quantile(responses, 0.99), rel=1e-3)
        assert summary["preemptions"] == sum(run["preemptions"] for run in runs)
        assert all(run["out_of_order"] == 0 for run in runs)
    plan = {**data["plan"], "labels": tuple(data["plan"]["labels"])}
    shape = requests.Plan(**plan)
    if data["about"]["trace"]["origin"] == "synthetic":
        return
    for one in data["rounds"]:  # the slices are cut today as they were then
        assert max(one["prompt"]) <= shape.longest_prompt
        assert len(one["arrival"]) == data["plan"]["requests"]
