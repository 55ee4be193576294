"""Laws of positive random times: how long a job takes, how long until the next one comes.

Every law answers the questions that queueing theory asks, in closed form: its moments, its tail
P[S > x], its quantiles, the share of work brought by jobs up to a size (E[S; S <= d]), and the
tail of its equilibrium law, which is what an arrival finds left of a job in service. A moment
that is infinite is returned as ``math.inf``.

Laws are immutable. Each has a one-line text, on the command line and in records:

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
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from scipy import special

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

FloatArray = NDArray[np.float64]

#: The smallest number a sample may be: a draw that underflows is raised to it, never to zero.
SMALLEST = float(np.finfo(np.float64).tiny)


class Distribution(ABC):
    """A law of a positive random variable S.

    Methods that take ``x``, ``d`` or ``p`` take a number or an array of any shape and return the
    same: a number for a number, an array for an array. Arguments below 0 count as 0. Times are in
    whatever unit the parameters are in.

    Attributes
    ----------
    name
        The word for the family in :func:`parse_law`.
    streams
        How many random generators :meth:`sample` needs, one for each random ingredient.
    """

    name: ClassVar[str]
    streams: int = 1
    #: The words of a law's text that differ from the names of its parameters.
    words: ClassVar[dict[str, str]] = {}

    # Moments.

    if TYPE_CHECKING:  # a parameter in some families, computed in others

        @property
        def mean(self) -> float:
            """E[S]."""

    @abstractmethod
    def _moment(self, k: float) -> float:
        """E[S^k], for k > 0."""

    def moment(self, k: float) -> float:
        """E[S^k] for any real k > 0; ``math.inf`` where it is infinite."""
        return self._moment(_positive("k", k))

    @property
    def second_moment(self) -> float:
        """E[S^2], which may be infinite."""
        return self._moment(2.0)

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
        """P[S > x], for x >= 0."""

    def _cdf(self, x: FloatArray) -> FloatArray:
        return 1.0 - self._tail(x)

    def _density(self, x: FloatArray) -> FloatArray:
        raise ValueError(f"law={self.spec}: has no density, because some values have mass")

    @abstractmethod
    def _quantile(self, p: FloatArray) -> FloatArray:
        """The least x with P[S <= x] >= p, for p in [0, 1]."""

    def tail(self, x: ArrayLike) -> Any:
        """P[S > x]."""
        return _plain(self._tail(_times(x)))

    def cdf(self, x: ArrayLike) -> Any:
        """P[S <= x]."""
        values = np.asarray(x, dtype=np.float64)
        return _plain(np.where(values < 0.0, 0.0, self._cdf(_times(values))))

    def density(self, x: ArrayLike) -> Any:
        """Probability density at x.

        Raises
        ------
        ValueError
            Where some values have mass, so that there is no density.
        """
        values = np.asarray(x, dtype=np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            return _plain(np.where(values < 0.0, 0.0, self._density(_times(values))))

    def quantile(self, p: ArrayLike) -> Any:
        """The least x with P[S <= x] >= p.

        Raises
        ------
        ValueError
            Where ``p`` is not between 0 and 1.
        """
        levels = np.asarray(p, dtype=np.float64)
        if not np.all((levels >= 0.0) & (levels <= 1.0)):
            raise ValueError(f"p={p}: a probability lies between 0 and 1")
        with np.errstate(divide="ignore"):
            return _plain(self._quantile(levels))

    # Work: how much of the load lies below and above a size.

    @abstractmethod
    def _partial_moment(self, k: float, d: FloatArray) -> FloatArray:
        """E[S^k; S <= d], for d >= 0."""

    @abstractmethod
    def _upper_moment(self, k: float, d: FloatArray) -> FloatArray:
        """E[S^k; S > d], for d >= 0."""

    def _excess_mean(self, x: FloatArray) -> FloatArray:
        tail = self._tail(x)
        return self._upper_moment(1.0, x) - np.where(tail > 0.0, x, 0.0) * tail

    def partial_moment(self, k: float, d: ArrayLike) -> Any:
        """E[S^k; S <= d]: the moment restricted to jobs no larger than d."""
        return _plain(self._partial_moment(_positive("k", k), _times(d)))

    def upper_moment(self, k: float, d: ArrayLike) -> Any:
        """E[S^k; S > d]: the moment restricted to jobs larger than d."""
        return _plain(self._upper_moment(_positive("k", k), _times(d)))

    def partial_mean(self, d: ArrayLike) -> Any:
        """E[S; S <= d]: the work brought by jobs no larger than d, per arrival."""
        return self.partial_moment(1.0, d)

    def capped_moment(self, k: float, x: ArrayLike) -> Any:
        """E[min(S, x)^k]: the moment of the service a job gets before it has had x."""
        order, cap = _positive("k", k), _times(x)
        tail = self._tail(cap)
        power = np.where(tail > 0.0, cap, 0.0) ** order
        return _plain(self._partial_moment(order, cap) + power * tail)

    def excess_mean(self, x: ArrayLike) -> Any:
        """E[max(S - x, 0)]: the work left when every job has had x."""
        return _plain(np.maximum(self._excess_mean(_times(x)), 0.0))

    def equilibrium_tail(self, x: ArrayLike) -> Any:
        """P[S_e > x], the tail of what is left of a job seen in service at a random time.

        It is the integral of P[S > u] over u > x, divided by E[S].
        """
        return _plain(np.maximum(self._excess_mean(_times(x)), 0.0) / self.mean)

    # Sampling.

    @abstractmethod
    def _fill(self, generators: Sequence[Generator], out: FloatArray) -> None:
        """Write independent draws into ``out``, in order of the generators' numbers."""

    def sample(
        self,
        generators: Generator | Sequence[Generator],
        n: int | None = None,
        out: FloatArray | None = None,
    ) -> FloatArray:
        """Independent draws, all of them positive.

        Parameters
        ----------
        generators
            ``streams`` numpy generators, or a single one where one is enough.
        n
            How many draws; drawing n in pieces gives the same numbers as drawing them at once.
        out
            A contiguous array of float64 to fill, in place of ``n``.

        Returns
        -------
        numpy.ndarray
            Shape (n,), float64.

        Raises
        ------
        ValueError
            Where the number of generators is not ``streams``.
        """
        sources = [generators] if isinstance(generators, Generator) else list(generators)
        if len(sources) != self.streams:
            raise ValueError(
                f"generators={len(sources)}: {self.spec} draws from {self.streams}, "
                "one for each random ingredient"
            )
        values = np.empty(n or 0) if out is None else out
        self._fill(sources, values)
        return np.maximum(values, SMALLEST, out=values)

    # Other laws of the same shape, and text.

    @abstractmethod
    def scaled(self, factor: float) -> Distribution:
        """The law of ``factor * S``."""

    def with_mean(self, mean: float) -> Distribution:
        """The law of the same shape with another mean."""
        return self.scaled(_positive("mean", mean) / self.mean)

    @property
    def spec(self) -> str:
        """The text that :func:`parse_law` turns back into this law."""
        names = {parameter: word for word, parameter in self.words.items()}
        parts = (
            f"{names.get(f.name, f.name)}={_write(getattr(self, f.name))}"
            for f in fields(self)  # type: ignore[arg-type]
        )
        return f"{self.name}:{','.join(parts)}"

    @classmethod
    def _from_text(cls, arguments: str, text: str) -> Distribution:
        """Build the law from what follows its name in ``text``."""
        return cls(**_read_parameters(cls, arguments, text))


