"""Laws of positive random times: how long a job takes, how long until the next one comes.

Every law answers the questions that queueing theory asks, in closed form: its moments, its tail
P[S > x], its quantiles, the work brought by jobs up to a size (E[S; S <= d]), and the tail of its
equilibrium law, which is what an arrival finds left of a job in service. A moment that is
infinite is returned as ``math.inf``.

Laws are immutable. Each has a one-line text, for the command line and for records:

>>> law = parse_law("pareto:alpha=1.5")
>>> law
Pareto(alpha=1.5, low=1.0)
>>> law.mean, law.second_moment
(3.0, inf)
>>> law.spec
'pareto:alpha=1.5,low=1'
>>> parse_law(law.spec) == law
True

Samples come from numpy generators handed in by the caller, one for each random ingredient, so
that drawing a million numbers at once or in pieces gives the same million numbers.

>>> import numpy
>>> numpy.round(law.sample(numpy.random.default_rng(1), 3), 2)
array([ 2.04,  1.23, 36.  ])
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import MISSING, dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from scipy import special

from whonext.checks import number, positive, whole

__all__ = [
    "LAWS",
    "BoundedPareto",
    "Deterministic",
    "Distribution",
    "Empirical",
    "Erlang",
    "Exponential",
    "Gamma",
    "HyperExponential",
    "LogNormal",
    "Mixture",
    "Pareto",
    "Uniform",
    "Weibull",
    "parse_law",
]

#: float64 throughout; the stubs of scipy.special promise less.
FloatArray = NDArray[Any]

#: The least a sample may be. A draw that underflows is raised to it, so that no job has size 0.
SMALLEST = float(np.finfo(np.float64).tiny)

#: Limits such as log(0) = -inf and 1 / inf = 0 are meant, and need no warning.
_quietly = np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore")


class Distribution(ABC):
    """A law of a positive random variable S.

    Methods that take ``x``, ``d`` or ``p`` take a number or an array of any shape, and give a
    number for a number, an array for an array. An ``x`` or ``d`` below 0 counts as 0. Times are
    in the unit of the parameters.

    A new family states its parameters as a frozen dataclass and fills in ``_moment``, ``_tail``,
    ``_quantile``, ``_partial_moment``, ``_upper_moment`` and ``_fill``; the rest follows, and is
    replaced where a closed form loses fewer digits.

    Attributes
    ----------
    name
        The word for the family in :func:`parse_law`.
    streams
        How many generators :meth:`sample` needs, one for each random ingredient.
    times
        The parameters measured in time, which :meth:`scaled` multiplies.
    words
        Words in the law's text that are not the names of its parameters.
    """

    name: ClassVar[str]
    streams: int = 1
    times: ClassVar[tuple[str, ...]] = ("mean",)
    words: ClassVar[dict[str, str]] = {}

    # Moments.

    if TYPE_CHECKING:  # a parameter in some families, computed in others

        @property
        def mean(self) -> float:
            """E[S]."""

    @abstractmethod
    def _moment(self, k: float) -> float:
        """E[S^k] for k > 0."""

    @_quietly
    def moment(self, k: float) -> float:
        """E[S^k] for any real k > 0; ``math.inf`` where it is infinite."""
        return self._moment(positive("k", k))

    @property
    def second_moment(self) -> float:
        """E[S^2], which may be infinite."""
        return self.moment(2.0)

    @property
    def scv(self) -> float:
        """Squared coefficient of variation, Var[S] / E[S]^2, which may be infinite."""
        return max(0.0, self.second_moment / self.mean**2 - 1.0)

    @property
    def variance(self) -> float:
        """Var[S], which may be infinite."""
        return self.scv * self.mean**2

    # Probabilities.

    @abstractmethod
    def _tail(self, x: FloatArray) -> FloatArray:
        """P[S > x] for x >= 0."""

    def _cdf(self, x: FloatArray) -> FloatArray:
        return 1.0 - self._tail(x)

    def _density(self, x: FloatArray) -> FloatArray:  # noqa: ARG002
        raise ValueError(f"law={self.spec}: has no density, because single values have mass")

    @abstractmethod
    def _quantile(self, p: FloatArray) -> FloatArray:
        """Give the least x with P[S <= x] >= p, for p in [0, 1]."""

    @_quietly
    def tail(self, x: ArrayLike) -> Any:
        """P[S > x]."""
        return _plain(self._tail(_from_zero(x)))

    @_quietly
    def cdf(self, x: ArrayLike) -> Any:
        """P[S <= x]."""
        return _plain(self._cdf(_from_zero(x)))

    @_quietly
    def density(self, x: ArrayLike) -> Any:
        """Probability density at x.

        Raises
        ------
        ValueError
            Where single values have mass, so that there is none.
        """
        values = np.asarray(x, dtype=np.float64)
        inside = (values >= 0.0) & (values < math.inf)
        return _plain(np.where(inside, self._density(_from_zero(values)), 0.0))

    @_quietly
    def quantile(self, p: ArrayLike) -> Any:
        """Give the least x with P[S <= x] >= p.

        Raises
        ------
        ValueError
            Where ``p`` is not between 0 and 1.
        """
        levels = np.asarray(p, dtype=np.float64)
        for wrong in levels[~((levels >= 0.0) & (levels <= 1.0))].ravel()[:1]:
            raise ValueError(f"p={wrong:g}: must be a probability, between 0 and 1")
        return _plain(self._quantile(levels))

    # Work: how much of it lies below and above a size.

    @abstractmethod
    def _partial_moment(self, k: float, d: FloatArray) -> FloatArray:
        """E[S^k; S <= d] for d >= 0."""

    @abstractmethod
    def _upper_moment(self, k: float, d: FloatArray) -> FloatArray:
        """E[S^k; S > d] for d >= 0."""

    def _excess_mean(self, x: FloatArray) -> FloatArray:
        """E[max(S - x, 0)] for x >= 0."""
        tail = self._tail(x)
        return self._upper_moment(1.0, x) - np.where(tail > 0.0, x, 0.0) * tail

    @_quietly
    def partial_moment(self, k: float, d: ArrayLike) -> Any:
        """E[S^k; S <= d]: the moment, restricted to jobs no larger than d."""
        return _plain(self._partial_moment(positive("k", k), _from_zero(d)))

    @_quietly
    def upper_moment(self, k: float, d: ArrayLike) -> Any:
        """E[S^k; S > d]: the moment, restricted to jobs larger than d."""
        return _plain(self._upper_moment(positive("k", k), _from_zero(d)))

    def partial_mean(self, d: ArrayLike) -> Any:
        """E[S; S <= d]: the work that jobs no larger than d bring, per arrival."""
        return self.partial_moment(1.0, d)

    @_quietly
    def capped_moment(self, k: float, x: ArrayLike) -> Any:
        """E[min(S, x)^k]: the moment of what a job receives before it has had x."""
        order, cap = positive("k", k), _from_zero(x)
        tail = self._tail(cap)
        power = np.where(tail > 0.0, cap, 0.0) ** order
        return _plain(self._partial_moment(order, cap) + power * tail)

    @_quietly
    def excess_mean(self, x: ArrayLike) -> Any:
        """E[max(S - x, 0)]: the work left in a job once it has had x."""
        return _plain(np.maximum(self._excess_mean(_from_zero(x)), 0.0))

    def equilibrium_tail(self, x: ArrayLike) -> Any:
        """P[S_e > x]: the tail of what is left of a job that is seen in service.

        It is the integral of P[S > u] over u > x, divided by E[S].
        """
        return self.excess_mean(x) / self.mean

    # Samples.

    @abstractmethod
    def _fill(self, generators: Sequence[Generator], out: FloatArray) -> None:
        """Write independent draws into ``out``, using each generator's numbers in order."""

    @_quietly
    def sample(
        self,
        generators: Generator | Sequence[Generator],
        n: int | None = None,
        out: FloatArray | None = None,
    ) -> FloatArray:
        """Draw independent values, all above 0.

        Parameters
        ----------
        generators
            ``streams`` numpy generators, or a single one where one is enough.
        n
            How many; drawing them in pieces gives the same numbers as drawing them at once.
        out
            A contiguous float64 array to fill, in place of ``n``.

        Returns
        -------
        numpy.ndarray
            float64, shape (n,).

        Raises
        ------
        ValueError
            Where the number of generators is not ``streams``.
        """
        sources = [generators] if isinstance(generators, Generator) else list(generators)
        if len(sources) != self.streams:
            raise ValueError(
                f"generators={len(sources)}: {self.name} needs {self.streams}, "
                "one for each random ingredient"
            )
        values = np.empty(n or 0) if out is None else out
        self._fill(sources, values)
        return np.maximum(values, SMALLEST, out=values)

    # Other laws of the same shape, and text.

    def scaled(self, factor: float) -> Distribution:
        """Give the law of ``factor * S``."""
        return self._scaled(positive("factor", factor))

    def _scaled(self, factor: float) -> Distribution:
        by = {name: getattr(self, name) * factor for name in self.times}
        return replace(self, **by)  # type: ignore[type-var]

    def with_mean(self, mean: float) -> Distribution:
        """Give the law of the same shape with another mean."""
        target = positive("mean", mean)
        if self.times == ("mean",):
            return replace(self, mean=target)  # type: ignore[type-var]
        return self.scaled(target / self.mean)

    @property
    def spec(self) -> str:
        """The text that :func:`parse_law` turns back into this law."""
        words = {parameter: word for word, parameter in self.words.items()}
        names = [each.name for each in fields(self)]  # type: ignore[arg-type]
        parts = (f"{words.get(name, name)}={_write(getattr(self, name))}" for name in names)
        return f"{self.name}:{','.join(parts)}"

    @classmethod
    def _from_text(cls, arguments: str, text: str) -> Distribution:
        """Make the law from what follows its name in ``text``."""
        return cls(**_read_parameters(cls, arguments, text))


