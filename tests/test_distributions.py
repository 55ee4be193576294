"""Laws against scipy, quadrature and their own identities; samples against their laws."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from whonext.distributions import (
    LAWS,
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
    parse_law,
)

SMOOTH = [
    Exponential(2.0),
    Gamma(0.3, 2.0),
    Gamma(4.5, 1.0),
    Erlang(3, 6.0),
    Uniform(0.0, 2.0),
    Uniform(3.0, 3.5),
    Weibull(0.4, 1.0),
    Weibull(3.0, 2.0),
    LogNormal(1.0, 1.0),
    LogNormal(50.0, 0.2),
    Pareto(1.5),
    Pareto(2.5, 4.0),
    BoundedPareto(1.5, 1.0, 1e6),
    BoundedPareto(1.0, 2.0, 50.0),
    BoundedPareto(0.5, 0.1, 10.0),
    HyperExponential((0.9, 0.1), (0.5, 5.5)),
    Mixture((0.25, 0.75), (Pareto(2.2), Gamma(2.0, 7.0))),
]
ATOMS = [
    Deterministic(3.0),
    Empirical(np.array([5.0, 1.0, 2.0, 2.0, 9.5])),
    Mixture((0.5, 0.25, 0.25), (Exponential(1.0), Deterministic(2.0), Empirical([1.0, 4.0]))),
]
EVERY = SMOOTH + ATOMS


def by_spec(law):
    return law.spec if len(law.spec) < 60 else law.name


each_law = pytest.mark.parametrize("law", EVERY, ids=by_spec)
each_smooth = pytest.mark.parametrize("law", SMOOTH, ids=by_spec)


def generators(law, seed=0):
    return [
        np.random.Generator(np.random.SFC64(s))
        for s in np.random.SeedSequence(seed).spawn(law.streams)
    ]


# Against scipy and against quadrature.

TWINS = [
    (Exponential(2.0), stats.expon(scale=2.0)),
    (Gamma(0.3, 2.0), stats.gamma(0.3, scale=2.0 / 0.3)),
    (Erlang(3, 6.0), stats.gamma(3, scale=2.0)),
    (Uniform(1.0, 4.0), stats.uniform(1.0, 3.0)),
    (Weibull(0.7, 1.0), stats.weibull_min(0.7, scale=1.0 / math.gamma(1 + 1 / 0.7))),
    (LogNormal(3.0, 1.2), stats.lognorm(1.2, scale=3.0 * math.exp(-0.72))),
    (Pareto(2.7, 3.0), stats.pareto(2.7, scale=3.0)),
    (BoundedPareto(1.3, 2.0, 40.0), stats.truncpareto(1.3, 20.0, scale=2.0)),
]


@pytest.mark.parametrize(("law", "twin"), TWINS, ids=[law.name for law, _ in TWINS])
def test_agrees_with_scipy(law, twin):
    p = np.array([1e-6, 0.01, 0.3, 0.5, 0.9, 0.999])
    x = twin.ppf(p)
    np.testing.assert_allclose(law.quantile(p), x, rtol=1e-9)
    np.testing.assert_allclose(law.cdf(x), p, rtol=1e-9)
    np.testing.assert_allclose(law.tail(x), twin.sf(x), rtol=1e-9)
    np.testing.assert_allclose(law.density(x), twin.pdf(x), rtol=1e-8)
    assert law.mean == pytest.approx(twin.mean(), rel=1e-9)
    assert law.variance == pytest.approx(twin.var(), rel=1e-7)
    assert law.moment(2) == pytest.approx(twin.moment(2), rel=1e-7)


def pieces(law, start, stop):
    """Points between which the law is smooth, dense enough for quadrature."""
    marks = law.quantile(np.array([0.0, 1e-8, 1e-4, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99]))
    lows = [getattr(part, "low", 0.0) for part in getattr(law, "laws", [law])]
    inside = {float(m) for m in (*marks, *lows) if start < m < stop}
    return [start, *sorted(inside), stop]


def integral(function, points):
    parts = [
        integrate.quad(function, a, b, epsabs=1e-13, epsrel=1e-11, limit=200)[0]
        for a, b in pairwise(points)
        if b > a
    ]
    return math.fsum(parts)


@each_smooth
@pytest.mark.parametrize("p", [0.2, 0.95])
def test_partial_moments_are_integrals_of_the_density(law, p):
    d = law.quantile(p)
    start = max(law.quantile(0.0), law.quantile(1e-12) * 1e-3)
    for k in (1.0, 2.0, 0.5):
        expected = integral(lambda x, k=k: x**k * law.density(x), pieces(law, start, d))
        assert law.partial_moment(k, d) == pytest.approx(expected, rel=1e-7)
    assert law.partial_mean(d) == law.partial_moment(1, d)


@each_smooth
def test_equilibrium_tail_is_an_integral_of_the_tail(law):
    for p in (0.0, 0.3, 0.9):
        x, far = law.quantile(p), law.quantile(1 - 1e-7)
        between = integral(law.tail, pieces(law, x, far)) / law.mean
        got = law.equilibrium_tail(x) - law.equilibrium_tail(far)
        assert got == pytest.approx(between, rel=1e-7)
    assert law.equilibrium_tail(0.0) == pytest.approx(1.0, rel=1e-12)


def test_pareto_closed_forms():
    law = Pareto(1.5)
    assert law.mean == 3.0
    # Work above d per arrival is E[S] d^(1-alpha); what is left above d, E[S] d^(1-alpha) / alpha.
    for d in (1.0, 21.5443, 464.159):
        assert law.upper_moment(1, d) == pytest.approx(3.0 * d**-0.5, rel=1e-12)
        assert law.excess_mean(d) == pytest.approx(3.0 * d**-0.5 / 1.5, rel=1e-12)
        assert law.equilibrium_tail(d) == pytest.approx(d**-0.5 / 1.5, rel=1e-12)
    assert law.upper_moment(1, 1e30) == pytest.approx(3e-15, rel=1e-12)  # no cancellation
    assert law.quantile(0.99) == pytest.approx(0.01 ** (-1 / 1.5), rel=1e-12)


def test_infinite_moments():
    assert Pareto(1.5).second_moment == math.inf
    assert Pareto(2.0).second_moment == math.inf
    assert Pareto(1.5).variance == math.inf
    assert Pareto(1.5).scv == math.inf
    assert Pareto(1.5).moment(1.5) == math.inf
    assert Pareto(1.5).moment(1.49) < math.inf
    assert Pareto(1.5).upper_moment(2, 10.0) == math.inf
    assert Pareto(1.5).partial_moment(2, 10.0) == pytest.approx(3 * (10**0.5 - 1))
    assert Pareto(2.0).partial_moment(2, 10.0) == pytest.approx(2 * math.log(10))
    assert Mixture((0.9, 0.1), (Exponential(1), Pareto(1.2))).second_moment == math.inf


# Identities, for all laws.

positive = st.floats(0.05, 50.0)
laws = st.one_of(
    st.builds(Exponential, positive),
    st.builds(Deterministic, positive),
    st.builds(Gamma, st.floats(0.1, 20.0), positive),
    st.builds(Erlang, st.integers(1, 20), positive),
    st.builds(lambda low, width: Uniform(low, low + width), st.floats(0.0, 9.0), positive),
    st.builds(Weibull, st.floats(0.2, 5.0), positive),
    st.builds(LogNormal, positive, st.floats(0.05, 3.0)),
    st.builds(Pareto, st.floats(1.05, 5.0), positive),
    st.builds(
        lambda alpha, low, ratio: BoundedPareto(alpha, low, low * ratio),
        st.one_of(st.floats(0.1, 5.0), st.sampled_from([1.0, 2.0])),
        positive,
        st.floats(1.1, 1e6),
    ),
    st.builds(
        lambda p, a, b: HyperExponential((p, 1 - p), (a, b)),
        st.floats(0.01, 0.99),
        positive,
        positive,
    ),
    st.builds(Empirical, st.lists(positive, min_size=1, max_size=9)),
    st.builds(
        lambda p, a, b: Mixture((p, 1 - p), (Exponential(a), Deterministic(b))),
        st.floats(0.01, 0.99),
        positive,
        positive,
    ),
)
sizes = st.floats(0.0, 1e3)


@settings(max_examples=150)
@given(laws)
def test_text_round_trip(law):
    again = parse_law(law.spec)
    assert again == law
    assert hash(again) == hash(law)
    assert again.spec == law.spec


@settings(max_examples=100)
@given(laws, sizes)
def test_below_and_above_make_the_whole(law, d):
    for k in (1.0, 0.5):
        whole = law.partial_moment(k, d) + law.upper_moment(k, d)
        assert whole == pytest.approx(law.moment(k), rel=1e-9)
    assert law.cdf(d) + law.tail(d) == pytest.approx(1.0, rel=1e-12)
    assert law.capped_moment(1, d) + law.excess_mean(d) == pytest.approx(law.mean, rel=1e-9)
    assert law.equilibrium_tail(d) == pytest.approx(law.excess_mean(d) / law.mean, rel=1e-12)


@settings(max_examples=100)
@given(laws, st.floats(0.0, 1.0))
def test_quantile_is_the_least_size_that_reaches_the_probability(law, p):
    x = law.quantile(p)
    assert law.cdf(x) >= p - 1e-12
    if p > 0 and 0 < x < math.inf:
        assert law.cdf(x * (1 - 1e-6)) <= p + 1e-9


@settings(max_examples=60)
@given(laws, st.floats(0.01, 100.0), sizes)
def test_scaling(law, factor, x):
    scaled = law.scaled(factor)
    assert type(scaled) is type(law)
    assert scaled.mean == pytest.approx(factor * law.mean, rel=1e-9)
    assert scaled.scv == pytest.approx(law.scv, rel=1e-6, abs=1e-9)
    assert law.with_mean(7.0).mean == pytest.approx(7.0, rel=1e-9)
    if not isinstance(law, Deterministic | Empirical | Mixture):  # no rounding across an atom
        assert scaled.tail(factor * x) == pytest.approx(law.tail(x), rel=1e-6, abs=1e-12)


@settings(max_examples=60)
@given(laws, sizes, sizes)
def test_moments_grow_and_tails_fall(law, x, y):
    x, y = min(x, y), max(x, y)
    assert 0.0 <= law.tail(y) <= law.tail(x) <= 1.0
    assert 0.0 <= law.equilibrium_tail(y) <= law.equilibrium_tail(x) + 1e-12
    assert law.partial_mean(x) <= law.partial_mean(y) * (1 + 1e-12)
    assert law.second_moment >= law.mean**2 * (1 - 1e-12)
    assert law.variance == math.inf or law.variance == pytest.approx(
        law.second_moment - law.mean**2, rel=1e-6, abs=1e-6 * law.second_moment
    )


@each_law
def test_ends(law):
    ends = np.array([-1.0, 0.0, math.inf])
    np.testing.assert_array_equal(law.tail(ends)[[0, 2]], [1.0, 0.0])
    np.testing.assert_array_equal(law.cdf(ends)[[0, 2]], [0.0, 1.0])
    np.testing.assert_allclose(law.partial_mean(ends), [0.0, 0.0, law.mean])
    np.testing.assert_allclose(law.upper_moment(1, ends), [law.mean, law.mean, 0.0])
    np.testing.assert_allclose(law.capped_moment(1, ends), [0.0, 0.0, law.mean])
    np.testing.assert_allclose(law.equilibrium_tail(ends), [1.0, 1.0, 0.0], atol=1e-15)
    assert law.quantile(0.0) <= law.quantile(1.0)
    if law in SMOOTH:
        np.testing.assert_array_equal(law.density(ends)[[0, 2]], [0.0, 0.0])


@each_law
def test_numbers_give_numbers_and_arrays_arrays(law):
    grid = np.array([[0.5, 1.0], [2.0, 8.0]])
    for method in (law.tail, law.cdf, law.partial_mean, law.excess_mean, law.equilibrium_tail):
        assert type(method(2.0)) is float
        assert method(grid).shape == grid.shape
        assert method(grid)[1, 0] == method(2.0)
    assert type(law.quantile(0.5)) is float
    assert law.quantile(grid / 8).shape == grid.shape
    assert type(law.mean) is float
    assert type(law.second_moment) is float


def test_far_tails_keep_their_digits():
    assert Exponential(1.0).equilibrium_tail(700.0) == pytest.approx(math.exp(-700), rel=1e-9)
    law = BoundedPareto(200.0, 1.0, 1e6)  # (low / high)^alpha underflows
    assert law.mean == pytest.approx(200 / 199, rel=1e-12)
    assert law.tail(2.0) == pytest.approx(2.0**-200, rel=1e-9)
    near = BoundedPareto(1.0 + 1e-12, 1.0, 10.0)  # next to the logarithmic case
    assert near.mean == pytest.approx(BoundedPareto(1.0, 1.0, 10.0).mean, rel=1e-9)


# Samples.

FALSE_ALARM = 1e-5  # of all sampling tests together, were their seeds drawn anew


def test_samples_follow_their_laws():
    """Kolmogorov-Smirnov for each law; the joint false-alarm rate is shared out equally."""
    for seed, law in enumerate(SMOOTH):
        values = law.sample(generators(law, seed), 20_000)
        p = stats.kstest(values, law.cdf).pvalue
        assert p > FALSE_ALARM / 2 / len(SMOOTH), f"{law.spec}: p = {p}"


def test_samples_of_laws_with_atoms_follow_them():
    """Counts between the quantiles, by a chi-square test."""
    for seed, law in enumerate(ATOMS[1:]):
        values = law.sample(generators(law, seed), 20_000)
        edges = np.unique(law.quantile(np.linspace(0.05, 1.0, 12)))
        expected = np.diff(law.cdf(edges), prepend=0.0)
        counts = np.histogram(values, np.nextafter([-1.0, *edges], math.inf))[0]
        p = stats.chisquare(counts, expected * 20_000).pvalue
        assert p > FALSE_ALARM / 2 / len(ATOMS), f"{law.spec}: p = {p}"
    assert set(Deterministic(3.0).sample(generators(ATOMS[0]), 5)) == {3.0}


@each_law
def test_drawing_in_pieces_gives_the_same_numbers(law):
    at_once = law.sample(generators(law), 5_000)
    sources = generators(law)
    parts = [law.sample(sources, n) for n in (1, 2, 997, 0, 3_000, 1_000)]
    np.testing.assert_array_equal(np.concatenate(parts), at_once)
    out = np.empty(5_000)
    assert law.sample(generators(law), out=out) is out
    np.testing.assert_array_equal(out, at_once)


@pytest.mark.parametrize(
    "law", [Gamma(0.001, 1.0), Weibull(0.01, 1.0), Uniform(0.0, 1e-300), LogNormal(1.0, 40.0)]
)
def test_no_sample_is_zero_or_infinite(law):
    values = law.sample(generators(law), 20_000)
    assert (values > 0.0).all()
    assert np.isfinite(values).all()


def test_sample_counts_its_generators():
    law = HyperExponential((0.5, 0.5), (1, 2))
    with pytest.raises(ValueError, match=r"^generators=1: hyperexp needs 2, one for each random"):
        law.sample(np.random.default_rng(0), 3)
    assert Mixture((0.5, 0.5), (law, law)).streams == 5


# What is refused, and how.

BAD = [
    (lambda: Pareto(0.9), "alpha=0.9: a Pareto law has a finite mean only above 1"),
    (lambda: Pareto(1), "alpha=1: a Pareto law has a finite mean only above 1"),
    (lambda: Pareto(-1), "alpha=-1: must be a finite number above 0"),
    (lambda: Pareto(1.5, low=0), "low=0: must be a finite number above 0"),
    (lambda: Exponential(0), "mean=0: must be a finite number above 0"),
    (lambda: Exponential(math.nan), "mean=nan: must be a finite number above 0"),
    (lambda: Exponential(math.inf), "mean=inf: must be a finite number above 0"),
    (lambda: Exponential("long"), "mean='long': must be a number"),
    (lambda: Exponential(True), "mean=True: must be a number"),
    (lambda: Deterministic(0), "value=0: must be a finite number above 0"),
    (lambda: LogNormal(1, 0), "sigma=0: must be a finite number above 0"),
    (lambda: LogNormal(-1, 1), "mean=-1: must be a finite number above 0"),
    (lambda: Weibull(0.001, 1), "shape=0.001: must be 0.01 or more"),
    (lambda: Gamma(-2, 1), "shape=-2: must be a finite number above 0"),
    (lambda: Erlang(1.5, 1), "phases=1.5: must be a whole number, 1 or more"),
    (lambda: Erlang(0, 1), "phases=0: must be a whole number, 1 or more"),
    (lambda: Uniform(2, 1), "low=2: must be 0 or more, and below high=1"),
    (lambda: Uniform(-1, 1), "low=-1: must be 0 or more, and below high=1"),
    (lambda: Uniform(math.nan, 1), "low=nan: must be 0 or more, and below high=1"),
    (lambda: BoundedPareto(1, 5, 5), "high=5: must be above low=5"),
    (lambda: BoundedPareto(0, 1, 5), "alpha=0: must be a finite number above 0"),
    (lambda: HyperExponential((0.5, 0.4), (1, 2)), "p=0.5/0.4: must sum to 1, not 0.9"),
    (lambda: HyperExponential((1.5, -0.5), (1, 2)), "p=1.5: each must be above 0 and at most 1"),
    (lambda: HyperExponential((0.5, 0.5), (1, 0)), "mean=0: must be a finite number above 0"),
    (
        lambda: HyperExponential((0.5, 0.5), (1,)),
        "mean has 1 and p has 2 entries: each law needs one of both",
    ),
    (lambda: HyperExponential(0.5, 1), "mean=1: must be a sequence of numbers"),
    (lambda: HyperExponential((), ()), "mean=(): needs at least one number"),
    (lambda: Mixture((1.0,), ("exp:1",)), "laws='exp:1': each must be a Distribution"),
    (lambda: Empirical([]), "values=[]: an empirical law needs at least one value"),
    (lambda: Empirical([1, 0]), "values=0: each must be a finite number above 0"),
    (lambda: Empirical([1, math.nan]), "values=nan: each must be a finite number above 0"),
    (lambda: Exponential(1).quantile(1.5), "p=1.5: must be a probability, between 0 and 1"),
    (
        lambda: Exponential(1).quantile([0.1, math.nan]),
        "p=nan: must be a probability, between 0 and 1",
    ),
    (lambda: Exponential(1).moment(0), "k=0: must be a finite number above 0"),
    (lambda: Exponential(1).scaled(0), "factor=0: must be a finite number above 0"),
    (lambda: Exponential(1).with_mean(-1), "mean=-1: must be a finite number above 0"),
    (
        lambda: Deterministic(1).density(1),
        "law=det:value=1: has no density, because single values have mass",
    ),
]


@pytest.mark.parametrize(("act", "message"), BAD, ids=[message for _, message in BAD])
def test_bad_parameters(act, message):
    with pytest.raises(ValueError) as caught:  # noqa: PT011, the whole message is compared
        act()
    assert str(caught.value) == message


KNOWN = ", ".join(LAWS)
BAD_TEXTS = {
    "gauss:1": f"law='gauss:1': unknown law 'gauss'; known are {KNOWN}",
    "": f"law='': unknown law ''; known are {KNOWN}",
    "exp": "law='exp': exp needs mean",
    "exp:rate=1": "law='exp:rate=1': exp has no parameter rate; it takes mean",
    "exp:one": "law='exp:one': mean='one' is not a number",
    "exp:mean=1,mean=2": "law='exp:mean=1,mean=2': mean is given twice",
    "exp:-1": "mean=-1: must be a finite number above 0",
    "lognormal:mean=1": "law='lognormal:mean=1': lognormal needs sigma",
    "lognormal:1": "law='lognormal:1': write lognormal:mean=...,sigma=...",
    "lognormal:": "law='lognormal:': lognormal needs mean and sigma",
    "pareto:alpha=0.9": "alpha=0.9: a Pareto law has a finite mean only above 1",
    "pareto:low=2": "law='pareto:low=2': pareto needs alpha",
    "hyperexp:p=0.9/x,mean=1/2": "law='hyperexp:p=0.9/x,mean=1/2': p='x' is not a number",
    "hyperexp:means=1/2": "law='hyperexp:means=1/2': hyperexp has no parameter means; "
    "it takes p, mean",
    "empirical:": "law='empirical:': write empirical:FILE or empirical:values=1/2/3",
    "empirical:nowhere.txt": "file=nowhere.txt: cannot be read (No such file or directory)",
    "mixture:0.5*exp:1": "law='mixture:0.5*exp:1': write mixture:0.9*(exp:1)+0.1*(det:5)",
}


@pytest.mark.parametrize("text", BAD_TEXTS)
def test_bad_texts(text):
    with pytest.raises(ValueError) as caught:  # noqa: PT011, the whole message is compared
        parse_law(text)
    assert str(caught.value) == BAD_TEXTS[text]


def test_texts_of_the_command_line():
    assert parse_law("exp:1") == parse_law("exp:mean=1") == Exponential(1)
    assert parse_law("det:1") == Deterministic(1)
    assert parse_law("pareto:1.5") == parse_law(" pareto:alpha=1.5 ") == Pareto(1.5, 1)
    assert parse_law("pareto:alpha=1.5,low=2") == Pareto(1.5, 2)
    assert parse_law("bounded-pareto:alpha=1.5,low=1,high=1e6") == BoundedPareto(1.5, 1, 1e6)
    assert parse_law("lognormal:sigma=2, mean=1") == LogNormal(1, 2)
    assert parse_law("hyperexp:p=0.9/0.1,mean=0.5/5.5").scv == pytest.approx(5.5)
    assert parse_law("erlang:phases=2,mean=1").scv == 0.5
    assert parse_law("uniform:low=0,high=2").mean == 1.0
    with pytest.raises(ValueError, match=r"^law=3: must be a text such as exp:1$"):
        parse_law(3)


def test_empirical_file(tmp_path):
    path = tmp_path / "sizes.txt"
    path.write_text("# seconds\n3\n\n1.5  # short\n")
    law = parse_law(f"empirical:{path}")
    assert law == Empirical([1.5, 3.0])
    assert parse_law(law.spec) == law
    for content, message in {
        "1\nx\n": f"file={path}, line 2: value='x': must be a number",
        "1\n\n-2\n": f"file={path}, line 3: value=-2: must be a finite number above 0",
        "# none\n": f"file={path}: has no numbers; one a line is expected",
    }.items():
        path.write_text(content)
        with pytest.raises(ValueError) as caught:  # noqa: PT011
            parse_law(f"empirical:{path}")
        assert str(caught.value) == message
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="is not a text file"):
        Empirical.from_file(path)


def test_empirical_keeps_its_values():
    values = np.array([3.0, 1.0])
    law = Empirical(values)
    values[0] = 100.0
    assert law.mean == 2.0
    with pytest.raises(ValueError, match="read-only"):
        law.values[0] = 5.0