# ------------------------------------------------------------------------------------------------
# One number
# ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Deterministic(Distribution):
    """Always the same: S = value."""

    value: float

    name = "det"

    def __post_init__(self) -> None:
        _keep(self, value=_positive("value", self.value))

    @property
    def mean(self) -> float:
        """E[S] = value."""
        return self.value

    @property
    def scv(self) -> float:
        """Zero: nothing varies."""
        return 0.0

    def _moment(self, k: float) -> float:
        return _power(self.value, k)

    def _tail(self, x: FloatArray) -> FloatArray:
        return np.where(x < self.value, 1.0, 0.0)

    def _quantile(self, p: FloatArray) -> FloatArray:
        return np.full_like(p, self.value)

    def _partial_moment(self, k: float, d: FloatArray) -> FloatArray:
        return np.where(d >= self.value, self._moment(k), 0.0)

    def _upper_moment(self, k: float, d: FloatArray) -> FloatArray:
        return np.where(d < self.value, self._moment(k), 0.0)

    def _excess_mean(self, x: FloatArray) -> FloatArray:
        return np.maximum(self.value - x, 0.0)

    def _fill(self, generators: Sequence[Generator], out: FloatArray) -> None:
        out.fill(self.value)

    def scaled(self, factor: float) -> Deterministic:
        """The law of ``factor * S``."""
        return Deterministic(self.value * _positive("factor", factor))


# ------------------------------------------------------------------------------------------------
# Light tails
# ------------------------------------------------------------------------------------------------


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
        _keep(self, mean=_positive("mean", self.mean))

    @property
    def scv(self) -> float:
        """One, the yardstick for all other laws."""
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
        if self.mean != 1.0:
            out *= self.mean

    def scaled(self, factor: float) -> Exponential:
        """The law of ``factor * S``."""
        return Exponential(self.mean * _positive("factor", factor))


class _GammaLaw(Distribution):
    """What the gamma and the Erlang law share: shape a and scale s, density x^(a-1) e^(-x/s)."""

    if TYPE_CHECKING:

        @property
        def _shape(self) -> float: ...

    @property
    def _scale(self) -> float:
        return self.mean / self._shape

    @property
    def scv(self) -> float:
        """One over the shape."""
        return 1.0 / self._shape

    def _moment(self, k: float) -> float:
        return _power(self._scale, k) * float(special.poch(self._shape, k))

    def _tail(self, x: FloatArray) -> FloatArray:
        return special.gammaincc(self._shape, x / self._scale)

    def _cdf(self, x: FloatArray) -> FloatArray:
        return special.gammainc(self._shape, x / self._scale)

    def _density(self, x: FloatArray) -> FloatArray:
        a, y = self._shape, x / self._scale
        return np.exp(special.xlogy(a - 1.0, y) - y - special.gammaln(a)) / self._scale

    def _quantile(self, p: FloatArray) -> FloatArray:
        return self._scale * special.gammaincinv(self._shape, p)

    def _partial_moment(self, k: float, d: FloatArray) -> FloatArray:
        return self._moment(k) * special.gammainc(self._shape + k, d / self._scale)

    def _upper_moment(self, k: float, d: FloatArray) -> FloatArray:
        return self._moment(k) * special.gammaincc(self._shape + k, d / self._scale)

    def _fill(self, generators: Sequence[Generator], out: FloatArray) -> None:
        generators[0].standard_gamma(self._shape, out=out)
        out *= self._scale


