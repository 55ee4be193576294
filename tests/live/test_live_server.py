"""The HTTP server with our scheduler in it answers clients that know nothing of it.

One server is started for all tests here, on the loopback, with the real small model.
"""

from __future__ import annotations

import asyncio
import contextlib
import csv
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import openai
import psutil
import pytest

from whonext.serving.facts import ServingConfig
from whonext.serving.load import LoadRequest, replay_http
from whonext.serving.model import smollm2
from whonext.serving.server import CheckFacts, Server, engine_arguments, main

NAME = "smol"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("server")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    classes = folder / "classes.toml"
    classes.write_text(
        '[[class]]\nname = "chat"\nshare = 0.5\nsize = "exp:20"\nweight = 4\n'
        '[[class]]\nname = "batch"\nshare = 0.5\nsize = "exp:200"\n'
    )
    arguments = ["--classes", str(classes), "--events", str(folder / "events.csv")]
    arguments += ["--served-model-name", NAME, "--max-model-len", "512", "--enforce-eager"]
    arguments += ["--max-num-seqs", "1", "--no-enable-prefix-caching"]
    with Server(smollm2(), "sjf:by=prediction", arguments) as started:
        yield started


@pytest.fixture
def client(server: Server) -> openai.OpenAI:
    return openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0, timeout=120)


QUESTION = [{"role": "user", "content": "What is the capital of France?"}]


def test_an_unmodified_client_is_answered(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(
        model=NAME, messages=QUESTION, max_tokens=40, temperature=0
    )
    assert "Paris" in answer.choices[0].message.content
    assert answer.choices[0].finish_reason == "stop"


def test_a_client_that_knows_more_says_so(client: openai.OpenAI) -> None:
    facts = {"class": "chat", "prediction": 9, "weight": 2.5}
    answer = client.chat.completions.create(
        model=NAME, messages=QUESTION, max_tokens=40, extra_body={"vllm_xargs": facts}
    )
    assert answer.usage.completion_tokens > 0


@pytest.mark.parametrize(
    ("facts", "line"),
    [
        ({"prediction": -1}, "prediction=-1: a finite number above 0"),
        ({"class": "nobody"}, "class='nobody': no such class"),
        ({"weight": "heavy"}, "weight='heavy': a finite number above 0"),
    ],
)
def test_bad_facts_are_answered_by_400_and_one_line(
    client: openai.OpenAI, facts: dict, line: str
) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        client.completions.create(
            model=NAME, prompt="Once", max_tokens=2, extra_body={"vllm_xargs": facts}
        )
    message = refused.value.body["message"]
    assert message.startswith(line)
    assert "\n" not in message
    assert client.completions.create(model=NAME, prompt="Once", max_tokens=2).choices


def test_the_order_over_http_is_the_policys(server: Server, folder: Path) -> None:
    generator = np.random.default_rng(3)
    lengths = [40, *generator.permutation(np.arange(2, 12)).tolist()]
    requests = [
        LoadRequest(f"q{n}", 0.0 if n == 0 else 0.3, [11, 12, 13], length, {"prediction": length})
        for n, length in enumerate(lengths)
    ]
    seen = _events(folder)
    outcomes = asyncio.run(replay_http(server.url, NAME, requests))
    assert [outcome.error for outcome in outcomes] == [""] * len(requests)
    assert [outcome.tokens for outcome in outcomes] == lengths
    assert all(o.arrival <= o.sent <= o.first_token <= o.finish for o in outcomes)
    # One runs at a time. Which came while the first was running is the machine's affair; that
    # each start was the shortest of those there can be read in the trace.
    events = _events(folder)[len(seen) :]
    finished = [outcome.id for outcome in sorted(outcomes, key=lambda o: o.finish)]
    assert finished[0] == "q0"
    assert [event for event, _ in events].count("start") == len(requests)
    waiting_all = all(event == "arrive" for event, _ in events[2 : len(requests) + 1])
    if waiting_all:
        by_length = sorted(range(1, len(lengths)), key=lambda n: lengths[n])
        assert finished[1:] == [f"q{n}" for n in by_length]


def _events(folder: Path) -> list[tuple[str, str]]:
    with (folder / "events.csv").open(newline="") as file:
        return [(row["event"], row["job"]) for row in csv.DictReader(file)]


def test_vllms_own_benchmark_is_answered(server: Server, tmp_path: Path) -> None:
    code = (
        "from vllm.utils.argparse_utils import FlexibleArgumentParser as Parser\n"
        "from vllm.benchmarks.serve import add_cli_args, main\n"
        "parser = Parser(); add_cli_args(parser); main(parser.parse_args())"
    )
    options = {
        "--base-url": server.url,
        "--model": NAME,
        "--tokenizer": str(smollm2()),
        "--dataset-name": "random",
        "--random-input-len": "8",
        "--random-output-len": "4",
        "--num-prompts": "8",
        "--request-rate": "20",
        "--result-dir": str(tmp_path),
        "--result-filename": "bench.json",
    }
    command = [sys.executable, "-c", code, "--save-result"]
    command += [part for pair in options.items() for part in pair]
    done = subprocess.run(
        command,
        env={**os.environ, "VLLM_PLUGINS": ""},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    result = json.loads((tmp_path / "bench.json").read_text())
    assert result["completed"] == 8


def test_no_process_outlives_the_server(server: Server) -> None:
    """Runs last: it ends the server."""
    assert server._process is not None
    group = server._process.pid
    assert len(_members(group)) >= 2  # the front end and the engine
    server.__exit__()
    until = time.monotonic() + 20
    while _members(group) and time.monotonic() < until:
        time.sleep(0.2)
    assert _members(group) == []


def _members(group: int) -> list[int]:
    """Processes of a group that still run; those that wait to be buried do not."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, ProcessLookupError):
            if os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
    return found


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--model", "nowhere"], "model='nowhere': no model folder"),
        (["--model", "MODEL", "--policy", "sfj"], "policy='sfj': unknown (did you mean 'sjf'?)"),
        (["--model", "MODEL", "--cost", "x"], "cost='x': one of"),
        (["--model", "MODEL", "--classes", "nowhere.toml"], "nowhere.toml"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(
    arguments: list[str], line: str, capsys: pytest.CaptureFixture
) -> None:
    arguments = [str(smollm2()) if each == "MODEL" else each for each in arguments]
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert line in said
    assert said.count("\n") == 1


def test_a_bad_policy_never_reaches_vllm() -> None:
    with pytest.raises(ValueError, match="policy='sfj': unknown"):
        engine_arguments(smollm2(), ServingConfig(policy="sfj"))
    assert "scheduler_cls" not in engine_arguments(smollm2(), None)


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        (b"", None),
        (b"[1, 2]", None),
        (b"{not json", None),
        (b'{"vllm_xargs": 3}', None),
        (b'{"vllm_xargs": {"prediction": 3, "other": "x"}}', None),
        (b'{"vllm_xargs": {"prediction": NaN}}', "prediction=nan: a finite number above 0"),
    ],
)
def test_only_facts_are_judged_by_the_middleware(body: bytes, complaint: str | None) -> None:
    assert CheckFacts(None, ServingConfig()).complaint(body) == complaint