# ------------------------------------------------------------------------------------------------
# Light tails
# ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Deterministic(Distribution):
    """Always the same: S = value."""

    value: float

    name = "det"
    times = ("value",)

    def __post_init__(self) -> None:
        _keep(self, value=positive("value", self.value))

    @property
    def mean(self) -> float:
        """E[S] = value."""
        return self.value

    @property
    def scv(self) -> float:
        """0: nothing varies."""
        return 0.0

    def _moment(self, k: float) -> float:
        return _power(self.value, k)

    def _tail(self, x: FloatArray) -> FloatArray:
        return np.where(x < self.value, 1.0, 0.0)

    def _quantile(self, p: FloatArray) -> FloatArray:
        return np.full_like(p, self.value)

    def _partial_moment(self, k: float, d: FloatArray) -> FloatArray:
        return np.where(d < self.value, 0.0, self._moment(k))

    def _upper_moment(self, k: float, d: FloatArray) -> FloatArray:
        return np.where(d < self.value, self._moment(k), 0.0)

    def _excess_mean(self, x: FloatArray) -> FloatArray:
        return np.maximum(self.value - x, 0.0)

    def _fill(self, generators: Sequence[Generator], out: FloatArray) -> None:  # noqa: ARG002
        out.fill(self.value)


@dataclass(frozen=True)
class Uniform(Distribution):
    """Anything between ``low`` and ``high``, all equally likely."""

    low: float
    high: float

    name = "uniform"
    times = ("low", "high")

    def __post_init__(self) -> None:
        _keep(self, low=number("low", self.low), high=positive("high", self.high))
        if not 0.0 <= self.low < self.high:
            raise ValueError(f"low={self.low:g}: must be 0 or more, and below high={self.high:g}")

    @property
    def mean(self) -> float:
        """E[S] = (low + high) / 2."""
        return (self.low + self.high) / 2.0

    @property
    def scv(self) -> float:
        """Var[S] = (high - low)^2 / 12, over E[S]^2."""
        return (self.high - self.low) ** 2 / 12.0 / self.mean**2

    def _inside(self, x: FloatArray) -> FloatArray:
        return np.clip(x, self.low, self.high)

    def _between(self, k: float, start: Any, stop: Any) -> FloatArray:
        """E[S^k; start < S <= stop] for points of the support."""
        return (stop ** (k + 1.0) - start ** (k + 1.0)) / (k + 1.0) / (self.high - self.low)

    def _moment(self, k: float) -> float:
        return float(self._between(k, np.float64(self.low), np.float64(self.high)))

    def _tail(self, x: FloatArray) -> FloatArray:
        return (self.high - self._inside(x)) / (self.high - self.low)

    def _cdf(self, x: FloatArray) -> FloatArray:
        return (self._inside(x) - self.low) / (self.high - self.low)

    def _density(self, x: FloatArray) -> FloatArray:
        return np.where(x == self._inside(x), 1.0 / (self.high - self.low), 0.0)

    def _quantile(self, p: FloatArray) -> FloatArray:
        return self._inside(self.low + (self.high - self.low) * p)

    def _partial_moment(self, k: float, d: FloatArray) -> FloatArray:
        return self._between(k, self.low, self._inside(d))

    def _upper_moment(self, k: float, d: FloatArray) -> FloatArray:
        return self._between(k, self._inside(d), self.high)

    def _excess_mean(self, x: FloatArray) -> FloatArray:
        top = self._inside(x)
        return (self.high - top) * self._tail(top) / 2.0 + np.maximum(self.low - x, 0.0)

    def _fill(self, generators: Sequence[Generator], out: FloatArray) -> None:
        _fill_uniform(generators[0], out)
        out *= self.high - self.low
        out += self.low


