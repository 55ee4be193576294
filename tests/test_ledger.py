"""The ledger says what its record says, and a verdict does not change unnoticed."""

from __future__ import annotations

import json

import pytest

from whonext import experiments, ledger
from whonext.experiments.router_post import PUBLISHED

VERDICTS = {"reproduced", "within noise", "differs", "cannot be reproduced here"}


@pytest.fixture(scope="module")
def rows():
    return ledger.rows()


@pytest.fixture(scope="module")
def again():
    """The experiment, run small."""
    return experiments.run("ledger-router-post", small=True)


def test_every_row_has_every_field_and_plain_values(rows):
    for row in rows:
        assert tuple(row) == ledger.FIELDS
        assert row["verdict"] in VERDICTS
        assert row["reason"]
        assert row["ci95"] is None or row["ci95"][0] <= row["ours"] <= row["ci95"][1]
    assert json.loads(json.dumps(rows, allow_nan=False)) == rows


def test_ids_are_words_and_unique(rows):
    ids = [row["id"] for row in rows]
    assert len(set(ids)) == len(ids)
    assert all(" " not in name and name == name.lower() for name in ids)


def test_every_published_number_has_a_row(rows):
    numbers = [float(text) for each in PUBLISHED.values() for text in each.values()]
    assert [row["published"] for row in rows[: len(numbers)]] == numbers


def test_no_verdict_changes_when_the_experiment_runs_again(rows, again):
    """Small: few runs, wide intervals, the same verdicts."""
    verdicts = {row["id"]: row["verdict"] for row in ledger.rows({"ledger-router-post": again})}
    assert verdicts == {row["id"]: row["verdict"] for row in rows}


def same_shape(small, full):
    """Whether two records have the same names and kinds of values, lists by their first element."""
    if isinstance(small, dict):
        assert list(small) == list(full)
        return all(same_shape(small[name], full[name]) for name in small)
    if isinstance(small, list):
        return not small or not full or same_shape(small[0], full[0])
    return isinstance(small, int | float) == isinstance(full, int | float)


def test_a_small_run_has_the_shape_of_the_record(again):
    assert same_shape(again["data"], experiments.load_record("ledger-router-post")["data"])


def test_exact_values_lie_in_the_intervals(rows):
    """Jointly: 12 means with an exact value, each within five standard errors."""
    data = experiments.load_record("ledger-router-post")["data"]
    checked = 0
    for rule, exact in data["exact"].items():
        for statistic in set(exact) - {"p99"}:
            low, high = data["figures"][rule][statistic]["ci95"]
            centre, half = (low + high) / 2, (high - low) / 2
            assert abs(centre - exact[statistic]) <= 2.5 * half, (rule, statistic)
            checked += 1
    assert checked == 20


def test_the_spread_taken_is_one_that_fits(rows):
    found = experiments.load_record("ledger-router-post")["data"]["inference"]
    outside = {each["sigma"]: len(each["outside"]) for each in found["tried"]}
    assert outside[1.1] == 0
    assert outside[1.0] > 3


def test_judging_by_the_digits_printed():
    figure = {"mean": 20.04, "ci95": [20.0, 20.08], "one_run": [17.0, 23.0]}
    assert ledger._judge("20.0", figure) == "reproduced"
    assert ledger._judge("20.04", figure) == "within noise"  # not known to that digit
    assert ledger._judge("20.2", figure) == "within noise"
    assert ledger._judge("24", figure) == "differs"


def test_tables_of_it(rows):
    frame = ledger.to_frame()
    assert list(frame.index) == [row["id"] for row in rows]
    text = ledger.to_markdown()
    assert text.count("\n|") == len(rows) + 2
    assert "inferred" in text
    assert all(line.count("|") == 8 for line in text.splitlines() if line.startswith("|"))


def test_a_missing_record_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("WHONEXT_RESULTS", str(tmp_path))
    with pytest.raises(ValueError, match="record='ledger-router-post': not there yet"):
        ledger.rows()
