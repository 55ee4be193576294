from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import quad

from whonext.distributions import (
    Deterministic,
    Erlang,
    Exponential,
    HyperExponential,
    LogNormal,
    Pareto,
    Uniform,
    parse_law,
)
from whonext.theory import markovian
from whonext.theory import pollaczek_khinchine as pk

LAWS = [
    Exponential(2),
    Deterministic(3),
    LogNormal(mean=1, sigma=1),
    Uniform(0, 2),
    Erlang(3, 1.0),
    HyperExponential((0.9, 0.1), (0.5, 5.5)),
    Pareto(4.5),
]


def moment_by_quadrature(law, k):
    if isinstance(law, Deterministic):
        return law.value**k
    cuts = [0.0, *law.quantile([0.25, 0.5, 0.9, 0.999, 1 - 1e-9]), math.inf]
    parts = (
        quad(lambda x: k * x ** (k - 1) * law.tail(x), a, b, epsabs=0, limit=200)[0]
        for a, b in itertools.pairwise(cuts)
        if b > a
    )
    return sum(parts)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.spec)
@pytest.mark.parametrize("load", [0.3, 0.9])
def test_the_mean_against_moments_by_quadrature(law, load):
    wanted = load / law.mean * moment_by_quadrature(law, 2) / (2 * (1 - load))
    assert pk.waiting_mean(law, load=load) == pytest.approx(wanted, rel=1e-6)
    assert pk.waiting_mean(law, arrival_rate=load / law.mean) == pytest.approx(wanted, rel=1e-6)
    assert pk.work_mean(law, load=load) == pk.waiting_mean(law, load=load)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.spec)
def test_the_variance_is_that_of_the_moments(law):
    first, second = (pk.waiting_moment(k, law, load=0.7) for k in (1, 2))
    assert pk.waiting_variance(law, load=0.7) == pytest.approx(second - first**2)
    assert pk.response_variance(law, load=0.7) == pytest.approx(second - first**2 + law.variance)


def test_moments_of_the_exponential_queue():
    for k in range(1, 6):
        wanted = 0.8 * math.factorial(k) * 5**k
        assert pk.waiting_moment(k, Exponential(1), load=0.8) == pytest.approx(wanted)


@pytest.mark.parametrize("law", [*LAWS, Pareto(1.5)], ids=lambda law: law.spec)
def test_the_bracket_holds_a_finer_one(law):
    times = law.mean * np.array([0.5, 2.0, 10.0, 30.0])
    coarse = pk.waiting_tail(times, law, load=0.8, cells=1000)
    fine = pk.waiting_tail(times, law, load=0.8, cells=6000)
    assert (coarse.low <= fine.low + 1e-12).all()
    assert (coarse.high >= fine.high - 1e-12).all()
    assert (fine.low <= fine.high).all()
    assert fine.high - fine.low == pytest.approx(0, abs=0.02)


@pytest.mark.parametrize("load", [0.5, 0.9])
def test_the_tail_of_the_exponential_queue_is_in_the_bracket(load):
    times = np.array([0.0, 1.0, 5.0, 20.0])
    for ours, exact in (
        (pk.waiting_tail(times, Exponential(1), load=load), markovian.waiting_tail),
        (pk.response_tail(times, Exponential(1), load=load), markovian.response_tail),
    ):
        wanted = exact(times, load=load)
        assert (ours.low <= wanted * (1 + 1e-12)).all()
        assert (ours.high >= wanted * (1 - 1e-12)).all()
        assert ours.middle == pytest.approx(wanted, rel=2e-3)


@pytest.mark.parametrize("law", [Exponential(1), LogNormal(1, 1), Uniform(0, 2)], ids=str)
def test_the_tail_integrates_to_the_mean(law):
    times = np.linspace(0, 150, 3001)
    tail = pk.waiting_tail(times, law, load=0.7, cells=3000).middle
    assert np.trapezoid(tail, times) == pytest.approx(pk.waiting_mean(law, load=0.7), rel=1e-3)


def test_heavy_tails_approach_their_asymptote_from_above():
    """The ratios are those of the literature's importance sampling: 1.829, 1.281, 1.047."""
    law = Pareto(2.5)
    times = np.array([5.0, 20.0, 100.0])
    exact = pk.waiting_tail(times, law, load=0.5, cells=6000).middle
    ratio = exact / pk.heavy_tail(times, law, load=0.5)
    assert ratio == pytest.approx([1.829, 1.281, 1.047], abs=0.004)


def test_quantiles_invert_tails():
    for p in (0.5, 0.9, 0.999):
        wait = pk.waiting_quantile(p, Exponential(1), load=0.8)
        assert wait == pytest.approx(markovian.waiting_quantile(p, load=0.8), rel=2e-3)
        time = pk.response_quantile(p, Exponential(1), load=0.8)
        assert time == pytest.approx(markovian.response_quantile(p, load=0.8), rel=2e-3)
    assert pk.waiting_quantile(0.1, Exponential(1), load=0.8) == 0


def test_a_class_of_its_own_size():
    """A long job waits as others do, and then is served for longer."""
    short = pk.response_quantile(0.9, Exponential(1), Deterministic(0.1), load=0.5)
    long = pk.response_quantile(0.9, Exponential(1), Deterministic(5.1), load=0.5)
    assert long - short == pytest.approx(5.0, rel=0.01)


def test_batches():
    law = LogNormal(mean=1, sigma=1)
    single = pk.waiting_mean(law, load=0.6)
    assert pk.batch_waiting_mean(law, 1, 1, load=0.6) == pytest.approx(single)
    assert pk.batch_waiting_mean(law, 4, 16, load=0.6) == pytest.approx(single + 3 / 0.8)


def test_where_there_is_no_finite_value():
    law = parse_law("pareto:alpha=1.5")
    with pytest.raises(ValueError, match=r"E\[W\] is infinite: the second moment of pareto"):
        pk.waiting_mean(law, load=0.8)
    with pytest.raises(ValueError, match="third moment"):
        pk.waiting_variance(Pareto(2.5), load=0.8)
    with pytest.raises(ValueError, match=r"E\[W\^3\] is infinite: the fourth moment"):
        pk.waiting_moment(3, Pareto(3.5), load=0.8)
    with pytest.raises(ValueError, match="residual life"):
        pk.residual_life_mean(law)
    with pytest.raises(ValueError, match=r"load=1.2: an M/G/1 queue is stable only below 1"):
        pk.waiting_mean(Exponential(1), load=1.2)
    with pytest.raises(ValueError, match="order=0"):
        pk.waiting_moment(0, Exponential(1), load=0.5)
    with pytest.raises(ValueError, match="probability="):
        pk.response_quantile(1.5, Exponential(1), load=0.5)


def test_nothing_waits_without_arrivals():
    assert pk.waiting_mean(Pareto(1.5), load=0.0) == 0
    assert pk.waiting_tail([1.0], Exponential(1), load=0.0).high.tolist() == [0]
