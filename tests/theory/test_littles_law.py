from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whonext.theory.littles_law import littles_law, number_in_system, sample_path


@pytest.mark.parametrize(
    "two",
    [
        {"mean_number": 12, "arrival_rate": 3},
        {"mean_number": 12, "mean_time": 4},
        {"arrival_rate": 3, "mean_time": 4},
    ],
)
def test_any_two_give_the_third(two):
    assert littles_law(**two) == (12, 3, 4)


@pytest.mark.parametrize(
    ("given_values", "words"),
    [
        ({}, "none given"),
        ({"mean_number": 1}, "mean_number given"),
        ({"mean_number": 1, "arrival_rate": 1, "mean_time": 1}, "exactly two"),
        ({"mean_number": -1, "arrival_rate": 1}, "mean_number=-1"),
        ({"mean_number": math.nan, "arrival_rate": 1}, "mean_number=nan"),
        ({"mean_number": 1, "arrival_rate": 0}, "arrival_rate=0"),
        ({"mean_number": 1, "mean_time": 0}, "mean_time=0"),
    ],
)
def test_bad_input_is_named(given_values, words):
    with pytest.raises(ValueError, match=words):
        littles_law(**given_values)


jobs = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 30)).map(lambda t: (t[0] / 4, (t[0] + t[1]) / 4)),
    min_size=1,
    max_size=20,
)


@given(jobs)
def test_exact_from_empty_to_empty(rows):
    arrival, departure = np.array(rows).T
    if departure.max() > arrival.min():
        path = sample_path(arrival, departure)
        assert path.mean_number == pytest.approx(path.arrival_rate * path.mean_time, rel=1e-12)
        assert path.gap == 0


@given(jobs, st.integers(-4, 40), st.integers(1, 40))
def test_on_any_window_the_gap_is_what_the_edges_cut(rows, start, length):
    arrival, departure = np.array(rows).T
    path = sample_path(arrival, departure, start / 4, (start + length) / 4)
    mean_time = path.mean_time if path.jobs else 0.0
    assert path.mean_number - path.arrival_rate * mean_time == pytest.approx(path.gap, abs=1e-12)


@given(jobs)
def test_the_area_under_the_number_is_the_time_of_the_jobs(rows):
    arrival, departure = np.array(rows).T
    times, numbers = number_in_system(arrival, departure)
    assert numbers[-1] == 0
    assert (numbers >= 0).all()
    area = float(np.sum(numbers[:-1] * np.diff(times)))
    assert area == pytest.approx(float((departure - arrival).sum()))


def test_jobs_that_never_leave_are_cut_off_by_the_window():
    path = sample_path([0, 1], [2, np.inf], end=4)
    assert path.area == 5
    assert path.beyond_end == np.inf
    assert number_in_system([0, 1], [2, np.inf])[1].tolist() == [1, 2, 1]


def test_bad_paths_are_refused():
    with pytest.raises(ValueError, match="leave no earlier"):
        sample_path([1], [0])
    with pytest.raises(ValueError, match="end=0"):
        sample_path([0], [1], 0, 0)
    with pytest.raises(ValueError, match="shapes"):
        sample_path([0, 1], [1])
    with pytest.raises(ValueError, match="end=inf"):
        sample_path([0], [np.inf])