@dataclass(frozen=True)
class Exponential(Distribution):
    """Without memory: P[S > x] = exp(-x / mean).

    >>> law = Exponential(2.0)
    >>> law.second_moment, law.scv
    (8.0, 1.0)
    """

    mean: float

    name = "exp"

    def __post_init__(self) -> None:
        _keep(self, mean=positive("mean", self.mean))

    @property
    def scv(self) -> float:
        """1, the yardstick for all other laws."""
        return 1.0

    def _moment(self, k: float) -> float:
        return _power(self.mean, k) * float(special.gamma(1.0 + k))

    def _tail(self, x: FloatArray) -> FloatArray:
        return np.exp(-x / self.mean)

    def _cdf(self, x: FloatArray) -> FloatArray:
        return -np.expm1(-x / self.mean)

    def _density(self, x: FloatArray) -> FloatArray:
        return np.exp(-x / self.mean) / self.mean

    def _quantile(self, p: FloatArray) -> FloatArray:
        return -self.mean * np.log1p(-p)

    def _partial_moment(self, k: float, d: FloatArray) -> FloatArray:
        return self._moment(k) * special.gammainc(1.0 + k, d / self.mean)

    def _upper_moment(self, k: float, d: FloatArray) -> FloatArray:
        return self._moment(k) * special.gammaincc(1.0 + k, d / self.mean)

    def _excess_mean(self, x: FloatArray) -> FloatArray:
        return self.mean * self._tail(x)

    def _fill(self, generators: Sequence[Generator], out: FloatArray) -> None:
        generators[0].standard_exponential(out=out)
        out *= self.mean


class _GammaFamily(Distribution):
    """What gamma and Erlang share: the density is proportional to x^(order - 1) exp(-x / unit)."""

    if TYPE_CHECKING:

        @property
        def _order(self) -> float: ...

    @property
    def _unit(self) -> float:
        return self.mean / self._order

    @property
    def scv(self) -> float:
        """1 over the shape, or over the number of phases."""
        return 1.0 / self._order

    def _moment(self, k: float) -> float:
        return _power(self._unit, k) * float(special.poch(self._order, k))

    def _tail(self, x: FloatArray) -> FloatArray:
        return special.gammaincc(self._order, x / self._unit)

    def _cdf(self, x: FloatArray) -> FloatArray:
        return special.gammainc(self._order, x / self._unit)

    def _density(self, x: FloatArray) -> FloatArray:
        y = x / self._unit
        log = special.xlogy(self._order - 1.0, y) - y - special.gammaln(self._order)
        return np.exp(log) / self._unit

    def _quantile(self, p: FloatArray) -> FloatArray:
        return self._unit * special.gammaincinv(self._order, p)

    def _partial_moment(self, k: float, d: FloatArray) -> FloatArray:
        return self._moment(k) * special.gammainc(self._order + k, d / self._unit)

    def _upper_moment(self, k: float, d: FloatArray) -> FloatArray:
        return self._moment(k) * special.gammaincc(self._order + k, d / self._unit)

    def _fill(self, generators: Sequence[Generator], out: FloatArray) -> None:
        generators[0].standard_gamma(self._order, out=out)
        out *= self._unit


