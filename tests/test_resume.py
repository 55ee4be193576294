"""A run that was stopped goes on where it was, and ends in the same bits."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from whonext import Exponential, JobClass, Pareto, Policy, Workload, cli, compare, simulate
from whonext.engines import queue
from whonext.results import Result
from whonext.resume import replications_kept

WORKLOAD = Workload(
    classes=[JobClass("chat", 0.7, Exponential(1)), JobClass("batch", 0.3, Pareto(2.5), 2.0)],
    load=0.7,
)
RUN = {"servers": 2, "jobs": 8_000, "replications": 4, "seed": 3, "cores": 1}


def same_bits(one: Result, other: Result) -> bool:
    """Whether all is the same but the time it took."""
    pairs = list(zip(one.tallies, other.tallies, strict=True))
    return all(
        np.array_equal(value, vars(b)[name], equal_nan=name == "work_area")
        for a, b in pairs
        for name, value in vars(a).items()
        if name != "seconds"
    )


@pytest.fixture
def stop_after(monkeypatch):
    """Ctrl-C as the replication after the first ``n`` begins."""
    real = queue.run_stream

    def arrange(n):
        begun = []

        def run_stream(*arguments):
            begun.append(1)
            if len(begun) > n:
                raise KeyboardInterrupt
            return real(*arguments)

        monkeypatch.setattr(queue, "run_stream", run_stream)
        return begun

    yield arrange
    monkeypatch.setattr(queue, "run_stream", real)


@pytest.mark.parametrize("rule", ["fcfs", "srpt", "ps"])
def test_a_resumed_run_ends_in_the_same_bits(rule, stop_after, tmp_path) -> None:
    path = tmp_path / "run"
    whole = simulate(rule, WORKLOAD, **RUN)
    stop_after(2)
    with pytest.raises(KeyboardInterrupt):
        simulate(rule, WORKLOAD, resume=path, **RUN)
    assert replications_kept(path) == 2
    begun = stop_after(2)
    resumed = simulate(rule, WORKLOAD, resume=path, **RUN)
    assert len(begun) == 2
    assert same_bits(whole, resumed)
    stop_after(0)  # all is done: nothing is run
    assert same_bits(whole, simulate(rule, WORKLOAD, resume=path, **RUN))


def test_a_stop_within_a_replication_loses_that_one_alone(monkeypatch, tmp_path) -> None:
    path = tmp_path / "run"
    run = RUN | {"engine": "reference", "jobs": 400}
    whole = simulate("srpt", WORKLOAD, **run)
    left = []

    def stop(self, n=1):
        left.append(n)
        if len(left) == 300:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("tqdm.std.tqdm.update", stop)
        with pytest.raises(KeyboardInterrupt):
            simulate("srpt", WORKLOAD, resume=path, progress=False, **run)
    assert replications_kept(path) == 1
    assert same_bits(whole, simulate("srpt", WORKLOAD, resume=path, **run))


@pytest.mark.slow
def test_more_cores_may_finish_what_one_began(stop_after, tmp_path) -> None:
    path = tmp_path / "run"
    stop_after(1)
    with pytest.raises(KeyboardInterrupt):
        simulate("sjf", WORKLOAD, resume=path, **RUN)
    stop_after(99)
    resumed = simulate("sjf", WORKLOAD, resume=path, **RUN | {"cores": 2})
    assert same_bits(simulate("sjf", WORKLOAD, **RUN), resumed)


def test_a_line_cut_short_is_done_again(tmp_path) -> None:
    path = tmp_path / "run"
    whole = simulate("fcfs", WORKLOAD, resume=path, **RUN)
    path.write_bytes(path.read_bytes()[:-200])
    assert replications_kept(path) == 3
    assert same_bits(whole, simulate("fcfs", WORKLOAD, resume=path, **RUN))
    assert replications_kept(path) == 4


def test_compare_keeps_a_file_for_each_rule(stop_after, tmp_path) -> None:
    path = tmp_path / "run"
    whole = compare(["fcfs", "sjf"], WORKLOAD, **RUN)
    stop_after(5)
    with pytest.raises(KeyboardInterrupt):
        compare(["fcfs", "sjf"], WORKLOAD, resume=path, **RUN)
    assert [replications_kept(f"{path}.{k}") for k in (1, 2)] == [4, 1]
    stop_after(99)
    resumed = compare(["fcfs", "sjf"], WORKLOAD, resume=path, **RUN)
    assert resumed.differences() == whole.differences()


# Another run's file.


class Mine(Policy):
    def __init__(self, boost: float = 1.0) -> None:
        self.boost = boost

    def key(self, jobs):
        return jobs.arrival - self.boost * jobs.kind


@pytest.mark.parametrize(
    ("policy", "workload", "changed", "says"),
    [
        ("sjf", WORKLOAD, {}, "policy 'fcfs' and not 'sjf'"),
        ("fcfs", WORKLOAD, {"seed": 4}, "seed 3 and not 4"),
        ("fcfs", WORKLOAD, {"jobs": 8_004}, "jobs 8000 and not 8004"),
        ("fcfs", WORKLOAD, {"replications": 5}, "replications 4 and not 5"),
        ("fcfs", WORKLOAD, {"warmup": 7}, "warmup 200 and not 7"),
        ("fcfs", WORKLOAD, {"servers": 3}, "servers 2 and not 3"),
        ("fcfs", WORKLOAD, {"engine": "reference"}, "engine 'queue' and not 'reference'"),
        ("fcfs", Workload(Exponential(1), load=0.7), {}, "classes"),
        ("fcfs", Workload(classes=WORKLOAD.classes, load=0.6), {}, "load 0.7 and not 0.6"),
    ],
)
def test_the_file_of_another_run_is_refused(policy, workload, changed, says, tmp_path) -> None:
    path = tmp_path / "run"
    simulate("fcfs", WORKLOAD, resume=path, **RUN)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"^resume=.*belongs to another run") as refused:
        simulate(policy, workload, resume=path, **RUN | changed)
    assert says in str(refused.value)
    assert path.read_bytes() == before


def test_a_rule_or_a_workload_that_no_text_tells_apart_is_refused(monkeypatch, tmp_path) -> None:
    path = tmp_path / "run"
    simulate(Mine(), WORKLOAD, resume=path, **RUN)
    simulate(Mine(1.0), WORKLOAD, resume=path, **RUN)
    with pytest.raises(ValueError, match="parameters of the rule"):
        simulate(Mine(2.0), WORKLOAD, resume=path, **RUN)
    other = tmp_path / "other"
    once, twice = (
        Workload(Exponential(1), load=0.5, cost=cost)
        for cost in (lambda jobs: jobs.size, lambda jobs: 2 * jobs.size)
    )
    simulate("wspt:by=cost", once, resume=other, **RUN)
    with pytest.raises(ValueError, match="first jobs"):
        simulate("wspt:by=cost", twice, resume=other, **RUN)
    monkeypatch.setattr("inspect.getsource", lambda each: "class Mine: ...")
    with pytest.raises(ValueError, match="code of the rule"):
        simulate(Mine(), WORKLOAD, resume=path, **RUN)


@pytest.mark.parametrize("text", ["arrival,size\n0,1\n", "{}\n", "[]\n", "\0\0", '{"run": 1'])
def test_a_file_of_another_kind_is_refused_and_left_as_it_is(text, tmp_path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match="is not a file that a run was kept in"):
        simulate("fcfs", WORKLOAD, resume=path, **RUN)
    assert path.read_text() == text


@pytest.mark.parametrize("settings", [{"trace": True}, {"horizon": 10.0}])
def test_a_run_in_one_piece_has_nothing_to_keep(settings, tmp_path) -> None:
    path = tmp_path / "run"
    with pytest.raises(ValueError, match="only replications can be kept"):
        simulate("fcfs", WORKLOAD, jobs=100, resume=path, **settings)
    assert not path.exists()


# The command.

WORDS = ["--load", "0.7", "--size", "exp:1", "--jobs", "8e3", "--replications", "4", "--cores", "1"]


def test_ctrl_c_says_what_is_kept_and_how_to_go_on(stop_after, capsys, tmp_path) -> None:
    path = str(tmp_path / "run")
    words = ["simulate", "sjf", *WORDS, "--json"]
    assert cli.main(words) == 0
    whole = json.loads(capsys.readouterr().out)
    stop_after(3)
    assert cli.main([*words, "--resume", path]) == 130
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("whonext: stopped; 3 of 4 parts are kept: ")
    assert printed.err.endswith(f"--resume {path}\n")
    stop_after(1)
    assert cli.main([*words, "--resume", path]) == 0
    resumed = json.loads(capsys.readouterr().out)
    for name in ("response", "waiting", "tail", "number_in_system"):
        assert resumed[name] == whole[name]


@pytest.mark.parametrize("words", [["simulate", "sjf"], ["compare", "fcfs", "sjf"]])
def test_ctrl_c_keeps_what_is_done_unasked(words, stop_after, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    stop_after(3)
    assert cli.main([*words, *WORDS]) == 130
    said = capsys.readouterr().err
    path = said.split()[-1]
    assert path.startswith(str(tmp_path))
    begun = stop_after(99)
    assert cli.main([*words, *WORDS, "--resume", path]) == 0
    assert len(begun) == (1 if words[0] == "simulate" else 5)


def test_nothing_is_left_lying_about(stop_after, capsys, monkeypatch, tmp_path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert cli.main(["simulate", "sjf", *WORDS]) == 0
    stop_after(0)
    assert cli.main(["simulate", "sjf", *WORDS]) == 130
    assert capsys.readouterr().err == "whonext: stopped\n"
    assert list(tmp_path.iterdir()) == []


def test_the_command_refuses_in_one_line(capsys, tmp_path) -> None:
    path = str(tmp_path / "run")
    assert cli.main(["simulate", "fcfs", *WORDS, "--resume", path]) == 0
    capsys.readouterr()
    for more in (["--seed", "1"], ["--horizon", "10"]):
        assert cli.main(["simulate", "fcfs", *WORDS, *more, "--resume", path]) == 2
        err = capsys.readouterr().err
        assert err.startswith("whonext: resume=")
        assert err.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize("cores", ["1", "2"])
def test_a_real_interrupt(cores, tmp_path) -> None:
    path = tmp_path / "run"
    words = ["simulate", "srpt", "--load", "0.7", "--size", "exp:1", "--jobs", "1e9"]
    words += ["--replications", "1000", "--cores", cores, "--resume", str(path)]
    running = subprocess.Popen(
        [sys.executable, "-m", "whonext", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 120
    while replications_kept(path) < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    os.killpg(running.pid, signal.SIGINT)  # as a terminal does: workers get it too
    out, err = running.communicate(timeout=120)
    assert running.returncode == 130, err
    assert out == ""
    assert err.splitlines()[-1].startswith(f"whonext: stopped; {replications_kept(path)} of 1000")