@dataclass(frozen=True)
class Gamma(_GammaLaw):
    """From spiky (shape < 1) through exponential (shape 1) to nearly constant (shape large)."""

    shape: float
    mean: float

    name = "gamma"

    def __post_init__(self) -> None:
        _keep(self, shape=_positive("shape", self.shape), mean=_positive("mean", self.mean))

    @property
    def _shape(self) -> float:
        return self.shape

    def scaled(self, factor: float) -> Gamma:
        """The law of ``factor * S``."""
        return replace(self, mean=self.mean * _positive("factor", factor))


@dataclass(frozen=True)
class Erlang(_GammaLaw):
    """A chain of equal exponential phases: the sum of ``phases`` of them, with this mean in all."""

    phases: int
    mean: float

    name = "erlang"

    def __post_init__(self) -> None:
        _keep(self, phases=_whole("phases", self.phases), mean=_positive("mean", self.mean))

    @property
    def _shape(self) -> float:
        return float(self.phases)

    def scaled(self, factor: float) -> Erlang:
        """The law of ``factor * S``."""
        return replace(self, mean=self.mean * _positive("factor", factor))


@dataclass(frozen=True)
class Uniform(Distribution):
    """Anything between ``low`` and ``high``, all equally likely."""

    low: float
    high: float

    name = "uniform"

    def __post_init__(self) -> None:
        _keep(self, low=_number("low", self.low), high=_positive("high", self.high))
        if not 0.0 <= self.low < self.high:
            raise ValueError(f"low={self.low:g}: must be at least 0 and below high={self.high:g}")

    @property
    def mean(self) -> float:
        """Half-way between the ends."""
        return (self.low + self.high) / 2.0

    @property
    def scv(self) -> float:
        """(high - low)^2 / 12 over the squared mean."""
        return (self.high - self.low) ** 2 / 12.0 / self.mean**2

    def _integral(self, k: float, low: FloatArray, high: FloatArray) -> FloatArray:
        """Integral of x^k / (high - low) between two points of the support."""
        return (high ** (k + 1.0) - low ** (k + 1.0)) / (k + 1.0) / (self.high - self.low)

    def _moment(self, k: float) -> float:
        return float(self._integral(k, np.asarray(self.low), np.asarray(self.high)))

    def _tail(self, x: FloatArray) -> FloatArray:
        return (self.high - np.clip(x, self.low, self.high)) / (self.high - self.low)

    def _cdf(self, x: FloatArray) -> FloatArray:
        return (np.clip(x, self.low, self.high) - self.low) / (self.high - self.low)

    def _density(self, x: FloatArray) -> FloatArray:
        return np.where((x >= self.low) & (x <= self.high), 1.0 / (self.high - self.low), 0.0)

    def _quantile(self, p: FloatArray) -> FloatArray:
        return self.low + (self.high - self.low) * p

    def _partial_moment(self, k: float, d: FloatArray) -> FloatArray:
        return self._integral(k, np.asarray(self.low), np.clip(d, self.low, self.high))

    def _upper_moment(self, k: float, d: FloatArray) -> FloatArray:
        return self._integral(k, np.clip(d, self.low, self.high), np.asarray(self.high))

    def _excess_mean(self, x: FloatArray) -> FloatArray:
        inside = (self.high - np.clip(x, self.low, self.high)) ** 2 / 2.0 / (self.high - self.low)
        return inside + np.maximum(self.low - x, 0.0)

    def _fill(self, generators: Sequence[Generator], out: FloatArray) -> None:
        _fill_open(generators[0], out)
        out *= self.high - self.low
        out += self.low

    def scaled(self, factor: float) -> Uniform:
        """The law of ``factor * S``."""
        by = _positive("factor", factor)
        return Uniform(self.low * by, self.high * by)