@dataclass(frozen=True)
class Gamma(_GammaFamily):
    """Bursty for ``shape`` < 1, exponential at 1, nearly constant for a large shape."""

    shape: float
    mean: float

    name = "gamma"

    def __post_init__(self) -> None:
        _keep(self, shape=positive("shape", self.shape), mean=positive("mean", self.mean))

    @property
    def _order(self) -> float:
        return self.shape


@dataclass(frozen=True)
class Erlang(_GammaFamily):
    """A chain of ``phases`` equal exponential times, of this mean in all."""

    phases: int
    mean: float

    name = "erlang"

    def __post_init__(self) -> None:
        _keep(self, phases=whole("phases", self.phases), mean=positive("mean", self.mean))

    @property
    def _order(self) -> float:
        return float(self.phases)


# ------------------------------------------------------------------------------------------------
# Heavier tails
# ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Weibull(Distribution):
    """P[S > x] = exp(-(x / unit)^shape): heavier than exponential for ``shape`` < 1, else lighter.

    The unit of time follows from the mean. Shapes below 0.01 are beyond double precision.
    """

    shape: float
    mean: float

    name = "weibull"

    def __post_init__(self) -> None:
        _keep(self, shape=positive("shape", self.shape), mean=positive("mean", self.mean))
        if self.shape < 0.01:
            raise ValueError(f"shape={self.shape:g}: must be 0.01 or more")

    @property
    def _unit(self) -> float:
        return self.mean / float(special.gamma(1.0 + 1.0 / self.shape))

    def _clock(self, x: FloatArray) -> FloatArray:
        """(x / unit)^shape; of S itself, it is exponential with mean 1."""
        return (x / self._unit) ** self.shape

    def _moment(self, k: float) -> float:
        return _power(self._unit, k) * float(special.gamma(1.0 + k / self.shape))

    def _tail(self, x: FloatArray) -> FloatArray:
        return np.exp(-self._clock(x))

    def _cdf(self, x: FloatArray) -> FloatArray:
        return -np.expm1(-self._clock(x))

    def _density(self, x: FloatArray) -> FloatArray:
        slope = self.shape / self._unit * (x / self._unit) ** (self.shape - 1.0)
        return slope * self._tail(x)

    def _quantile(self, p: FloatArray) -> FloatArray:
        return self._unit * (-np.log1p(-p)) ** (1.0 / self.shape)

    def _partial_moment(self, k: float, d: FloatArray) -> FloatArray:
        return self._moment(k) * special.gammainc(1.0 + k / self.shape, self._clock(d))

    def _upper_moment(self, k: float, d: FloatArray) -> FloatArray:
        return self._moment(k) * special.gammaincc(1.0 + k / self.shape, self._clock(d))

    def _excess_mean(self, x: FloatArray) -> FloatArray:
        return self.mean * special.gammaincc(1.0 / self.shape, self._clock(x))

    def _fill(self, generators: Sequence[Generator], out: FloatArray) -> None:
        generators[0].standard_exponential(out=out)
        np.power(out, 1.0 / self.shape, out=out)
        out *= self._unit


@dataclass(frozen=True)
class LogNormal(Distribution):
    """The logarithm of S is normal, with standard deviation ``sigma``.

    ``mean`` is the mean of S itself, not of its logarithm. All moments are finite, yet few jobs
    can bring most of the work: at sigma = 2 the largest 5 % bring 64 % of it.

    >>> law = LogNormal(mean=1.0, sigma=2.0)
    >>> round(law.upper_moment(1, law.quantile(0.95)), 2)
    0.64
    """

    mean: float
    sigma: float

    name = "lognormal"

    def __post_init__(self) -> None:
        _keep(self, mean=positive("mean", self.mean), sigma=positive("sigma", self.sigma))

    @property
    def scv(self) -> float:
        """exp(sigma^2) - 1."""
        return float(np.expm1(self.sigma**2))

    @property
    def _middle(self) -> float:
        """E[log S]."""
        return math.log(self.mean) - self.sigma**2 / 2.0

    def _score(self, x: FloatArray) -> FloatArray:
        """How many standard deviations log x is above its mean."""
        return (np.log(x) - self._middle) / self.sigma

    def _moment(self, k: float) -> float:
        return _power(self.mean, k) * float(np.exp(k * (k - 1.0) * self.sigma**2 / 2.0))

    def _tail(self, x: FloatArray) -> FloatArray:
        return special.ndtr(-self._score(x))

    def _cdf(self, x: FloatArray) -> FloatArray:
        return special.ndtr(self._score(x))

    def _density(self, x: FloatArray) -> FloatArray:
        y = np.maximum(x, SMALLEST)
        return _normal_density(self._score(y)) / (self.sigma * y)

    def _quantile(self, p: FloatArray) -> FloatArray:
        return np.exp(self._middle + self.sigma * special.ndtri(p))

    def _partial_moment(self, k: float, d: FloatArray) -> FloatArray:
        return self._moment(k) * special.ndtr(self._score(d) - k * self.sigma)

    def _upper_moment(self, k: float, d: FloatArray) -> FloatArray:
        return self._moment(k) * special.ndtr(k * self.sigma - self._score(d))

    def _fill(self, generators: Sequence[Generator], out: FloatArray) -> None:
        generators[0].standard_normal(out=out)
        out *= self.sigma
        out += self._middle
        np.exp(out, out=out)


