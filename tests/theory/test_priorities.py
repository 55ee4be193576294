from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whonext.distributions import Deterministic, Exponential, LogNormal, Mixture, Pareto
from whonext.theory import markovian, priorities
from whonext.theory import pollaczek_khinchine as pk

SIZES = [LogNormal(0.3, 1.0), Exponential(1.0), Deterministic(4.0)]
RATES = np.array([0.5, 0.35, 0.08])


def test_one_class_is_first_come_first_served():
    law = LogNormal(mean=1, sigma=1)
    wanted = pk.waiting_mean(law, load=0.7)
    assert priorities.non_preemptive([0.7], [law]) == pytest.approx([wanted])
    assert priorities.preemptive_resume([0.7], [law]) == pytest.approx([wanted + 1])


def test_equal_ranks_are_one_class():
    together = Mixture(tuple(RATES / RATES.sum()), tuple(SIZES))
    wanted = pk.waiting_mean(together, arrival_rate=RATES.sum())
    assert priorities.non_preemptive(RATES, SIZES, [1, 1, 1]) == pytest.approx([wanted] * 3)
    means = [size.mean for size in SIZES]
    found = priorities.preemptive_resume(RATES, SIZES, [1, 1, 1])
    assert found == pytest.approx(wanted + np.array(means))


@given(st.permutations([0, 1, 2]))
def test_the_conservation_law(ranks):
    loads = RATES * [size.mean for size in SIZES]
    waits = priorities.non_preemptive(RATES, SIZES, ranks)
    assert loads @ waits == pytest.approx(priorities.conserved_sum(RATES, SIZES))


def test_ranks_and_order_say_the_same():
    waits = priorities.non_preemptive(RATES, SIZES, [2, 0, 1])
    order = [1, 2, 0]
    again = priorities.non_preemptive(RATES[order], [SIZES[k] for k in order])
    assert waits[order] == pytest.approx(again)
    corners = priorities.region_vertices(RATES, SIZES)
    assert len(corners) == 6
    assert corners[1, 2, 0] == pytest.approx(waits)


@given(st.lists(st.floats(0.1, 10), min_size=3, max_size=3))
def test_c_mu_is_the_best_order(weights):
    costs = {
        order: float(np.dot(RATES * weights, waits))
        for order, waits in priorities.region_vertices(RATES, SIZES).items()
    }
    found = tuple(priorities.c_mu_order(weights, SIZES))
    assert costs[found] <= min(costs.values()) * (1 + 1e-12)


def test_many_servers_of_one_server():
    rates, law = [0.3, 0.4], Exponential(1)
    assert priorities.non_preemptive_exponential(rates) == pytest.approx(
        priorities.non_preemptive(rates, [law, law])
    )
    assert priorities.preemptive_resume_exponential(rates) == pytest.approx(
        priorities.preemptive_resume(rates, [law, law])
    )


@pytest.mark.parametrize("ranks", [[0, 1], [1, 0], [0, 0]])
def test_many_servers_keep_the_mean_over_all(ranks):
    rates = np.array([1.5, 0.9])
    waits = priorities.non_preemptive_exponential(rates, 1.0, 3, ranks)
    wanted = markovian.waiting_mean(servers=3, arrival_rate=2.4)
    assert rates @ waits / 2.4 == pytest.approx(wanted)
    responses = priorities.preemptive_resume_exponential(rates, 1.0, 3, ranks)
    assert rates @ responses / 2.4 == pytest.approx(wanted + 1)


def test_preemption_shields_from_an_overloaded_class():
    found = priorities.preemptive_resume([0.5, 0.8], [Exponential(1), Exponential(1)])
    assert found[0] == pytest.approx(2)
    assert found[1] == math.inf
    found = priorities.preemptive_resume([0.5, 0.1], [Exponential(1), Pareto(1.5)])
    assert found[0] == pytest.approx(2)
    assert found[1] == math.inf


@pytest.mark.parametrize(
    ("rates", "sizes", "words"),
    [
        ([0.5, 0.8], [Exponential(1), Exponential(1)], "load=1.3: an M/G/1 queue is stable"),
        ([0.5, -0.1], [Exponential(1), Exponential(1)], "arrival_rates="),
        ([0.5, math.nan], [Exponential(1), Exponential(1)], "arrival_rates="),
        ([0.5], [Exponential(1), Exponential(1)], "1 given for 2 classes"),
        ([0.2, 0.1], [Exponential(1), Pareto(1.5)], "second moment of pareto"),
    ],
)
def test_bad_input_is_named(rates, sizes, words):
    with pytest.raises(ValueError, match=words):
        priorities.non_preemptive(rates, sizes)


def test_ranks_must_be_one_a_class():
    with pytest.raises(ValueError, match="ranks: 1 given for 2"):
        priorities.non_preemptive([0.1, 0.1], [Exponential(1), Exponential(1)], [0])