# ------------------------------------------------------------------------------------------------
# Heavy tails
# ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pareto(Distribution):
    """A power law: P[S > x] = (low / x)^alpha for x >= low.

    The moment of order k is infinite where alpha <= k: the variance up to alpha = 2. A law with
    alpha <= 1 has no finite mean and is refused.

    >>> Pareto(1.5).equilibrium_tail(100.0)  # 100 ** (1 - 1.5) / 1.5
    0.06666666666666667
    """

    alpha: float
    low: float = 1.0

    name = "pareto"

    def __post_init__(self) -> None:
        _keep(self, alpha=_positive("alpha", self.alpha), low=_positive("low", self.low))
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

    def _moment(self, k: float) -> float:
        if self.alpha <= k:
            return math.inf
        return self.alpha / (self.alpha - k) * _power(self.low, k)

    def _tail(self, x: FloatArray) -> FloatArray:
        return (self.low / np.maximum(x, self.low)) ** self.alpha

    def _cdf(self, x: FloatArray) -> FloatArray:
        return -np.expm1(-self.alpha * np.log(np.maximum(x, self.low) / self.low))

    def _density(self, x: FloatArray) -> FloatArray:
        return np.where(x >= self.low, self.alpha * self._tail(x) / x, 0.0)

    def _quantile(self, p: FloatArray) -> FloatArray:
        return self.low * np.exp(-np.log1p(-p) / self.alpha)

    def _partial_moment(self, k: float, d: FloatArray) -> FloatArray:
        top = np.maximum(d, self.low) / self.low
        below = self.alpha * _power(self.low, k) * _integral_of_power(k - self.alpha, top)
        return np.where(np.isinf(top), self._moment(k), below)

    def _upper_moment(self, k: float, d: FloatArray) -> FloatArray:
        moment = self._moment(k)
        if math.isinf(moment):
            return np.where(np.isinf(d), 0.0, math.inf)
        return moment * (np.maximum(d, self.low) / self.low) ** (k - self.alpha)

    def _excess_mean(self, x: FloatArray) -> FloatArray:
        top = np.maximum(x, self.low)
        beyond = self.low / (self.alpha - 1.0) * (top / self.low) ** (1.0 - self.alpha)
        return beyond + np.maximum(self.low - x, 0.0)

    def _fill(self, generators: Sequence[Generator], out: FloatArray) -> None:
        generators[0].standard_exponential(out=out)  # numpy's own pareto is another law, Lomax
        out *= 1.0 / self.alpha
        np.exp(out, out=out)
        if self.low != 1.0:
            out *= self.low

    def scaled(self, factor: float) -> Pareto:
        """The law of ``factor * S``."""
        return replace(self, low=self.low * _positive("factor", factor))


@dataclass(frozen=True)
class BoundedPareto(Distribution):
    """A power law cut off at ``high``: the Pareto law, given that S <= high.

    P[S > x] = (x^-alpha - high^-alpha) / (low^-alpha - high^-alpha). Any alpha > 0 will do.
    """

    alpha: float
    low: float
    high: float

    name = "bounded-pareto"

    def __post_init__(self) -> None:
        _keep(
            self,
            alpha=_positive("alpha", self.alpha),
            low=_positive("low", self.low),
            high=_positive("high", self.high),
        )
        if self.high <= self.low:
            raise ValueError(f"high={self.high:g}: must be above low={self.low:g}")

    @property
    def mean(self) -> float:
        """E[S]."""
        return self._moment(1.0)

    @property
    def _mass(self) -> float:
        """Probability that the Pareto law without a bound stays within it."""
        return -math.expm1(-self.alpha * math.log(self.high / self.low))

    def _inside(self, x: FloatArray) -> FloatArray:
        return np.clip(x, self.low, self.high)

    def _integral(self, k: float, start: FloatArray, stop: FloatArray) -> FloatArray:
        """E[S^k; start < S <= stop] for two points of the support."""
        scale = self.alpha * _power(self.low, k) / self._mass
        weight = (start / self.low) ** (k - self.alpha)
        return scale * weight * _integral_of_power(k - self.alpha, stop / start)

    def _moment(self, k: float) -> float:
        return float(self._integral(k, np.asarray(self.low), np.asarray(self.high)))

    def _tail(self, x: FloatArray) -> FloatArray:
        left = np.expm1(self.alpha * np.log(self.high / self._inside(x)))
        return left / math.expm1(self.alpha * math.log(self.high / self.low))

    def _cdf(self, x: FloatArray) -> FloatArray:
        return -np.expm1(-self.alpha * np.log(self._inside(x) / self.low)) / self._mass

    def _density(self, x: FloatArray) -> FloatArray:
        inside = (x >= self.low) & (x <= self.high)
        y = self._inside(x)
        return np.where(inside, self.alpha / y * (self.low / y) ** self.alpha / self._mass, 0.0)

    def _quantile(self, p: FloatArray) -> FloatArray:
        x = self.low * np.exp(-np.log1p(-p * self._mass) / self.alpha)
        return np.minimum(np.where(p == 1.0, self.high, x), self.high)

    def _partial_moment(self, k: float, d: FloatArray) -> FloatArray:
        return self._integral(k, np.asarray(self.low), self._inside(d))

    def _upper_moment(self, k: float, d: FloatArray) -> FloatArray:
        return self._integral(k, self._inside(d), np.asarray(self.high))

    def _excess_mean(self, x: FloatArray) -> FloatArray:
        span = np.log(self.high / self._inside(x))
        area = span * special.exprel((self.alpha - 1.0) * span) + np.expm1(-span)
        whole = math.expm1(self.alpha * math.log(self.high / self.low))
        return self.high * area / whole + np.maximum(self.low - x, 0.0)

    def _fill(self, generators: Sequence[Generator], out: FloatArray) -> None:
        _fill_open(generators[0], out)
        out *= -self._mass
        np.log1p(out, out=out)
        out *= -1.0 / self.alpha
        np.exp(out, out=out)
        out *= self.low
        np.minimum(out, self.high, out=out)

    def scaled(self, factor: float) -> BoundedPareto:
        """The law of ``factor * S``."""
        by = _positive("factor", factor)
        return replace(self, low=self.low * by, high=self.high * by)