@dataclass(frozen=True)
class Pareto(Distribution):
    """A power law: P[S > x] = (low / x)^alpha for x >= low.

    The moment of order k is infinite where alpha <= k; the variance, up to alpha = 2. A law with
    alpha <= 1 has not even a finite mean and is refused.

    >>> Pareto(1.5).equilibrium_tail(100.0)  # 100 ** (1 - 1.5) / 1.5
    0.06666666666666667
    """

    alpha: float
    low: float = 1.0

    name = "pareto"
    times = ("low",)

    def __post_init__(self) -> None:
        _keep(self, alpha=positive("alpha", self.alpha), low=positive("low", self.low))
        if self.alpha <= 1.0:
            raise ValueError(f"alpha={self.alpha:g}: a Pareto law has a finite mean only above 1")

    @property
    def mean(self) -> float:
        """E[S] = low alpha / (alpha - 1)."""
        return self.alpha * self.low / (self.alpha - 1.0)

    @property
    def scv(self) -> float:
        """1 / (alpha (alpha - 2)), infinite up to alpha = 2."""
        return 1.0 / (self.alpha * (self.alpha - 2.0)) if self.alpha > 2.0 else math.inf

    def _ratio(self, x: FloatArray) -> FloatArray:
        """Give x / low, or 1 below the least size."""
        return np.maximum(x, self.low) / self.low

    def _moment(self, k: float) -> float:
        if self.alpha <= k:
            return math.inf
        return self.alpha / (self.alpha - k) * _power(self.low, k)

    def _tail(self, x: FloatArray) -> FloatArray:
        return self._ratio(x) ** -self.alpha

    def _cdf(self, x: FloatArray) -> FloatArray:
        return -np.expm1(-self.alpha * np.log(self._ratio(x)))

    def _density(self, x: FloatArray) -> FloatArray:
        return np.where(x < self.low, 0.0, self.alpha / x * self._tail(x))

    def _quantile(self, p: FloatArray) -> FloatArray:
        return self.low * np.exp(-np.log1p(-p) / self.alpha)

    def _partial_moment(self, k: float, d: FloatArray) -> FloatArray:
        below = self.alpha * _power(self.low, k) * _power_integral(k - self.alpha, self._ratio(d))
        return np.where(np.isinf(d), self._moment(k), below)

    def _upper_moment(self, k: float, d: FloatArray) -> FloatArray:
        above = self._moment(k) * self._ratio(d) ** (k - self.alpha)
        return np.where(np.isinf(d), 0.0, above)

    def _excess_mean(self, x: FloatArray) -> FloatArray:
        beyond = self.low / (self.alpha - 1.0) * self._ratio(x) ** (1.0 - self.alpha)
        return beyond + np.maximum(self.low - x, 0.0)

    def _fill(self, generators: Sequence[Generator], out: FloatArray) -> None:
        # The logarithm of S / low is exponential. (numpy's own pareto is another law, Lomax.)
        generators[0].standard_exponential(out=out)
        out *= 1.0 / self.alpha
        np.exp(out, out=out)
        out *= self.low


@dataclass(frozen=True)
class BoundedPareto(Distribution):
    """A power law with a largest size: the Pareto law, given that S <= high. Any alpha > 0 will do.

    P[S > x] = ((low / x)^alpha - (low / high)^alpha) / (1 - (low / high)^alpha).
    """

    alpha: float
    low: float
    high: float

    name = "bounded-pareto"
    times = ("low", "high")

    def __post_init__(self) -> None:
        _keep(self, alpha=positive("alpha", self.alpha))
        _keep(self, low=positive("low", self.low), high=positive("high", self.high))
        if self.high <= self.low:
            raise ValueError(f"high={self.high:g}: must be above low={self.low:g}")

    @property
    def mean(self) -> float:
        """E[S]."""
        return self.moment(1.0)

    @property
    def _mass(self) -> float:
        """The probability that a Pareto law without a bound gives to [low, high]."""
        return -math.expm1(-self.alpha * math.log(self.high / self.low))

    def _inside(self, x: FloatArray) -> FloatArray:
        return np.clip(x, self.low, self.high)

    def _pareto_tail(self, x: FloatArray) -> FloatArray:
        """P[S > x] without the bound, for x >= low."""
        return np.exp(-self.alpha * np.log(x / self.low))

    def _between(self, k: float, start: Any, stop: Any) -> FloatArray:
        """E[S^k; start < S <= stop] for points of the support."""
        scale = self.alpha / self._mass * self._pareto_tail(start) * start**k
        return scale * _power_integral(k - self.alpha, stop / start)

    def _moment(self, k: float) -> float:
        return float(self._between(k, np.float64(self.low), np.float64(self.high)))

    def _tail(self, x: FloatArray) -> FloatArray:
        y = self._inside(x)
        not_beyond = -np.expm1(-self.alpha * np.log(self.high / y))
        return self._pareto_tail(y) * not_beyond / self._mass

    def _cdf(self, x: FloatArray) -> FloatArray:
        return -np.expm1(-self.alpha * np.log(self._inside(x) / self.low)) / self._mass

    def _density(self, x: FloatArray) -> FloatArray:
        y = self._inside(x)
        return np.where(x == y, self.alpha / y * self._pareto_tail(y) / self._mass, 0.0)

    def _quantile(self, p: FloatArray) -> FloatArray:
        x = self.low * np.exp(-np.log1p(-p * self._mass) / self.alpha)
        return np.where(p == 1.0, self.high, np.minimum(x, self.high))

    def _partial_moment(self, k: float, d: FloatArray) -> FloatArray:
        return self._between(k, self.low, self._inside(d))

    def _upper_moment(self, k: float, d: FloatArray) -> FloatArray:
        return self._between(k, self._inside(d), self.high)

    def _excess_mean(self, x: FloatArray) -> FloatArray:
        y = self._inside(x)
        span = np.log(self.high / y)
        area = _power_integral(1.0 - self.alpha, self.high / y)
        area = area - np.exp(-self.alpha * span) * np.expm1(span)
        return y * self._pareto_tail(y) * area / self._mass + np.maximum(self.low - x, 0.0)

    def _fill(self, generators: Sequence[Generator], out: FloatArray) -> None:
        _fill_uniform(generators[0], out)
        out *= -self._mass
        np.log1p(out, out=out)
        out *= -1.0 / self.alpha
        np.exp(out, out=out)
        out *= self.low
        np.minimum(out, self.high, out=out)


