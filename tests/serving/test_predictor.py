"""The predictor says what it knows, and how good that is."""

from __future__ import annotations

import numpy as np
import pytest

from whonext.serving.predictor import LengthBuckets, prediction_errors, with_error

GENERATOR = np.random.default_rng(5)
PROMPT = GENERATOR.integers(1, 500, 4000)
OUTPUT = np.where(PROMPT > 250, 90, 10) + GENERATOR.integers(0, 20, 4000)


def test_it_learns_what_the_prompt_tells() -> None:
    predictor = LengthBuckets.fit(PROMPT[:2000], OUTPUT[:2000])
    errors = predictor.errors(PROMPT[2000:], OUTPUT[2000:])
    assert errors["explained"] > 0.9
    assert errors["mean_absolute_error"] < errors["of_the_constant"] / 4
    assert predictor.predict([1, 499]).round(-1).tolist() == [20, 100]


def test_it_learns_nothing_where_there_is_nothing() -> None:
    unrelated = GENERATOR.permutation(OUTPUT)
    errors = LengthBuckets.fit(PROMPT[:2000], unrelated[:2000]).errors(
        PROMPT[2000:], unrelated[2000:]
    )
    assert abs(errors["explained"]) < 0.05
    assert abs(errors["pairs_in_order"] - 0.5) < 0.05


def test_repeated_lengths_share_a_bucket() -> None:
    predictor = LengthBuckets.fit([3] * 10 + [7] * 10, [1.0] * 10 + [5.0] * 10, buckets=8)
    assert predictor.predict([2, 3, 4, 7, 8]).tolist() == [1, 1, 5, 5, 5]


@pytest.mark.parametrize("buckets", [0, 3])
def test_too_few_requests(buckets: int) -> None:
    with pytest.raises(ValueError, match=f"buckets={buckets}: from 1 to the number of requests"):
        LengthBuckets.fit([1, 2], [1, 2], buckets=buckets)


def test_the_measures_by_hand() -> None:
    perfect = prediction_errors([1, 2, 3], [1, 2, 3])
    assert perfect["mean_absolute_error"] == 0
    assert perfect["explained"] == perfect["pairs_in_order"] == 1
    constant = prediction_errors([2, 2, 2], [1, 2, 3])
    assert constant["explained"] == 0
    assert constant["pairs_in_order"] == 0.5
    assert constant["mean_absolute_error"] == constant["of_the_constant"]
    assert prediction_errors([3, 2, 1], [1, 2, 3])["pairs_in_order"] == 0
    assert prediction_errors([1], [5])["pairs_in_order"] == 0.5


def test_the_artificial_error_is_as_said() -> None:
    wrong = with_error(np.full(100_000, 40.0), 0.7, np.random.default_rng(1)) / 40
    assert np.median(wrong) == pytest.approx(1, abs=0.02)
    assert np.log(wrong).std() == pytest.approx(0.7, abs=0.01)
    assert np.mean((wrong > 2) | (wrong < 0.5)) == pytest.approx(0.32, abs=0.01)
    assert with_error([5, 6], 0, np.random.default_rng(1)).tolist() == [5, 6]