@dataclass(frozen=True)
class LogNormal(Distribution):
    """The exponential of a normal variable. ``mean`` is the mean of S itself, not of its logarithm.

    ``sigma`` is the standard deviation of log S. All moments are finite, yet at sigma = 2 a
    hundredth of the jobs brings more than half of the work... which is what token counts look like.
    """

    mean: float
    sigma: float

    name = "lognormal"

    def __post_init__(self) -> None:
        _keep(self, mean=_positive("mean", self.mean), sigma=_positive("sigma", self.sigma))

    @property
    def _location(self) -> float:
        """E[log S]."""
        return math.log(self.mean) - self.sigma**2 / 2.0

    @property
    def scv(self) -> float:
        """exp(sigma^2) - 1."""
        return float(np.expm1(self.sigma**2))

    def _score(self, x: FloatArray) -> FloatArray:
        """Standard score of log x."""
        with np.errstate(divide="ignore"):
            return (np.log(x) - self._location) / self.sigma

    def _moment(self, k: float) -> float:
        with np.errstate(over="ignore"):
            return _power(self.mean, k) * float(np.exp(k * (k - 1.0) * self.sigma**2 / 2.0))

    def _tail(self, x: FloatArray) -> FloatArray:
        return special.ndtr(-self._score(x))

    def _cdf(self, x: FloatArray) -> FloatArray:
        return special.ndtr(self._score(x))

    def _density(self, x: FloatArray) -> FloatArray:
        z = self._score(x)
        value = np.exp(-(z**2) / 2.0 - np.log(x)) / (self.sigma * math.sqrt(2.0 * math.pi))
        return np.where((x > 0.0) & (x < math.inf), value, 0.0)

    def _quantile(self, p: FloatArray) -> FloatArray:
        return np.exp(self._location + self.sigma * special.ndtri(p))

    def _partial_moment(self, k: float, d: FloatArray) -> FloatArray:
        return self._moment(k) * special.ndtr(self._score(d) - k * self.sigma)

    def _upper_moment(self, k: float, d: FloatArray) -> FloatArray:
        return self._moment(k) * special.ndtr(k * self.sigma - self._score(d))

    def _fill(self, generators: Sequence[Generator], out: FloatArray) -> None:
        generators[0].standard_normal(out=out)
        out *= self.sigma
        out += self._location
        np.exp(out, out=out)

    def scaled(self, factor: float) -> LogNormal:
        """The law of ``factor * S``."""
        return replace(self, mean=self.mean * _positive("factor", factor))


@dataclass(frozen=True)
class Weibull(Distribution):
    """P[S > x] = exp(-(x / scale)^shape): heavier than exponential for shape < 1, lighter above."""

    shape: float
    mean: float

    name = "weibull"

    def __post_init__(self) -> None:
        _keep(self, shape=_positive("shape", self.shape), mean=_positive("mean", self.mean))

    @property
    def _scale(self) -> float:
        return self.mean / float(special.gamma(1.0 + 1.0 / self.shape))

    def _power(self, x: FloatArray) -> FloatArray:
        """(x / scale)^shape, which is exponential with mean 1."""
        return (x / self._scale) ** self.shape

    def _moment(self, k: float) -> float:
        return _power(self._scale, k) * float(special.gamma(1.0 + k / self.shape))

    def _tail(self, x: FloatArray) -> FloatArray:
        return np.exp(-self._power(x))

    def _cdf(self, x: FloatArray) -> FloatArray:
        return -np.expm1(-self._power(x))

    def _density(self, x: FloatArray) -> FloatArray:
        y = x / self._scale
        return self.shape / self._scale * y ** (self.shape - 1.0) * self._tail(x)

    def _quantile(self, p: FloatArray) -> FloatArray:
        return self._scale * (-np.log1p(-p)) ** (1.0 / self.shape)

    def _partial_moment(self, k: float, d: FloatArray) -> FloatArray:
        return self._moment(k) * special.gammainc(1.0 + k / self.shape, self._power(d))

    def _upper_moment(self, k: float, d: FloatArray) -> FloatArray:
        return self._moment(k) * special.gammaincc(1.0 + k / self.shape, self._power(d))

    def _excess_mean(self, x: FloatArray) -> FloatArray:
        return self.mean * special.gammaincc(1.0 / self.shape, self._power(x))

    def _fill(self, generators: Sequence[Generator], out: FloatArray) -> None:
        generators[0].standard_exponential(out=out)
        np.power(out, 1.0 / self.shape, out=out)
        out *= self._scale

    def scaled(self, factor: float) -> Weibull:
        """The law of ``factor * S``."""
        return replace(self, mean=self.mean * _positive("factor", factor))