# ------------------------------------------------------------------------------------------------
# Mixtures and data
# ------------------------------------------------------------------------------------------------


class _MixtureFamily(Distribution):
    """One of several laws, chosen at random for each job: every answer is a weighted mean."""

    if TYPE_CHECKING:

        @property
        def _parts(self) -> tuple[tuple[float, Distribution], ...]: ...

    @property
    def mean(self) -> float:
        """The weighted mean of the laws' means."""
        return sum(weight * law.mean for weight, law in self._parts)

    def _moment(self, k: float) -> float:
        return sum(weight * law._moment(k) for weight, law in self._parts)

    def _tail(self, x: FloatArray) -> FloatArray:
        return _sum(weight * law._tail(x) for weight, law in self._parts)

    def _cdf(self, x: FloatArray) -> FloatArray:
        return _sum(weight * law._cdf(x) for weight, law in self._parts)

    def _density(self, x: FloatArray) -> FloatArray:
        return _sum(weight * law._density(x) for weight, law in self._parts)

    def _partial_moment(self, k: float, d: FloatArray) -> FloatArray:
        return _sum(weight * law._partial_moment(k, d) for weight, law in self._parts)

    def _upper_moment(self, k: float, d: FloatArray) -> FloatArray:
        return _sum(weight * law._upper_moment(k, d) for weight, law in self._parts)

    def _excess_mean(self, x: FloatArray) -> FloatArray:
        return _sum(weight * law._excess_mean(x) for weight, law in self._parts)

    def _quantile(self, p: FloatArray) -> FloatArray:
        each = [law._quantile(p) for _, law in self._parts]
        return _invert(self._cdf, p, np.minimum.reduce(each), np.maximum.reduce(each))


@dataclass(frozen=True)
class HyperExponential(_MixtureFamily):
    """Mostly short, sometimes long: a mixture of exponentials. Its scv is 1 or more.

    >>> law = HyperExponential(probabilities=(0.9, 0.1), means=(0.5, 5.5))
    >>> round(law.mean, 12), round(law.scv, 12)
    (1.0, 5.5)
    """

    probabilities: tuple[float, ...]
    means: tuple[float, ...]

    name = "hyperexp"
    streams = 2  # which phase, and how long
    words: ClassVar[dict[str, str]] = {"p": "probabilities", "mean": "means"}

    def __post_init__(self) -> None:
        means = tuple(positive("mean", each) for each in _several("mean", self.means))
        _keep(self, probabilities=_probabilities("p", self.probabilities), means=means)
        _same_number("mean", means, "p", self.probabilities)

    @cached_property
    def _parts(self) -> tuple[tuple[float, Distribution], ...]:
        pairs = zip(self.probabilities, self.means, strict=True)
        return tuple((p, Exponential(mean)) for p, mean in pairs)

    def _fill(self, generators: Sequence[Generator], out: FloatArray) -> None:
        phase = choose(generators[0], self.probabilities, len(out))
        generators[1].standard_exponential(out=out)
        out *= np.asarray(self.means)[phase]

    def _scaled(self, factor: float) -> HyperExponential:
        return replace(self, means=tuple(mean * factor for mean in self.means))

    def with_mean(self, mean: float) -> Distribution:
        """Give the law of the same shape with another mean."""
        return self.scaled(positive("mean", mean) / self.mean)


@dataclass(frozen=True)
class Mixture(_MixtureFamily):
    """One of any laws, chosen at random for each job.

    Its text has each law in parentheses, after its weight:

    >>> parse_law("mixture:0.9*(exp:1)+0.1*(det:5)").mean
    1.4
    """

    weights: tuple[float, ...]
    laws: tuple[Distribution, ...]

    name = "mixture"
    times = ()

    def __post_init__(self) -> None:
        _keep(self, weights=_probabilities("weights", self.weights), laws=tuple(self.laws))
        _same_number("laws", self.laws, "weights", self.weights)
        for law in self.laws:
            if not isinstance(law, Distribution):
                raise ValueError(f"laws={law!r}: each must be a Distribution")

    @property
    def streams(self) -> int:  # type: ignore[override]
        """One for the choice, and those of each law."""
        return 1 + sum(law.streams for law in self.laws)

    @cached_property
    def _parts(self) -> tuple[tuple[float, Distribution], ...]:
        return tuple(zip(self.weights, self.laws, strict=True))

    def _fill(self, generators: Sequence[Generator], out: FloatArray) -> None:
        choice = choose(generators[0], self.weights, len(out))
        used = 1
        for index, law in enumerate(self.laws):
            rows = np.flatnonzero(choice == index)
            out[rows] = law.sample(generators[used : used + law.streams], len(rows))
            used += law.streams

    def _scaled(self, factor: float) -> Mixture:
        return Mixture(self.weights, tuple(law.scaled(factor) for law in self.laws))

    @property
    def spec(self) -> str:
        """The text that :func:`parse_law` turns back into this law."""
        return "mixture:" + "+".join(f"{_write(w)}*({law.spec})" for w, law in self._parts)

    @classmethod
    def _from_text(cls, arguments: str, text: str) -> Mixture:
        parts = [part.partition("*") for part in _split_outside_parentheses(arguments, "+")]
        if not all(law.startswith("(") and law.endswith(")") for _, _, law in parts):
            raise ValueError(f"law={text!r}: write mixture:0.9*(exp:1)+0.1*(det:5)")
        weights = tuple(_read_number("weight", weight, text) for weight, _, _ in parts)
        return cls(weights, tuple(parse_law(law[1:-1]) for _, _, law in parts))


