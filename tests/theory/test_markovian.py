from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from whonext.distributions import Exponential
from whonext.theory import markovian, pollaczek_khinchine


@pytest.mark.parametrize("load", [0.1, 0.5, 0.8, 0.95, 0.999])
def test_one_server_is_the_textbook_queue(load):
    assert markovian.waiting_probability(load=load) == pytest.approx(load)
    assert markovian.response_mean(2.0, load=load) == pytest.approx(2 / (1 - load))
    t = np.linspace(0, 20, 7)
    assert markovian.response_tail(t, load=load) == pytest.approx(np.exp(-(1 - load) * t))
    for p in (0.1, 0.5, 0.999):
        wanted = -math.log1p(-p) / (1 - load)
        assert markovian.response_quantile(p, load=load) == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("load", [0.3, 0.8])
def test_one_server_agrees_with_pollaczek_khinchine(load):
    assert markovian.waiting_mean(load=load) == pytest.approx(
        pollaczek_khinchine.waiting_mean(Exponential(1), load=load)
    )


@pytest.mark.parametrize("servers", [1, 2, 3, 10, 50])
@pytest.mark.parametrize("load", [0.2, 0.8, 0.99])
def test_erlang_against_the_sums_in_many_digits(servers, load):
    with mpmath.workdps(60):
        a = mpmath.mpf(load) * servers
        top = a**servers / mpmath.factorial(servers)
        below = mpmath.fsum(a**k / mpmath.factorial(k) for k in range(servers))
        blocked = top / (below + top)
        waits = top / (1 - mpmath.mpf(load))
        waits = waits / (below + waits)
    assert markovian.blocking_probability(load * servers, servers) == pytest.approx(float(blocked))
    found = markovian.waiting_probability(servers=servers, load=load)
    assert found == pytest.approx(float(waits), rel=1e-12)


def test_ten_thousand_servers_neither_overflow_nor_cancel():
    with mpmath.workdps(50):
        n, a = 10_000, mpmath.mpf(9_950)
        blocked = mpmath.mpf(1)
        for k in range(1, n + 1):
            blocked = a * blocked / (k + a * blocked)
        waits = blocked / (1 - (a / n) * (1 - blocked))
    found = markovian.waiting_probability(servers=n, arrival_rate=9_950)
    assert found == pytest.approx(float(waits), rel=1e-10)
    assert 0 < markovian.waiting_probability(servers=n, load=0.5) < 1e-300 or (
        markovian.waiting_probability(servers=n, load=0.5) == 0
    )


@pytest.mark.parametrize(("servers", "load"), [(1, 0.7), (3, 0.8), (200, 0.97)])
def test_numbers_add_up(servers, load):
    n = np.arange(20_000)
    chances = markovian.number_probability(n, servers=servers, load=load)
    assert chances.sum() == pytest.approx(1)
    assert (n * chances).sum() == pytest.approx(markovian.number_mean(servers=servers, load=load))
    waits = chances[n >= servers].sum()
    assert waits == pytest.approx(markovian.waiting_probability(servers=servers, load=load))


@pytest.mark.parametrize(("servers", "load"), [(2, 0.5), (2, 0.500001), (4, 0.75), (3, 0.9)])
def test_the_response_tail_integrates_to_the_mean(servers, load):
    """Loads where a wait runs out as fast as a service, or nearly, are no special case."""
    nodes, weights = np.polynomial.laguerre.laggauss(60)
    scale = 2 * markovian.response_mean(servers=servers, load=load)
    tail = markovian.response_tail(scale * nodes, servers=servers, load=load)
    mean = scale * float(weights @ (tail * np.exp(nodes)))
    assert mean == pytest.approx(markovian.response_mean(servers=servers, load=load), rel=1e-5)


@pytest.mark.parametrize(("servers", "load"), [(1, 0.8), (3, 0.8), (20, 0.9)])
@pytest.mark.parametrize("p", [0.5, 0.9, 0.9999])
def test_quantiles_invert_tails(servers, load, p):
    t = markovian.response_quantile(p, 1.5, servers, load=load)
    assert markovian.response_tail(t, 1.5, servers, load=load) == pytest.approx(1 - p, rel=1e-8)
    t = markovian.waiting_quantile(p, 1.5, servers, load=load)
    if t > 0:
        assert markovian.waiting_tail(t, 1.5, servers, load=load) == pytest.approx(1 - p, rel=1e-8)
    else:
        assert markovian.waiting_probability(1.5, servers, load=load) <= 1 - p


def test_an_empty_queue():
    assert markovian.waiting_mean(load=0.0) == 0
    assert markovian.number_probability([0, 1], load=0.0).tolist() == [1, 0]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"load": 1.2}, "load=1.2: an M/M/1 queue is stable only below 1"),
        ({"load": 1.0, "servers": 3}, "load=1: an M/M/3 queue"),
        ({"load": math.nan}, "load=nan"),
        ({"load": -0.1}, "load=-0.1"),
        ({"load": 0.5, "servers": 0}, "servers=0"),
        ({"load": 0.5, "servers": 1.5}, "servers=1.5"),
        ({"load": 0.5, "mean_size": 0}, "mean_size=0"),
        ({}, "exactly one of arrival_rate and load"),
        ({"load": 0.5, "arrival_rate": 0.5}, "exactly one"),
    ],
)
def test_bad_input_is_named(arguments, words):
    with pytest.raises(ValueError, match=words):
        markovian.waiting_mean(**arguments)


def test_bad_probabilities_and_counts_are_named():
    with pytest.raises(ValueError, match="probability=1"):
        markovian.response_quantile(1, load=0.5)
    with pytest.raises(ValueError, match="probability=-1"):
        markovian.waiting_quantile(-1, load=0.5)
    with pytest.raises(ValueError, match="whole numbers"):
        markovian.number_probability([0.5], load=0.5)