# ------------------------------------------------------------------------------------------------
# Mixtures and data
# ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mixture(Distribution):
    """One of several laws, chosen at random for each job.

    The text of a mixture names each law in parentheses, after its probability:

    >>> parse_law("mixture:0.9*(exp:1)+0.1*(det:5)").mean
    1.4
    """

    weights: tuple[float, ...]
    laws: tuple[Distribution, ...]

    name = "mixture"

    def __post_init__(self) -> None:
        _keep(self, weights=_probabilities("weights", self.weights), laws=tuple(self.laws))
        if len(self.laws) != len(self.weights):
            raise ValueError(
                f"laws={len(self.laws)}: a mixture with {len(self.weights)} weights "
                "needs as many laws"
            )
        for law in self.laws:
            if not isinstance(law, Distribution):
                raise ValueError(f"laws={law!r}: each must be a Distribution")

    @property
    def streams(self) -> int:  # type: ignore[override]
        """One for the choice, and those of each law."""
        return 1 + sum(law.streams for law in self.laws)

    @property
    def mean(self) -> float:
        """The weighted mean of the laws' means."""
        return self._moment(1.0)

    def _mix(self, answers: Sequence[Any]) -> Any:
        """Weighted sum, skipping what has weight 0 (0 times inf is not a number)."""
        return sum(w * a for w, a in zip(self.weights, answers, strict=True) if w > 0.0)

    def _moment(self, k: float) -> float:
        return float(self._mix([law._moment(k) for law in self.laws]))

    def _tail(self, x: FloatArray) -> FloatArray:
        return self._mix([law._tail(x) for law in self.laws])

    def _cdf(self, x: FloatArray) -> FloatArray:
        return self._mix([law._cdf(x) for law in self.laws])

    def _density(self, x: FloatArray) -> FloatArray:
        return self._mix([law._density(x) for law in self.laws])

    def _quantile(self, p: FloatArray) -> FloatArray:
        each = [law._quantile(p) for law, w in zip(self.laws, self.weights, strict=True) if w > 0]
        return _invert(self._cdf, p, np.minimum.reduce(each), np.maximum.reduce(each))

    def _partial_moment(self, k: float, d: FloatArray) -> FloatArray:
        return self._mix([law._partial_moment(k, d) for law in self.laws])

    def _upper_moment(self, k: float, d: FloatArray) -> FloatArray:
        return self._mix([law._upper_moment(k, d) for law in self.laws])

    def _excess_mean(self, x: FloatArray) -> FloatArray:
        return self._mix([law._excess_mean(x) for law in self.laws])

    def _fill(self, generators: Sequence[Generator], out: FloatArray) -> None:
        choice = choose(generators[0], self.weights, len(out))
        used = 1
        for index, law in enumerate(self.laws):
            rows = np.flatnonzero(choice == index)
            out[rows] = law.sample(generators[used : used + law.streams], len(rows))
            used += law.streams

    def scaled(self, factor: float) -> Mixture:
        """The law of ``factor * S``."""
        return Mixture(self.weights, tuple(law.scaled(factor) for law in self.laws))

    @property
    def spec(self) -> str:
        """The text that :func:`parse_law` turns back into this law."""
        pairs = zip(self.weights, self.laws, strict=True)
        return "mixture:" + "+".join(f"{_write(w)}*({law.spec})" for w, law in pairs)

    @classmethod
    def _from_text(cls, arguments: str, text: str) -> Mixture:
        weights, laws = [], []
        for part in _split_outside_parentheses(arguments, "+"):
            weight, star, law = part.partition("*")
            if not star or not (law.startswith("(") and law.endswith(")")):
                raise ValueError(
                    f"law={text!r}: a mixture is written mixture:0.9*(exp:1)+0.1*(det:5)"
                )
            weights.append(_read_number("weight", weight, text))
            laws.append(parse_law(law[1:-1]))
        return cls(tuple(weights), tuple(laws))


@dataclass(frozen=True)
class HyperExponential(Distribution):
    """A mixture of exponentials: mostly short, sometimes long. Its scv is at least 1.

    >>> law = HyperExponential((0.9, 0.1), (0.5, 5.5))
    >>> round(law.mean, 12), round(law.scv, 12)
    (1.0, 5.5)
    """

    probabilities: tuple[float, ...]
    means: tuple[float, ...]

    name = "hyperexp"
    streams = 2  # which phase, and how long
    words: ClassVar[dict[str, str]] = {"p": "probabilities", "mean": "means"}

    def __post_init__(self) -> None:
        means = tuple(_positive("mean", mean) for mean in _several("mean", self.means))
        _keep(self, probabilities=_probabilities("p", self.probabilities), means=means)
        if len(means) != len(self.probabilities):
            raise ValueError(
                f"mean={_write(means)}: needs one mean for each of the "
                f"{len(self.probabilities)} probabilities"
            )

    @property
    def _mixture(self) -> Mixture:
        return Mixture(self.probabilities, tuple(Exponential(mean) for mean in self.means))

    @property
    def mean(self) -> float:
        """The weighted mean of the phases' means."""
        return self._mixture.mean

    def _moment(self, k: float) -> float:
        return self._mixture._moment(k)

    def _tail(self, x: FloatArray) -> FloatArray:
        return self._mixture._tail(x)

    def _cdf(self, x: FloatArray) -> FloatArray:
        return self._mixture._cdf(x)

    def _density(self, x: FloatArray) -> FloatArray:
        return self._mixture._density(x)

    def _quantile(self, p: FloatArray) -> FloatArray:
        return self._mixture._quantile(p)

    def _partial_moment(self, k: float, d: FloatArray) -> FloatArray:
        return self._mixture._partial_moment(k, d)

    def _upper_moment(self, k: float, d: FloatArray) -> FloatArray:
        return self._mixture._upper_moment(k, d)

    def _excess_mean(self, x: FloatArray) -> FloatArray:
        return self._mixture._excess_mean(x)

    def _fill(self, generators: Sequence[Generator], out: FloatArray) -> None:
        phase = choose(generators[0], self.probabilities, len(out))
        generators[1].standard_exponential(out=out)
        out *= np.asarray(self.means)[phase]

    def scaled(self, factor: float) -> HyperExponential:
        """The law of ``factor * S``."""
        by = _positive("factor", factor)
        return replace(self, means=tuple(mean * by for mean in self.means))