@dataclass(frozen=True, eq=False)
class Empirical(Distribution):
    """The law of one value picked at random from data.

    Parameters
    ----------
    values
        Finite numbers above 0, in any order; kept sorted.
    source
        Where they came from. The law's text then names it, in place of the values.

    Examples
    --------
    >>> law = Empirical([1.0, 2.0, 2.0, 7.0])
    >>> law.mean, law.tail(2.0), law.quantile(0.5)
    (3.0, 0.25, 2.0)
    """

    values: FloatArray
    source: str | None = None

    name = "empirical"
    times = ("values",)

    def __post_init__(self) -> None:
        values = np.sort(np.asarray(self.values, dtype=np.float64).ravel())
        if not len(values):
            raise ValueError("values=[]: an empirical law needs at least one value")
        for wrong in values[~((values > 0.0) & (values < math.inf))][:1]:
            raise ValueError(f"values={wrong:g}: each must be a finite number above 0")
        values.flags.writeable = False
        _keep(self, values=values)

    @classmethod
    def from_file(cls, path: str | Path) -> Empirical:
        """Read a text file of one number a line; empty lines and ``#`` comments are skipped.

        Raises
        ------
        ValueError
            Where the file cannot be read, or a line is not a finite number above 0.
        """
        return cls(np.array(_read_column(Path(path))), source=str(path))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Empirical) and np.array_equal(self.values, other.values)

    def __hash__(self) -> int:
        return hash(self.values.tobytes())

    @property
    def mean(self) -> float:
        """The mean of the values."""
        return float(np.mean(self.values))

    @property
    def scv(self) -> float:
        """Variance of the values (over their number, not one less) over their squared mean."""
        return float(np.var(self.values)) / self.mean**2

    def _up_to(self, x: FloatArray) -> Any:
        """How many values are at most x."""
        return np.searchsorted(self.values, x, side="right")

    def _moment(self, k: float) -> float:
        return float(np.mean(self.values**k))

    def _tail(self, x: FloatArray) -> FloatArray:
        return (len(self.values) - self._up_to(x)) / len(self.values)

    def _cdf(self, x: FloatArray) -> FloatArray:
        return self._up_to(x) / len(self.values)

    def _quantile(self, p: FloatArray) -> FloatArray:
        reached = np.arange(1, len(self.values) + 1) / len(self.values)
        return self.values[np.searchsorted(reached, p)]

    def _partial_moment(self, k: float, d: FloatArray) -> FloatArray:
        sums = np.cumsum(np.append(0.0, self.values**k))
        return sums[self._up_to(d)] / len(self.values)

    def _upper_moment(self, k: float, d: FloatArray) -> FloatArray:
        sums = np.cumsum(np.append(self.values**k, 0.0)[::-1])[::-1]
        return sums[self._up_to(d)] / len(self.values)

    def _fill(self, generators: Sequence[Generator], out: FloatArray) -> None:
        generators[0].random(out=out)
        out *= len(self.values)
        np.take(self.values, out.astype(np.int64), out=out)

    def _scaled(self, factor: float) -> Empirical:
        return Empirical(self.values * factor)

    @property
    def spec(self) -> str:
        """The text that :func:`parse_law` turns back into this law: its source, or its values."""
        return f"empirical:{self.source or 'values=' + _write(tuple(self.values))}"

    @classmethod
    def _from_text(cls, arguments: str, text: str) -> Empirical:
        if not arguments:
            raise ValueError(f"law={text!r}: write empirical:FILE or empirical:values=1/2/3")
        if not arguments.startswith("values="):
            return cls.from_file(arguments)
        numbers = arguments.removeprefix("values=").split("/")
        return cls(np.array([_read_number("values", each, text) for each in numbers]))


#: The families, by the word that names them in a text.
LAWS: dict[str, type[Distribution]] = {
    law.name: law
    for law in (
        Exponential,
        Deterministic,
        LogNormal,
        Pareto,
        BoundedPareto,
        HyperExponential,
        Weibull,
        Gamma,
        Erlang,
        Uniform,
        Empirical,
        Mixture,
    )
}


# ------------------------------------------------------------------------------------------------
# Reading and writing text
# ------------------------------------------------------------------------------------------------


def parse_law(text: str) -> Distribution:
    """Make the law that a text names: ``name:parameter=value,...``.

    Parameters
    ----------
    text
        For example ``exp:1``, ``lognormal:mean=1,sigma=1``, ``pareto:alpha=1.5`` (its low is 1),
        ``hyperexp:p=0.9/0.1,mean=0.5/5.5``, ``empirical:FILE``. A parameter's name may be left
        out where only one is required.

    Raises
    ------
    ValueError
        For an unknown law (the known ones are listed), a parameter that is unknown, missing or
        given twice, or a value that the law refuses.

    Examples
    --------
    >>> parse_law("exp:1")
    Exponential(mean=1.0)
    >>> parse_law("exp:rate=1")
    Traceback (most recent call last):
    ValueError: law='exp:rate=1': exp has no parameter rate; it takes mean
    """
    if not isinstance(text, str):
        raise ValueError(f"law={text!r}: must be a text such as exp:1")
    name, _, arguments = text.strip().partition(":")
    if name not in LAWS:
        raise ValueError(f"law={text!r}: unknown law {name!r}; known are {', '.join(LAWS)}")
    return LAWS[name]._from_text(arguments.strip(), text)


