"""Experiments are found by name, write records, and take up where they stopped."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from whonext import experiments


@pytest.fixture
def folder(monkeypatch, tmp_path):
    monkeypatch.setenv("WHONEXT_RESULTS", str(tmp_path))
    return tmp_path


@pytest.fixture
def made_up(monkeypatch):
    """An experiment for tests alone, which counts how often each step is computed."""
    monkeypatch.setattr(experiments, "_known", experiments.registry())
    computed = []

    @experiments.experiment("made-up", seed=7)
    def made_up(small=False):
        """Show nothing."""

        def step(name):
            computed.append(name)
            if made_up.stops_at == name:
                raise KeyboardInterrupt
            return {"value": np.float64(2), "list": np.arange(3), "pair": (1, None)}

        return {name: experiments.kept(name, lambda name=name: step(name)) for name in "ab"}

    made_up.stops_at = None
    made_up.computed = computed
    return made_up


def test_a_record_says_what_made_it(folder, made_up):
    record = experiments.run("made-up")
    assert list(record) == [
        "name",
        "command",
        "seed",
        "version",
        "machine",
        "date",
        "seconds",
        "data",
    ]
    assert record["command"] == "whonext reproduce made-up"
    assert record["seed"] == 7
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", record["date"])
    assert "cores" in record["machine"]
    assert record["data"]["a"] == {"value": 2, "list": [0, 1, 2], "pair": [1, None]}
    path = experiments.save_record(record)
    assert path == folder / "made-up.json"
    assert experiments.load_record("made-up") == record


def test_a_stopped_run_takes_up_where_it_was(folder, made_up):
    made_up.stops_at = "b"
    with pytest.raises(KeyboardInterrupt):
        experiments.run("made-up")
    made_up.stops_at = None
    record = experiments.run("made-up")
    assert made_up.computed == ["a", "b", "b"]
    experiments.save_record(record)
    assert not list(folder.glob(".cache/*.json"))
    assert [path.name for path in folder.glob("*.json")] == ["made-up.json"]


def test_a_small_run_keeps_nothing(folder, made_up):
    experiments.run("made-up", small=True)
    experiments.run("made-up", small=True)
    assert made_up.computed == ["a", "b", "a", "b"]
    assert not list(folder.rglob("*.json"))


def test_steps_of_another_version_are_not_used(folder, made_up, monkeypatch):
    made_up.stops_at = "b"
    with pytest.raises(KeyboardInterrupt):
        experiments.run("made-up")
    made_up.stops_at = None
    monkeypatch.setattr("whonext.__version__", "0.0.0")
    experiments.run("made-up")
    assert made_up.computed == ["a", "b", "a", "b"]


def test_unknown_names_and_missing_records_are_named(folder):
    with pytest.raises(
        ValueError, match=r"experiment='ledger-router-pots': unknown \(did you mean"
    ):
        experiments.find("ledger-router-pots")
    with pytest.raises(ValueError, match="whonext reproduce ledger-router-post writes it"):
        experiments.load_record("ledger-router-post")


def test_a_missing_folder_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("WHONEXT_RESULTS", str(tmp_path / "none"))
    with pytest.raises(ValueError, match="WHONEXT_RESULTS"):
        experiments.results_folder()


def test_two_experiments_may_not_share_a_name(made_up):
    def other(small=False):
        """Show something else."""

    other.__module__ = "elsewhere"
    with pytest.raises(ValueError, match="is the name of two experiments"):
        experiments.experiment("made-up")(other)


def test_every_experiment_has_a_line_and_a_proper_name():
    for name, each in experiments.registry().items():
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name)
        assert each.about.endswith(".")
        assert len(each.about) <= 100


def test_records_are_written_for_people(folder):
    value = {"short": [1, 2], "long": ["word" * 5] * 12, "numbers": list(range(60))}
    text = experiments._json(value)
    assert json.loads(text) == value
    assert len(text.splitlines()) > 5
    assert '"short": [1, 2]' in text


@pytest.mark.parametrize("path", sorted(experiments.results_folder().glob("*.json")), ids=str)
def test_committed_records_are_whole(path):
    record = json.loads(path.read_text(encoding="utf-8"))
    assert record["name"] == path.stem
    assert record["name"] in experiments.registry()
    assert record["command"] == f"whonext reproduce {path.stem}"
    assert record["data"]