@dataclass(frozen=True, eq=False)
class Empirical(Distribution):
    """The law of a value picked at random from data, each row equally likely.

    Parameters
    ----------
    values
        Positive numbers, in any order; kept sorted.
    source
        The file they came from, if any: it becomes the law's text.

    Examples
    --------
    >>> law = Empirical([1.0, 2.0, 2.0, 7.0])
    >>> law.mean, law.tail(2.0), law.quantile(0.5)
    (3.0, 0.25, 2.0)
    """

    values: FloatArray
    source: str | None = None

    name = "empirical"

    def __post_init__(self) -> None:
        values = np.sort(np.asarray(self.values, dtype=np.float64).ravel())
        if not len(values):
            raise ValueError("values=[]: an empirical law needs at least one value")
        for wrong in values[~((values > 0.0) & (values < math.inf))][:1]:
            raise ValueError(f"values={wrong:g}: each must be a finite number above 0")
        values.setflags(write=False)
        _keep(self, values=values)

    @classmethod
    def from_file(cls, path: str | Path) -> Empirical:
        """Read a text file with one number a line; empty lines and ``#`` comments are skipped.

        Raises
        ------
        ValueError
            Where the file cannot be read or a line is not a positive number.
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
        """Variance over squared mean of the values (divided by their number, not by one less)."""
        return float(np.var(self.values)) / self.mean**2

    def _moment(self, k: float) -> float:
        return float(np.mean(self.values**k))

    def _cdf(self, x: FloatArray) -> FloatArray:
        return np.searchsorted(self.values, x, side="right") / len(self.values)

    def _tail(self, x: FloatArray) -> FloatArray:
        above = len(self.values) - np.searchsorted(self.values, x, side="right")
        return above / len(self.values)

    def _quantile(self, p: FloatArray) -> FloatArray:
        count = len(self.values)
        rank = np.ceil(p * count - 1e-9)  # 0.07 * 100 is a little above 7
        return self.values[np.clip(rank - 1.0, 0, count - 1).astype(np.int64)]

    def _partial_moment(self, k: float, d: FloatArray) -> FloatArray:
        sums = np.concatenate([[0.0], np.cumsum(self.values**k)])
        return sums[np.searchsorted(self.values, d, side="right")] / len(self.values)

    def _upper_moment(self, k: float, d: FloatArray) -> FloatArray:
        sums = np.concatenate([np.cumsum(self.values[::-1] ** k)[::-1], [0.0]])
        return sums[np.searchsorted(self.values, d, side="right")] / len(self.values)

    def _fill(self, generators: Sequence[Generator], out: FloatArray) -> None:
        generators[0].random(out=out)
        out *= len(self.values)
        np.take(self.values, out.astype(np.int64), out=out)

    def scaled(self, factor: float) -> Empirical:
        """The law of ``factor * S``."""
        return Empirical(self.values * _positive("factor", factor))

    @property
    def spec(self) -> str:
        """The text that :func:`parse_law` turns back into this law: its file, or its values."""
        if self.source is not None:
            return f"empirical:{self.source}"
        return f"empirical:values={_write(tuple(self.values))}"

    @classmethod
    def _from_text(cls, arguments: str, text: str) -> Empirical:
        word, equals, values = arguments.partition("=")
        if word == "values" and equals:
            return cls(np.array([_read_number("values", v, text) for v in values.split("/")]))
        return cls.from_file(arguments)


#: The families by the word that names them in :func:`parse_law`.
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


def parse_law(text: str) -> Distribution:
    """The law that a text names: ``name:parameter=value,...``.

    Parameters
    ----------
    text
        For example ``exp:1``, ``lognormal:mean=1,sigma=1``, ``pareto:alpha=1.5`` (its low is 1),
        ``hyperexp:p=0.9/0.1,mean=0.5/5.5``, ``empirical:FILE``. The name of the parameter may be
        left out where only one is required.

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
        raise ValueError(f"law={text!r}: must be a text such as exp:1, or a Distribution")
    name, _, arguments = text.strip().partition(":")
    if name not in LAWS:
        raise ValueError(f"law={text!r}: unknown law {name!r}; known are {', '.join(LAWS)}")
    return LAWS[name]._from_text(arguments.strip(), text)


# ------------------------------------------------------------------------------------------------
# Reading and writing text
# ------------------------------------------------------------------------------------------------