def _read_parameters(law: type[Distribution], arguments: str, text: str) -> dict[str, Any]:
    """Read the parameters of a law from ``word=value,word=value``."""
    defaults = {each.name: each.default for each in fields(law)}  # type: ignore[arg-type]
    words = law.words or {name: name for name in defaults}
    required = [word for word, name in words.items() if defaults[name] is MISSING]
    found: dict[str, Any] = {}
    for part in filter(None, arguments.split(",")):
        word, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals and len(required) == 1 and not found:
            word, value = required[0], word
        elif not equals:
            raise ValueError(f"law={text!r}: write {law.name}:{'=...,'.join(words)}=...")
        if word not in words:
            raise ValueError(
                f"law={text!r}: {law.name} has no parameter {word}; it takes {', '.join(words)}"
            )
        if words[word] in found:
            raise ValueError(f"law={text!r}: {word} is given twice")
        several = tuple(_read_number(word, each, text) for each in value.split("/"))
        found[words[word]] = several if law.words else _read_number(word, value, text)
    missing = [word for word in required if words[word] not in found]
    if missing:
        raise ValueError(f"law={text!r}: {law.name} needs {' and '.join(missing)}")
    return found


def _read_number(word: str, value: str, text: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise ValueError(f"law={text!r}: {word}={value!r} is not a number") from None


def _read_column(path: Path) -> list[float]:
    """Read the numbers in a text file, one a line."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise ValueError(f"file={path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise ValueError(f"file={path}: is not a text file") from None
    numbers = []
    for row, line in enumerate(lines, start=1):
        content = line.partition("#")[0].strip()
        if content:
            numbers.append(positive(f"file={path}, line {row}: value", content))
    if not numbers:
        raise ValueError(f"file={path}: has no numbers; one a line is expected")
    return numbers


def _split_outside_parentheses(text: str, mark: str) -> list[str]:
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == mark and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def _write(value: Any) -> str:
    """Write a number, or several, so that reading gives back the very same."""
    if isinstance(value, tuple):
        return "/".join(_write(each) for each in value)
    return repr(float(value)).removesuffix(".0")


# ------------------------------------------------------------------------------------------------
# Checking
# ------------------------------------------------------------------------------------------------


def _several(name: str, values: Any) -> tuple[float, ...]:
    try:
        numbers = tuple(number(name, each) for each in values)
    except TypeError:
        raise ValueError(f"{name}={values!r}: must be a sequence of numbers") from None
    if not numbers:
        raise ValueError(f"{name}=(): needs at least one number")
    return numbers


def _probabilities(name: str, values: Any) -> tuple[float, ...]:
    numbers = _several(name, values)
    for each in numbers:
        if not 0.0 < each <= 1.0:
            raise ValueError(f"{name}={each:g}: each must be above 0 and at most 1")
    if abs(math.fsum(numbers) - 1.0) > 1e-9:
        raise ValueError(f"{name}={_write(numbers)}: must sum to 1, not {math.fsum(numbers):g}")
    return numbers


def _same_number(name: str, values: Sequence[Any], other: str, others: Sequence[Any]) -> None:
    if len(values) != len(others):
        raise ValueError(
            f"{name} has {len(values)} and {other} has {len(others)} entries: "
            "each law needs one of both"
        )


def _keep(law: Any, **parameters: Any) -> None:
    """Set the checked parameters of a law that is otherwise frozen."""
    for name, value in parameters.items():
        object.__setattr__(law, name, value)


# ------------------------------------------------------------------------------------------------
# Arithmetic
# ------------------------------------------------------------------------------------------------


def _from_zero(x: ArrayLike) -> FloatArray:
    return np.maximum(np.asarray(x, dtype=np.float64), 0.0)


def _plain(values: Any) -> Any:
    """Give a Python float for a single number, else the array."""
    return float(values) if np.ndim(values) == 0 else np.asarray(values)


def _sum(terms: Any) -> FloatArray:
    return np.asarray(sum(terms), dtype=np.float64)


def _power(base: float, exponent: float) -> float:
    """Give base ** exponent, infinite where it overflows."""
    return float(np.float64(base) ** exponent)


def _power_integral(p: float, top: FloatArray) -> FloatArray:
    """Integrate u^(p - 1) over 1 < u <= top; sound through p = 0, where it is a logarithm."""
    span = np.log(top)
    return span * special.exprel(p * span)


def _normal_density(z: FloatArray) -> FloatArray:
    return np.exp(-(z**2) / 2.0) / math.sqrt(2.0 * math.pi)


def _fill_uniform(generator: Generator, out: FloatArray) -> None:
    """Fill with uniform numbers of the open interval (0, 1)."""
    generator.random(out=out)
    np.maximum(out, 2.0**-54, out=out)


def choose(generator: Generator, probabilities: Sequence[float], n: int) -> NDArray[np.int64]:
    """Draw n indices with these probabilities, from one uniform number each."""
    uniform = generator.random(n)
    choice = np.zeros(n, dtype=np.int64)
    for bound in np.cumsum(probabilities)[:-1]:
        choice += uniform >= bound
    return choice


def _invert(cdf: Any, p: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Find the least x in [low, high] with cdf(x) >= p, by halving.

    Positive doubles are in the order of their bits read as whole numbers, so that 64 halvings of
    the bits find the very number, whatever its magnitude.
    """
    below = np.asarray(low).reshape(-1).view(np.int64) - 1
    above = np.asarray(high).reshape(-1).view(np.int64)
    level = np.asarray(p).reshape(-1)
    while np.any(above - below > 1):
        middle = below + (above - below) // 2
        enough = cdf(np.maximum(middle, 0).view(np.float64)) >= level
        above, below = np.where(enough, middle, above), np.where(enough, below, middle)
    return np.maximum(above, 0).view(np.float64).reshape(np.shape(p))
