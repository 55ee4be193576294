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


def _word(expected: str, hint: str) -> Callable[[Any], str | None]:
    """Judge a word, whatever its spaces and capitals."""

    def judge(value: Any) -> str | None:
        if not isinstance(value, str):
            return f"a word in quotes is asked for, this is {value!r}"
        if value.replace(" ", "").lower() == expected.replace(" ", "").lower():
            return None
        return f"{value!r} is another one. {hint}"

    return judge


class _WrongAnswerError(Exception):
    """A hint, found while the reader's function ran."""


def _call(function: Any, *arguments: Any) -> Any:
    """Ask the reader's function; an error in it becomes the hint."""
    if not callable(function):
        raise _WrongAnswerError(f"a function is asked for, this is {function!r}")
    try:
        return function(*arguments)
    except Exception as error:
        raise _WrongAnswerError(f"your function raised {type(error).__name__}: {error}") from error


# Queues and Kendall's notation


def _pooling_load(value: Any) -> str | None:
    from scipy.optimize import brentq

    from whonext.theory import markovian

    target = markovian.waiting_mean(load=0.5)

    def gap(load: float) -> float:
        return markovian.waiting_mean(load=load, servers=8) - target

    expected = brentq(gap, 0.5, 0.999)
    return _close(expected, "Eight servers, one queue: which load gives the same mean wait?")(value)


def _fewest_servers(value: Any) -> str | None:
    from whonext.theory import markovian

    number = _number(value)
    if number is None or not number.is_integer():
        return f"a whole number of servers is asked for, this is {value!r}"
    if number <= 10:
        return f"{number:g} servers cannot do 40 x 0.25 = 10 servers' worth of work"
    if number > 100:
        return f"{number:g} servers are enough, and so are far fewer"
    wait = markovian.waiting_quantile(0.99, 0.25, int(number), arrival_rate=40.0)
    if wait > 0.1:
        return f"with {number:g} servers one request in a hundred waits over {wait:.3g} s"
    if markovian.waiting_quantile(0.99, 0.25, int(number) - 1, arrival_rate=40.0) <= 0.1:
        return f"{number:g} servers are enough, and so are fewer"
    return None


def _lindley(value: Any) -> str | None:
    cases: tuple[tuple[list[float], list[float], list[float]], ...] = (
        ([1.0, 1.0, 1.0], [3.0, 1.0, 1.0], [0.0, 2.0, 2.0]),
        ([5.0, 0.0, 9.0, 1.0], [2.0, 4.0, 1.0, 1.0], [0.0, 2.0, 0.0, 0.0]),
    )
    for gaps, sizes, waits in cases:
        mine = _call(value, gaps, sizes)
        try:
            right = np.allclose(np.asarray(mine, dtype=float), waits)
        except (TypeError, ValueError):
            right = False
        if not right:
            return (
                f"for gaps {gaps} and sizes {sizes} the waits are {waits}, yours {mine!r}. "
                "gaps[k] lies between the arrivals of jobs k - 1 and k"
            )
    return None


# Little's law


def _little_path(value: Any) -> str | None:
    from whonext.theory.littles_law import sample_path

    draw = np.random.default_rng(7)
    arrival = np.cumsum(draw.exponential(1.0, 50))
    departure = arrival + draw.exponential(3.0, 50)
    for end in (float(departure.max()) + 1, 30.0, 10.0):
        path = sample_path(arrival, departure, start=0.0, end=end)
        mine = _call(value, arrival, departure, end)
        expected = (path.mean_number, path.arrival_rate, path.mean_time)
        try:
            numbers = [float(number) for number in mine]
        except (TypeError, ValueError):
            return f"three numbers are asked for, your function returned {mine!r}"
        if len(numbers) != 3:
            return f"three numbers are asked for, your function returned {len(numbers)}"
        names = ("the mean number inside", "the arrival rate", "the mean time of the arrivals")
        for name, number, right in zip(names, numbers, expected, strict=True):
            if not math.isclose(number, right, rel_tol=1e-9):
                return f"up to {end:.4g}, {name} is {right:.5g}, yours is {number:.5g}"
    return None


# Pollaczek-Khinchine


def _infinite_wait(value: Any) -> str | None:
    from whonext.distributions import Distribution

    if not isinstance(value, Distribution):
        return f"a law of whonext.distributions is asked for, this is {value!r}"
    if not math.isclose(value.mean, 1.0, rel_tol=1e-6):
        return f"its mean is {value.mean:.4g}, and 1 is asked for"
    if math.isfinite(value.second_moment):
        return f"its second moment is {value.second_moment:.4g}, so its mean wait is finite"
    return None


def _cap(value: Any) -> str | None:
    from scipy.optimize import brentq

    from whonext.distributions import LogNormal

    law = LogNormal(mean=1.0, sigma=1.5)

    def wait(cap: float) -> float:
        mean = law.partial_mean(cap) + cap * law.tail(cap)
        second = law.partial_moment(2, cap) + cap**2 * law.tail(cap)
        return float(0.8 * second / (2 * (1 - 0.8 * mean)))

    uncapped = 0.8 * law.second_moment / (2 * (1 - 0.8))
    expected = brentq(lambda cap: wait(cap) - uncapped / 2, 1.0, 1e4)
    hint = "Both moments of min(S, cap) change, and the load with the first"
    return _close(expected, hint, tolerance=0.02)(value)