def _read_parameters(law: type[Distribution], arguments: str, text: str) -> dict[str, Any]:
    """The keyword arguments of a law, from ``name=value,name=value``."""
    known = {f.name: f for f in fields(law)}  # type: ignore[arg-type]
    words = {name: name for name in known if name not in law.words.values()} | law.words
    required = [word for word, name in words.items() if known[name].default is MISSING]
    found: dict[str, Any] = {}
    for part in filter(None, (part.strip() for part in arguments.split(","))):
        word, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals and len(required) == 1 and not found:
            word, value = required[0], part
        elif not equals:
            raise ValueError(f"law={text!r}: write {law.name}:{'=...,'.join(required)}=...")
        if word not in words:
            raise ValueError(
                f"law={text!r}: {law.name} has no parameter {word}; it takes {', '.join(words)}"
            )
        if words[word] in found:
            raise ValueError(f"law={text!r}: {word} is given twice")
        several = law.words.get(word) is not None
        numbers = [_read_number(word, v, text) for v in value.split("/")] if several else None
        found[words[word]] = tuple(numbers) if numbers else _read_number(word, value, text)
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
    """The numbers in a text file, one a line."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not a text file"
        raise ValueError(f"file={path}: cannot be read ({reason})") from None
    numbers = []
    for row, line in enumerate(lines, start=1):
        content = line.partition("#")[0].strip()
        try:
            numbers += [_positive("value", float(content))] if content else []
        except ValueError:
            raise ValueError(
                f"file={path}, line {row}: {content!r} is not a finite number above 0"
            ) from None
    if not numbers:
        raise ValueError(f"file={path}: has no numbers; one a line is expected")
    return numbers


def _split_outside_parentheses(text: str, mark: str) -> list[str]:
    parts, depth = [""], 0
    for previous, letter in zip(" " + text, text, strict=False):
        depth += (letter == "(") - (letter == ")")
        if letter == mark and depth == 0 and previous not in "eE":  # 1e+5 is one number
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def _write(value: Any) -> str:
    """A number, or several, so that reading gives back the same."""
    if isinstance(value, tuple):
        return "/".join(_write(each) for each in value)
    return repr(float(value)).removesuffix(".0")


# ------------------------------------------------------------------------------------------------
# Checking
# ------------------------------------------------------------------------------------------------


def _number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name}={value!r}: must be a number") from None


def _positive(name: str, value: Any) -> float:
    number = _number(name, value)
    if not 0.0 < number < math.inf:
        raise ValueError(f"{name}={number:g}: must be a finite number above 0")
    return number


def _whole(name: str, value: Any) -> int:
    number = _positive(name, value)
    if number != int(number):
        raise ValueError(f"{name}={number:g}: must be a whole number, 1 or more")
    return int(number)


def _several(name: str, values: Any) -> tuple[float, ...]:
    try:
        numbers = tuple(_number(name, value) for value in values)
    except TypeError:
        raise ValueError(f"{name}={values!r}: must be a sequence of numbers") from None
    if not numbers:
        raise ValueError(f"{name}=(): needs at least one number")
    return numbers


def _probabilities(name: str, values: Any) -> tuple[float, ...]:
    numbers = _several(name, values)
    for number in numbers:
        if not 0.0 <= number <= 1.0:
            raise ValueError(f"{name}={number:g}: each must lie between 0 and 1")
    if abs(math.fsum(numbers) - 1.0) > 1e-9:
        raise ValueError(f"{name}={_write(numbers)}: must sum to 1, not {math.fsum(numbers):g}")
    return numbers


def _keep(law: Any, **parameters: Any) -> None:
    """Set checked parameters on a law that is otherwise frozen."""
    for name, value in parameters.items():
        object.__setattr__(law, name, value)


# ------------------------------------------------------------------------------------------------
# Arithmetic
# ------------------------------------------------------------------------------------------------


def _times(x: ArrayLike) -> FloatArray:
    return np.maximum(np.asarray(x, dtype=np.float64), 0.0)


def _plain(values: Any) -> Any:
    """A Python float for a single number, else the array."""
    return float(values) if np.ndim(values) == 0 else np.asarray(values)


def _power(base: float, exponent: float) -> float:
    """base ** exponent, infinite where it overflows."""
    try:
        return base**exponent
    except OverflowError:
        return math.inf


def _integral_of_power(p: float, top: FloatArray) -> FloatArray:
    """Integral of u^(p-1) over 1 < u <= top, sound through p = 0, where it is a logarithm."""
    span = np.log(top)
    return span * special.exprel(p * span)


def _fill_open(generator: Generator, out: FloatArray) -> None:
    """Uniform numbers in the open interval (0, 1)."""
    generator.random(out=out)
    np.maximum(out, 2.0**-54, out=out)


def choose(generator: Generator, probabilities: Sequence[float], n: int) -> NDArray[np.int64]:
    """Indices drawn with these probabilities, by one uniform number each."""
    uniform = generator.random(n)
    choice = np.zeros(n, dtype=np.int64)
    for bound in np.cumsum(probabilities)[:-1]:
        choice += uniform >= bound
    return choice


def _invert(cdf: Any, p: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """The least x in [low, high] with cdf(x) >= p, by halving the numbers in between.

    Positive doubles lie in the order of their bits read as integers, so that 64 halvings find
    the very number, whatever its magnitude.
    """
    below = np.atleast_1d(np.asarray(low, dtype=np.float64)).view(np.int64) - 1
    above = np.atleast_1d(np.asarray(high, dtype=np.float64)).view(np.int64).copy()
    level = np.atleast_1d(p)
    while np.any(above - below > 1):
        middle = below + (above - below) // 2
        enough = cdf(np.maximum(middle, 0).view(np.float64)) >= level
        above = np.where(enough, middle, above)
        below = np.where(enough, below, middle)
    return np.maximum(above, 0).view(np.float64).reshape(np.shape(p))
