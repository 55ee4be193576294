"""The command: answers on standard output, errors in one line, JSON with the promised fields."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import textwrap

import pytest

from whonext import Workload, cli, ledger
from whonext.policies import registry

MM1 = ["--load", "0.8", "--size", "exp:1"]
SHORT = ["--jobs", "2e4", "--cores", "1"]
COMMANDS = (
    "simulate",
    "theory",
    "compare",
    "policies",
    "check",
    "ledger",
    "reproduce",
    "traces",
)


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))


@pytest.fixture
def run(capsys):
    """Run the command; give its status, output and errors."""

    def call(*words):
        status = cli.main([str(word) for word in words])
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return call


@pytest.fixture
def run_json(run):
    def call(*words):
        status, out, err = run(*words, "--json")
        assert status == 0, err
        return json.loads(out, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))

    return call


@pytest.fixture
def classes_file(tmp_path):
    path = tmp_path / "classes.toml"
    path.write_text(
        textwrap.dedent(
            """
            [[class]]
            name = "chat"
            share = 0.8
            weight = 4
            size = "exp:1"

            [[class]]
            name = "batch"
            share = 0.2
            size = "lognormal:mean=3,sigma=1"
            """
        )
    )
    return path


def write_policy(tmp_path, body, module="mine"):
    sys.modules.pop(module, None)
    text = "from whonext import Policy\n\n\nclass Mine(Policy):\n" + textwrap.indent(body, "    ")
    (tmp_path / f"{module}.py").write_text(text)


# simulate


def test_simulate_json_has_the_promised_fields(run_json):
    found = run_json("simulate", "fcfs", *MM1, "--servers", 1, *SHORT, "--seed", 5)
    assert {
        "policy",
        "servers",
        "load",
        "realised_load",
        "size",
        "jobs",
        "seed",
        "seconds",
        "jobs_per_second",
        "response",
        "waiting",
        "number_in_system",
        "per_class",
        "tail",
    } <= set(found)
    for measure in ("response", "waiting"):
        assert {"mean", "ci95", "p50", "p90", "p99", "p999", "reason"} <= set(found[measure])
    assert found["policy"] == "fcfs"
    assert found["size"] == "exp:mean=1"
    assert (found["servers"], found["jobs"], found["seed"]) == (1, 20_000, 5)
    assert {"t", "probability", "se"} == set(found["tail"][0])
    assert found["response"]["ci95"][0] < found["response"]["mean"] < found["response"]["ci95"][1]


def test_simulate_covers_the_exact_value(run_json):
    found = run_json("simulate", "fcfs", *MM1, "--servers", 1, "--jobs", "1e6", "--cores", 1)
    low, high = found["response"]["ci95"]
    half = (high - low) / 2
    assert low - half < 5 < high + half  # twice the 95 % interval: wrong once in 1e3


def test_null_comes_with_a_reason(run_json):
    found = run_json("simulate", "fcfs", "--load", 0.8, "--size", "pareto:alpha=1.5", *SHORT)
    assert found["response"]["mean"] is None
    assert found["response"]["ci95"] is None
    assert "infinite" in found["response"]["reason"]
    assert found["response"]["p99"] > 0


def test_simulate_classes(run_json, classes_file):
    found = run_json("simulate", "c-mu", "--load", 0.7, "--classes", classes_file, *SHORT)
    assert set(found["per_class"]) == {"chat", "batch"}
    assert found["per_class"]["chat"]["response"]["mean"] < found["response"]["mean"]


def test_simulate_prints_a_table(run, classes_file):
    status, out, err = run("simulate", "wspt", "--load", 0.7, "--classes", classes_file, *SHORT)
    assert (status, err) == (0, "")
    assert "wspt on 1 server at load 0.7" in out
    assert "chat: response" in out
    assert "weighted cost" in out
    status, out, _ = run("simulate", "fcfs", "--load", 0.5, "--size", "pareto:alpha=1.5", *SHORT)
    assert "E[W] is infinite" in out
    assert out.count("waiting, slowdown: E[W] is infinite") == 1  # a reason is said once


def test_a_seed_repeats_and_another_differs(run_json):
    first, again, other = (
        run_json("simulate", "sjf", *MM1, *SHORT, "--seed", seed)["response"] for seed in (1, 1, 2)
    )
    assert first == again
    assert first["mean"] != other["mean"]


def test_simulate_a_trace_of_ones_own(run_json, run, tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("arrival,size,kind\n0,2,chat\n1,1,batch\n1.5,3,chat\n")
    found = run_json("simulate", "fcfs", "--trace", path)
    assert found["jobs"] == 3
    assert found["response"]["mean"] == pytest.approx((2 + 2 + 4.5) / 3)
    assert found["per_class"]["batch"]["response"]["mean"] == 2
    status, out, _ = run("compare", "fcfs", "sjf", "--trace", path)
    assert status == 0
    assert "the same for every rule" in out


def test_compare_on_a_trace_of_ones_own(run_json, run, tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("arrival,size,kind\n0,4,batch\n1,1,chat\n1.5,2,chat\n2,1,batch\n")
    words = ["compare", "fcfs", "sjf", "srpt", "--trace", path]
    found = run_json(*words)
    means = [each["response"]["mean"] for each in found["results"].values()]
    assert means == [4.875, 4.625, 3.375]
    assert [each["mean"] for each in found["differences"].values()] == [-0.25, -1.5]
    assert found["differences"]["sjf"]["ci95"] is None
    assert "fixed" in found["differences"]["sjf"]["reason"]
    chat = found["results"]["srpt"]["per_class"]["chat"]["response"]["mean"]
    assert chat == (1 + 3.5) / 2
    _, out, _ = run(*words)
    assert "4 jobs, the same for every rule" in out
    stretched = run_json(*words, "--load", 0.3, "--servers", 2)
    assert stretched["results"]["fcfs"]["load"] == pytest.approx(0.3)
    status, _, err = run(*words, "--resume", "kept")
    assert status == 2
    assert "run in one piece" in err


def test_an_overload_needs_a_horizon(run_json):
    found = run_json("simulate", "fcfs", "--load", 1.2, "--size", "exp:1", "--horizon", 500)
    assert found["left_inside"] > 0


def test_a_rule_of_ones_own(run_json, tmp_path):
    write_policy(
        tmp_path, "needs = frozenset({'size'})\n\ndef key(self, jobs):\n    return jobs.size\n"
    )
    mine = run_json("simulate", "mine:Mine", *MM1, *SHORT)
    sjf = run_json("simulate", "sjf", *MM1, *SHORT)
    assert mine["policy"] == "mine:Mine"
    assert mine["response"] == sjf["response"]


# theory and compare


def test_theory_json(run_json, classes_file):
    found = run_json("theory", "fcfs", *MM1)
    assert found["response"]["mean"] == pytest.approx(5)
    assert found["waiting"]["mean"] == pytest.approx(4)
    assert found["reason"] is None
    found = run_json("theory", "c-mu", "--load", 0.7, "--classes", classes_file)
    assert set(found["per_class"]) == {"chat", "batch"}
    found = run_json("theory", "fcfs", "--load", 0.8, "--size", "pareto:alpha=1.5")
    assert found["response"]["mean"] is None
    assert "second moment" in found["response"]["reason"]


def test_theory_prints_its_source_or_its_reason(run, classes_file):
    _, out, _ = run("theory", "srpt", *MM1)
    assert "2.3528" in out
    assert "Schrage and Miller (1966)" in out
    _, out, _ = run("theory", "sjf", *MM1, "--servers", 3)
    assert "no value: no closed form is known for sjf on 3 servers" in out
    _, out, _ = run("theory", "priority", "--arrival-rate", 0.3, "--classes", classes_file)
    assert "batch" in out


def test_compare(run, run_json):
    status, out, _ = run("compare", "fcfs", "sjf", "lcfs", *MM1, *SHORT)
    assert status == 0
    assert "less fcfs" in out
    found = run_json("compare", "fcfs", "sjf", *MM1, *SHORT)
    assert set(found["results"]) == {"fcfs", "sjf"}
    assert found["differences"]["sjf"]["mean"] < 0


# policies, check, ledger, reproduce, traces


def test_policies(run, run_json):
    _, out, _ = run("policies")
    assert all(name in out for name in registry)
    found = run_json("policies")
    assert [line["name"] for line in found] == list(registry)
    assert all(line["meaning"].endswith(".") for line in found)


def test_check(run, run_json, tmp_path):
    status, out, _ = run("check", "sjf", "--tables", 3)
    assert status == 0
    assert out.startswith("sjf: fit for every engine")
    write_policy(tmp_path, "def key(self, jobs):\n    return jobs.size\n", "peeks")
    status, out, err = run("check", "peeks:Mine", "--tables", 3)
    assert status == 1
    assert "FAIL" in out
    assert "does not declare it" in out
    assert err == ""
    assert run_json("check", "fcfs", "--tables", 2)["passed"] is True


def test_ledger(run, run_json):
    found = run_json("ledger")
    assert all(tuple(row) == ledger.FIELDS for row in found)
    _, out, _ = run("ledger")
    assert found[0]["id"] in out


def test_reproduce(run, monkeypatch, tmp_path):
    monkeypatch.setenv("WHONEXT_RESULTS", str(tmp_path))
    from whonext import experiments

    monkeypatch.setattr(experiments, "_known", experiments.registry())

    @experiments.experiment("nothing-much")
    def nothing_much(small=False):
        """Show nothing."""
        return {"small": small}

    status, out, _ = run("reproduce", "--list")
    assert status == 0
    assert "Show nothing." in out
    assert run("reproduce")[1] == out
    status, out, _ = run("reproduce", "nothing-much", "--small")
    assert json.loads(out)["data"] == {"small": True}
    assert not (tmp_path / "nothing-much.json").exists()
    status, out, _ = run("reproduce", "nothing-much")
    assert "nothing-much: 0 s, written to" in out
    assert json.loads((tmp_path / "nothing-much.json").read_text())["data"] == {"small": False}


def test_traces(run, run_json):
    found = run_json("traces")
    assert {"name", "requests", "licence", "source"} <= set(found[0])
    assert found[0]["name"] in run("traces")[1]


# Bad input: one line, status 2.


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--load", "1.2", "--size", "exp:1"], "load=1.2: an M/G/1 queue is stable only below 1"),
        (["--load", "nan", "--size", "exp:1"], "load=nan"),
        (["--load", "-1", "--size", "exp:1"], "load=-1"),
        (["--load", "high", "--size", "exp:1"], "'high' is not a number"),
        (["--load", "0.8", "--size", "zipf:1"], "unknown law 'zipf'"),
        (["--load", "0.8", "--size", "exp:-1"], "mean=-1"),
        (["--load", "0.8", "--size", "pareto:alpha=0.9"], "alpha=0.9"),
        (["--load", "0.8", "--size", "exp:mean=x"], "is not a number"),
        (["--load", "0.8", "--size", "empirical:none.txt"], "none.txt"),
        (["--load", "0.8"], "exactly one of --size, --classes, --trace; none given"),
        (["--load", "0.8", "--size", "exp:1", "--classes", "x"], "--size and --classes given"),
        (["--load", "0.8", "--arrival-rate", "1", "--size", "exp:1"], "give one of the two"),
        (["--size", "exp:1"], "needs a load"),
        ([*MM1, "--servers", "0"], "servers=0"),
        ([*MM1, "--servers", "1.5"], "'1.5' is not a whole number"),
        ([*MM1, "--jobs", "inf"], "'inf' is not a whole number"),
        ([*MM1, "--jobs", "0"], "jobs=0"),
        ([*MM1, "--jobs", "5"], "jobs=5"),
        ([*MM1, "--seed", "-1"], "seed=-1"),
        ([*MM1, "--replications", "0"], "replications=0"),
        ([*MM1, "--jobs", "1000", "--warmup", "1000"], "warmup=1000"),
        ([*MM1, "--engine", "warp"], "engine='warp'"),
        ([*MM1, "--arrivals", "hourly"], "arrivals='hourly'"),
        ([*MM1, "--prediction", "psychic"], "prediction='psychic'"),
        ([*MM1, "--cost", "free"], "cost='free'"),
        ([*MM1, "--horizon", "-5"], "horizon=-5"),
        (["--load", "0.8", "--classes", "none.toml"], "none.toml"),
        (["--trace", "none.csv"], "none.csv"),
        ([*MM1, "--frobnicate"], "--frobnicate"),
    ],
    ids=" ".join,
)
def test_bad_words_are_answered_in_one_line(run, words, says):
    words = ["simulate", "fcfs", *words]
    status, out, err = run(*words)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert says in err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["theory", "fcfs", "--load", "1", "--size", "exp:1"], "load=1"),
        (["theory", "fcsf", *MM1], "did you mean 'fcfs'?"),
        (["simulate", "sjf:by=guess", *MM1], "by='guess'"),
        (["simulate", "sjf:speed=2", *MM1], "no parameter 'speed'"),
        (["compare", "fcfs", *MM1], "at least two different rules"),
        (["compare", "fcfs", "fcfs", *MM1], "two different rules"),
        (["simulate", "nowhere:Policy", *MM1], "importing 'nowhere' failed"),
        (["check", "fcsf"], "did you mean"),
        (["check", "fcfs", "--tables", "0"], "tables=0"),
        (["reproduce", "nothing"], "experiment='nothing': unknown"),
        (["frobnicate"], "invalid choice: 'frobnicate'"),
        ([], "COMMAND"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_bad_commands_are_answered_in_one_line(run, words, says):
    status, out, err = run(*words)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert says in err


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("arrival,size\n0,1\n1", "line 3"),
        ("arrival,size\n0,1\n1,", "line 3"),
        ("arrival,size\n0,1\n1,x\n", "line 3"),
        ("arrival,size\n5,1\n1,1\n", "arrival"),
        ("arrival\n1\n", "size"),
        ("", "mine.csv"),
    ],
)
def test_a_broken_trace_is_answered_in_one_line(run, tmp_path, text, says):
    path = tmp_path / "mine.csv"
    path.write_text(text)
    status, out, err = run("simulate", "fcfs", "--trace", path)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert says in err


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("def key(self, jobs):\n    return 3.0\n", "one number a job"),
        ("def key(self, jobs):\n    return jobs.arrival[:-1]\n", "shape"),
        ("def key(self, jobs):\n    return jobs.size\n", "does not declare it"),
        ("def key(self, jobs):\n    return jobs.arrival / 0\n", "finite number"),
        ("def key(self, jobs):\n    return jobs.arrival + unknown\n", "broken.py, line 6"),
        ("def allocate(self, jobs, servers, now):\n    return {}, float('inf')\n", "unserved"),
        ("raise KeyError('oh')\n", "importing 'broken' failed"),
        ("def key(self, jobs)\n", "importing 'broken' failed"),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_broken_rule_is_answered_in_one_line(run, tmp_path, body, says):
    write_policy(tmp_path, body, "broken")
    status, out, err = run("simulate", "broken:Mine", *MM1, "--jobs", "200", "--cores", 1)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert says in err


def test_a_broken_classes_file_is_answered_in_one_line(run, classes_file):
    classes_file.write_text(classes_file.read_text().replace("share = 0.8", "share = 0.9"))
    status, _, err = run("simulate", "fcfs", "--load", 0.7, "--classes", classes_file)
    assert status == 2
    assert err.count("\n") == 1
    assert "share=1.1" in err


# Stopping, and starting.


def test_ctrl_c_is_one_line(run, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Workload, "blocks", stop)
    status, out, err = run("simulate", "fcfs", *MM1, *SHORT)
    assert (status, out, err) == (130, "", "whonext: stopped\n")


def test_faults_of_our_own_are_not_dressed_up(monkeypatch):
    monkeypatch.setattr(Workload, "blocks", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        cli.main(["simulate", "fcfs", *MM1, *SHORT])


def test_help_names_every_command(capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(["--help"])
    assert stop.value.code == 0
    printed = capsys.readouterr().out
    for word in COMMANDS:
        assert f"    {word}" in printed
        with pytest.raises(SystemExit):
            cli.main([word, "--help"])
        assert "usage: whonext" in capsys.readouterr().out


def test_help_waits_for_nothing_heavy():
    heavy = "numba, pandas, numpy, scipy, simpy, vllm, torch, altair"
    code = (
        "import sys\nfrom whonext import cli\ntry:\n    cli.main(['--help'])\nexcept SystemExit:\n"
        f"    pass\nprint([m for m in {heavy.split(', ')!r} if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"


def test_the_module_is_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "whonext", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("whonext ")
    done = subprocess.run(
        [sys.executable, "-m", "whonext", "theory", "fcfs", "--load", "2", "--size", "exp:1"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1


def test_a_closed_pipe_is_no_fault():
    command = f"{sys.executable} -m whonext policies | head -n 1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert not math.isnan(done.returncode)
