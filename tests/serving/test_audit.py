"""The audit finds what is wrong with a trace, so that its silence means something."""

from __future__ import annotations

import pytest

from whonext.serving.audit import admissions_out_of_order, bookkeeping_faults


def trace(text: str) -> list[tuple]:
    """``"arrive a, start a"`` at times 0, 1, …, with the count of requests as it should be."""
    rows, present = [], 0
    for time, entry in enumerate(text.split(", ")):
        event, job = entry.split()
        present += {"arrive": 1, "finish": -1, "abort": -1}.get(event, 0)
        rows.append((time, event, job, 0, 0, present))
    return rows


GOOD = "arrive a, arrive b, start a, preempt a, resume a, finish a, start b, abort b"


def test_a_good_trace() -> None:
    assert bookkeeping_faults(trace(GOOD)) == []
    assert admissions_out_of_order(trace(GOOD), {"a": 1, "b": 2}) == []


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("arrive a, start a, start a, finish a", "start after start"),
        ("arrive a, finish a", "finish after arrive"),
        ("start a, finish a", "start after nothing"),
        ("arrive a, start a, finish a, finish a", "finish after finish"),
        ("arrive a, start a", "a is left with start"),
        ("arrive a, start a, resume a, finish a", "resume after start"),
    ],
)
def test_lives_that_cannot_be(text: str, fault: str) -> None:
    assert any(fault in line for line in bookkeeping_faults(trace(text)))


def test_a_wrong_count() -> None:
    rows = [(0, "arrive", "a", 0, 0, 2), (1, "abort", "a", 0, 0, 0)]
    assert bookkeeping_faults(rows) == ["at 0: 2 in the system, 1 by count"]


def test_disobedience() -> None:
    rows = trace("arrive a, arrive b, start a, finish a, start b, finish b")
    assert admissions_out_of_order(rows, {"a": 2, "b": 1}) == ["at 2: a started before b"]
    assert admissions_out_of_order(rows, {"a": 1, "b": 1}) == []  # ties go by arrival
    left = trace("arrive a, arrive b, abort b, start a, finish a")
    assert admissions_out_of_order(left, {"a": 2, "b": 1}) == []
