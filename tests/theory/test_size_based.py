"""Size-based formulas: known values, quadrature in other variables, limits, and each other."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from whonext.distributions import (
    BoundedPareto,
    Deterministic,
    Empirical,
    Erlang,
    Exponential,
    Gamma,
    HyperExponential,
    LogNormal,
    Mixture,
    Pareto,
    Uniform,
    Weibull,
)
from whonext.theory import _quadrature as quadrature
from whonext.theory import pollaczek_khinchine as pk
from whonext.theory import priorities, size_based, smiths_rule

sjf = size_based.shortest_job_first
ljf = size_based.longest_job_first
psjf = size_based.preemptive_shortest_job_first
srpt = size_based.shortest_remaining_processing_time
lrpt = size_based.longest_remaining_processing_time
fb = size_based.foreground_background
ps = size_based.processor_sharing
lcfs = size_based.last_come_first_served_preemptive

ALL = [sjf, ljf, psjf, srpt, lrpt, fb, ps, lcfs]
LAWS = [
    Exponential(2),
    Deterministic(3),
    LogNormal(1, 1),
    LogNormal(1, 0.05),
    Uniform(0, 2),
    Uniform(1, 2),
    Erlang(3, 1),
    Erlang(900, 1),
    Gamma(0.05, 1),
    Weibull(0.4, 1),
    HyperExponential((0.9, 0.1), (0.5, 5.5)),
    BoundedPareto(1.1, 1, 1e6),
    Pareto(1.2),
    Pareto(2.5),
    Empirical([1, 2, 2, 7]),
    Mixture((0.3, 0.7), (Deterministic(1), Exponential(2))),
]
name = {"ids": lambda value: getattr(value, "spec", getattr(value, "__name__", None))}


@pytest.mark.parametrize(
    ("load", "rule", "wanted"),
    [
        (0.8, srpt, 2.35277),
        (0.8, psjf, 2.65890),
        (0.8, lcfs, 5),
        (0.8, sjf, 2.88222),
        (0.8, ps, 5),
        (0.8, fb, 5),
        (0.8, lrpt, 25),
        (0.5, srpt, 1.42537),
        (0.5, psjf, 1.53138),
        (0.5, lcfs, 2),
        (0.5, sjf, 1.71269),
        (0.5, ps, 2),
        (0.5, fb, 2),
        (0.5, lrpt, 4),
    ],
)
def test_known_values_of_the_exponential_queue(load, rule, wanted):
    assert rule(Exponential(1), load=load) == pytest.approx(wanted, abs=6e-6)


@pytest.mark.parametrize("law", LAWS, **name)
def test_the_quadrature_knows_each_law(law):
    points, weights = quadrature.expectation_rule(law)
    assert weights.sum() == pytest.approx(1, rel=1e-10)
    assert weights @ points == pytest.approx(law.mean, rel=1e-9)
    assert quadrature.tail_integral(law, np.ones_like) == pytest.approx(law.mean, rel=1e-9)
    x = law.mean * np.array([0.3, 1.0, 5.0])
    wanted = law.capped_moment(1.0, x)
    found = quadrature.integral_up_to(x, law.tail, law)
    assert found == pytest.approx(wanted, rel=1e-8)


@pytest.mark.parametrize("law", LAWS, **name)
@pytest.mark.parametrize("rule", [srpt, psjf, fb, ps], **name)
def test_the_mean_is_that_of_the_means_by_size(law, rule):
    """Two routes: the mean in one integral, and by averaging E[T(x)] over the size."""
    points, weights = quadrature.expectation_rule(law)
    points, weights = points[weights > 0], weights[weights > 0]
    by_size = rule(law, load=0.7, at=points)
    assert rule(law, load=0.7) == pytest.approx(float(weights @ by_size), rel=1e-7)


@pytest.mark.parametrize("law", LAWS, **name)
def test_srpt_is_best_and_longest_remaining_worst(law):
    best = srpt(law, load=0.8)
    rules = [psjf, fb, ps]
    if np.isfinite(law.second_moment):
        rules += [sjf, ljf, lrpt]
        assert all(lrpt(law, load=0.8) >= rule(law, load=0.8) * (1 - 1e-12) for rule in ALL)
    assert all(rule(law, load=0.8) >= best * (1 - 1e-9) for rule in rules)


def test_equal_sizes_come_in_order_of_arrival():
    law = Deterministic(2)
    wanted = pk.response_mean(law, load=0.8)
    for rule in (sjf, ljf, psjf, srpt):
        assert rule(law, load=0.8) == pytest.approx(wanted)


def test_two_sizes_are_two_classes():
    """Shortest first on two sizes is priority for the class of the short."""
    short, long = Deterministic(1), Deterministic(5)
    both = Mixture((0.8, 0.2), (short, long))
    rates = 0.35 * np.array([0.8, 0.2])
    waits = priorities.non_preemptive(rates, [short, long])
    assert sjf(both, arrival_rate=0.35, at=[1, 5]) == pytest.approx(waits + np.array([1, 5]))
    responses = priorities.preemptive_resume(rates, [short, long])
    assert psjf(both, arrival_rate=0.35, at=[1, 5]) == pytest.approx(responses)
    waits = priorities.non_preemptive(rates, [short, long], [1, 0])
    assert ljf(both, arrival_rate=0.35, at=[1, 5]) == pytest.approx(waits + np.array([1, 5]))


def test_data_and_the_law_it_came_from():
    law = LogNormal(1, 0.8)
    data = Empirical(law.quantile((np.arange(4000) + 0.5) / 4000))
    for rule in (sjf, psjf, srpt, fb):
        assert rule(data, load=0.7) == pytest.approx(rule(law, load=0.7), rel=0.01)


@pytest.mark.parametrize("alpha", [1.5, 1.9])
def test_the_heavy_tail_against_many_digits(alpha):
    """The same integrals in another variable, by another method, to 15 digits."""
    a = mpmath.mpf(alpha)
    mean = a / (a - 1)
    rate = mpmath.mpf("0.8") / mean

    def load_up_to(x):
        return rate * mean * (1 - x ** (1 - a))

    def second(x):
        return a / (2 - a) * (x ** (2 - a) - 1)

    def average(function):
        """E[function(S)], integrated over the share of larger jobs."""
        cuts = [0, mpmath.mpf(10) ** -12, mpmath.mpf(10) ** -6, 0.001, 0.1, 1]
        return mpmath.quad(lambda u: function(u ** (-1 / a)), cuts)

    waiting = average(lambda x: rate * (second(x) + x ** (2 - a)) / 2 / (1 - load_up_to(x)) ** 2)
    # E[1/(1 - rho(R))] over the time R spent at each remaining size, above 1: density x^-a
    serving = 1 + mpmath.quad(
        lambda v: 1 / (1 - load_up_to(v ** (-1 / (a - 1)))) / (a - 1), [0, 1e-6, 0.01, 1]
    )
    assert srpt(Pareto(alpha), load=0.8) == pytest.approx(float(waiting + serving), rel=1e-6)


def test_tails_close_to_no_mean_at_all():
    """Sharing is exact whatever the law, so it shows what the quadrature loses at the far end."""
    law = Pareto(1.05)
    points, weights = quadrature.expectation_rule(law)
    assert weights @ points == pytest.approx(law.mean, rel=1e-6)
    assert srpt(law, load=0.5) < ps(law, load=0.5)


def test_classes_in_a_common_queue():
    classes = [Exponential(1), LogNormal(3, 1)]
    shares = np.array([0.6, 0.4])
    both = Mixture(tuple(shares), tuple(classes))
    for rule in ALL:
        each = [rule(both, load=0.7, of=law) for law in classes]
        assert shares @ each == pytest.approx(rule(both, load=0.7), rel=1e-9)


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="second moment of pareto"):
        sjf(Pareto(1.5), load=0.5)
    with pytest.raises(ValueError, match="load=1"):
        srpt(Exponential(1), load=1)
    with pytest.raises(ValueError, match="at="):
        fb(Exponential(1), load=0.5, at=[1, -1])


# Smith's rule.


def test_one_class_and_equal_weights_are_shortest_first():
    law = LogNormal(1, 1)
    found = smiths_rule.weighted_shortest_first([0.8], [law], [3])
    assert found == pytest.approx([sjf(law, load=0.8) - 1])
    classes, rates = [Exponential(1), LogNormal(3, 1)], np.array([0.3, 0.1])
    both = Mixture((0.75, 0.25), tuple(classes))
    found = smiths_rule.weighted_shortest_first(rates, classes, [1, 1])
    wanted = [sjf(both, arrival_rate=0.4, of=law) - law.mean for law in classes]
    assert found == pytest.approx(wanted)


def test_constant_sizes_are_the_c_mu_rule():
    classes, rates, weights = [Deterministic(1), Deterministic(3)], [0.2, 0.2], [1, 4]
    found = smiths_rule.weighted_shortest_first(rates, classes, weights)
    assert found == pytest.approx(priorities.non_preemptive(rates, classes, [1, 0]))


@pytest.mark.parametrize("sigma", [0.001, 0.5, 1.0, 2.0])
def test_noise_on_lognormal_sizes_by_the_load_seen(sigma):
    """One class of lognormal sizes: size and index are jointly lognormal, so the load is exact."""
    from scipy.stats import norm

    spread, load = 0.9, 0.8
    law = LogNormal(1, spread)
    both = np.hypot(spread, sigma)
    z, weights = np.polynomial.hermite_e.hermegauss(180)
    # E[S; index < i] over E[S] is the normal law moved by the covariance of log S and log index
    below = load * norm.cdf(z - spread**2 / both)
    residual = load / law.mean * law.second_moment / 2
    wanted = float(weights @ (residual / (1 - below) ** 2)) / np.sqrt(2 * np.pi)
    found = smiths_rule.weighted_shortest_first([load], [law], [1], prediction_sigma=sigma)
    assert found == pytest.approx([wanted], rel=1e-5)


def test_noise_costs_more_and_more_and_at_most_all():
    classes, rates, weights = [LogNormal(1, 1), LogNormal(4, 1)], [0.3, 0.1], [2, 1]
    costs = [
        float(
            np.dot(
                np.multiply(rates, weights),
                smiths_rule.weighted_shortest_first(
                    rates, classes, weights, prediction_sigma=sigma
                ),
            )
        )
        for sigma in (0, 0.3, 1, 3, 10)
    ]
    assert costs == sorted(costs)
    both = Mixture((0.75, 0.25), tuple(classes))
    alike = pk.waiting_mean(both, arrival_rate=0.4)
    assert costs[-1] < float(np.dot(rates, weights)) * alike


def test_weights_must_be_above_zero():
    with pytest.raises(ValueError, match="weights="):
        smiths_rule.weighted_shortest_first([0.5], [Exponential(1)], [0])
    with pytest.raises(ValueError, match="prediction_sigma=-1"):
        smiths_rule.weighted_shortest_first([0.5], [Exponential(1)], [1], prediction_sigma=-1)