EXERCISES: dict[str, Exercise] = {
    "queues-name": Exercise(
        _word("M/G/6", "Users are many and independent; sizes follow no law in particular"),
        "Six replicas with a queue each would be six M/G/1, and wait longer.",
        'answer = "M/G/6"',
    ),
    "queues-load": Exercise(
        _close(0.72, "Load is arrival rate times mean size over the number of servers"),
        "A fifth of the requests brings two thirds of the work: shares count arrivals.",
        "mean_size = 0.8 * 0.2 + 0.2 * 1.6\nanswer = 9 * mean_size / 6",
    ),
    "queues-servers": Exercise(
        _fewest_servers,
        "Ten do the work; the rest are there so that nobody waits for them.",
        "from whonext.theory import markovian\n\n"
        "answer = 11\n"
        "while markovian.waiting_quantile(0.99, 0.25, answer, arrival_rate=40) > 0.1:\n"
        "    answer += 1",
    ),
    "queues-pooling": Exercise(
        _pooling_load,
        "That is what a shared queue is worth in machines: the wait of half-empty servers, at a "
        "load that no separate queue could stand.",
        "from scipy.optimize import brentq\n"
        "from whonext.theory import markovian\n\n"
        "separate = markovian.waiting_mean(load=0.5)\n"
        "answer = brentq(\n"
        "    lambda load: markovian.waiting_mean(load=load, servers=8) - separate, 0.5, 0.999\n"
        ")",
    ),
    "queues-lindley": Exercise(
        _lindley,
        "Three lines are a simulator of one server under FCFS.",
        "def answer(gaps, sizes):\n"
        "    waits = [0.0]\n"
        "    for k in range(1, len(sizes)):\n"
        "        waits.append(max(0.0, waits[-1] + sizes[k - 1] - gaps[k]))\n"
        "    return waits",
    ),
    "littles-law-wait": Exercise(
        _close(2.0, "Draw the box around the waiting requests only"),
        "The law holds for any box: the queue alone, one class, one server.",
        "answer = 32 / 16",
    ),
    "littles-law-memory": Exercise(
        _close(72.0, "What each request holds, for how long, and how many come each second"),
        "Memory in use is a number in system in which a request counts for its size.",
        "answer = 6 * 1.5 * 8",
    ),
    "littles-law-closed": Exercise(
        _close(4.4, "The box holds all 32 clients; each is thinking or waiting for an answer"),
        "In a closed loop the clients' number fixes the sum, and a slower server only lowers the "
        "rate.",
        "answer = 32 / 5 - 2",
    ),
    "littles-law-path": Exercise(
        _little_path,
        "Both sides of the law from one log; they differ by what the end cuts off.",
        "import numpy as np\n\n"
        "def answer(arrival, departure, end):\n"
        "    came = arrival < end\n"
        "    inside = np.minimum(departure[came], end) - arrival[came]\n"
        "    return (\n"
        "        inside.sum() / end,\n"
        "        came.sum() / end,\n"
        "        (departure[came] - arrival[came]).mean(),\n"
        "    )",
    ),
    "pk-wait": Exercise(
        _close(90.0, "E[S^2] is the variance plus the square of the mean"),
        "Answers take 2 s and requests wait a minute and a half, with a tenth of the time idle.",
        "arrival_rate = 0.9 / 2\n"
        "second_moment = 6**2 + 2**2\n"
        "answer = arrival_rate * second_moment / (2 * (1 - 0.9))",
    ),
    "pk-scv": Exercise(
        _close(9.0, "At one load the mean wait grows with (1 + squared coefficient) / 2"),
        "From exponential sizes to these the wait grows fivefold, and no graph of load shows it.",
        "answer = 2 * 20 * (1 - 0.8) / 0.8 - 1",
    ),
    "pk-infinite": Exercise(
        _infinite_wait,
        "Every request is answered, the server idles half of the time, and the mean wait is "
        "infinite.",
        "from whonext.distributions import Pareto\n\nanswer = Pareto(alpha=1.5, low=1 / 3)",
    ),
    "pk-cap": Exercise(
        _cap,
        "Few requests ever meet the cap, and all wait half as long.",
        "from scipy.optimize import brentq\n"
        "from whonext.distributions import LogNormal\n\n"
        "law = LogNormal(mean=1, sigma=1.5)\n\n"
        "def wait(cap):\n"
        "    mean = law.partial_mean(cap) + cap * law.tail(cap)\n"
        "    second = law.partial_moment(2, cap) + cap**2 * law.tail(cap)\n"
        "    return 0.8 * second / (2 * (1 - 0.8 * mean))\n\n"
        "uncapped = 0.8 * law.second_moment / (2 * (1 - 0.8))\n"
        "answer = brentq(lambda cap: wait(cap) - uncapped / 2, 1, 1e4)",
    ),
}


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
    try:
        hint = exercise.judge(value)
    except _WrongAnswerError as wrong:
        hint = str(wrong)
    if hint is not None:
        raise AssertionError(f"{name}: {hint}")
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
