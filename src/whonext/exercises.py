"""The checked exercises of the labs: what is asked, how an answer is judged, and one that passes.

A lab calls ``check(name, value)``. It prints that the exercise waits for an answer while the value
is ``None`` or ``...``, raises an `AssertionError` with a hint while the answer is wrong, and says
what the answer means once it is right. ``solution(name)`` prints code that passes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["EXERCISES", "Exercise", "check", "solution"]


@dataclass(frozen=True)
class Exercise:
    """One exercise of a lab.

    Attributes
    ----------
    judge
        Takes the reader's value; returns None where it is right and a hint where it is not.
    lesson
        What the right answer tells.
    solution
        Code that sets ``answer`` to a value that passes.
    """

    judge: Callable[[Any], str | None]
    lesson: str
    solution: str


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
        return None
    return float(value)


def _close(expected: float, hint: str, tolerance: float = 0.01) -> Callable[[Any], str | None]:
    """Judge a number: right to within `tolerance` of it."""

    def judge(value: Any) -> str | None:
        number = _number(value)
        if number is None or not math.isfinite(number):
            return f"a number is asked for, this is {value!r}"
        if math.isclose(number, expected, rel_tol=tolerance):
            return None
        return f"{number:.4g} is too {'large' if number > expected else 'small'}. {hint}"

    return judge


EXERCISES: dict[str, Exercise] = {}


def check(name: str, value: Any) -> None:
    """Judge an answer.

    Parameters
    ----------
    name
        Name of the exercise, as in the lab.
    value
        The reader's answer: a number, a word or a function, as the exercise asks.

    Raises
    ------
    AssertionError
        With a hint, where the answer is wrong.
    ValueError
        Where there is no exercise of this name.
    """
    if name not in EXERCISES:
        raise ValueError(f"name={name!r}: one of {', '.join(EXERCISES)}")
    if value is None or value is ...:
        print(f"{name}: waits for your answer")
        return
    exercise = EXERCISES[name]
    hint = exercise.judge(value)
    assert hint is None, f"{name}: {hint}"
    print(f"{name}: right. {exercise.lesson}")


def solution(name: str) -> None:
    """Print code that passes an exercise.

    Raises
    ------
    ValueError
        Where there is no exercise of this name.
    """
    if name not in EXERCISES:
        raise ValueError(f"name={name!r}: one of {', '.join(EXERCISES)}")
    print(EXERCISES[name].solution)
