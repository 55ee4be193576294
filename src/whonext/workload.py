"""Jobs: who comes, when, how large, and what is known of them at arrival.

A :class:`Workload` is a recipe: job classes, how fast they come, what is predicted, what a job is
charged at. It is turned into jobs in blocks of :data:`BLOCK` rows, so that a billion jobs need no
more memory than one block.

>>> workload = Workload("exp:1", load=0.8)
>>> workload.rate(servers=3)
2.4000000000000004
>>> table = workload.table(jobs=5, seed=1)
>>> len(table), bool((table.size > 0).all())
(5, True)

Each random ingredient (arrival times, classes, the sizes of each class, predictions) has a stream
of its own, found by its purpose from one seed. Two policies given one seed therefore see the very
same jobs, and adding a prediction changes no arrival and no size.
"""

from __future__ import annotations

import copy
import math
import tomllib
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.random import SFC64, Generator, SeedSequence
from numpy.typing import ArrayLike, NDArray

from whonext.checks import number, positive, whole
from whonext.distributions import (
    Deterministic,
    Distribution,
    Empirical,
    FloatArray,
    Mixture,
    choose,
    parse_law,
)

__all__ = [
    "BLOCK",
    "COSTS",
    "Arrivals",
    "Batch",
    "ClassMean",
    "Diurnal",
    "ExactPrediction",
    "JobClass",
    "JobTable",
    "LogNormalError",
    "Poisson",
    "Prediction",
    "Renewal",
    "TraceArrivals",
    "Workload",
    "parse_arrivals",
    "parse_prediction",
    "random_stream",
]

#: Rows in a block of jobs. Clocks start afresh at each block, so that they never grow inexact.
BLOCK = 65_536

Seed = int | SeedSequence
#: Gives the next n arrival times, counted from the arrival before them.
TimeSource = Callable[[int], FloatArray]
#: Gives the predictions for the next jobs, from their classes and sizes.
PredictionSource = Callable[[NDArray[np.int64], FloatArray], FloatArray]


def random_stream(seed: Seed, purpose: str, *index: int) -> Generator:
    """Give the generator for one random ingredient, independent of all others.

    Parameters
    ----------
    seed
        A number or a numpy ``SeedSequence``, which is not changed.
    purpose
        What the numbers are for: ``"arrivals"``, ``"sizes"``, ...
    index
        Which of several, for example the class and the ingredient of its law.

    Returns
    -------
    numpy.random.Generator
        The same for the same arguments, whatever else has been drawn.
    """
    root = _seed_sequence(seed)
    key = (*root.spawn_key, zlib.crc32(purpose.encode()), *index)
    return Generator(SFC64(SeedSequence(root.entropy, spawn_key=key, pool_size=root.pool_size)))


# ------------------------------------------------------------------------------------------------
# Jobs
# ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class JobTable:
    """Jobs as columns of one length, which cannot be written to.

    Attributes
    ----------
    arrival
        Time of arrival, never decreasing.
    size
        Service requirement in units of time at unit speed, above 0.
    kind
        Index of the job's class.
    weight
        Holding cost for each unit of time in the system.
    prediction
        Predicted size.
    cost
        What serving the job is charged at.
    """

    arrival: FloatArray
    size: FloatArray
    kind: NDArray[np.int64]
    weight: FloatArray
    prediction: FloatArray
    cost: FloatArray

    def __post_init__(self) -> None:
        for name in COLUMNS:  # a view, so that the caller's own array stays writable
            column = getattr(self, name).view()
            column.flags.writeable = False
            object.__setattr__(self, name, column)

    def __len__(self) -> int:
        return len(self.arrival)

    def __reduce__(self) -> tuple[Any, ...]:
        return JobTable, tuple(getattr(self, name) for name in COLUMNS)

    @classmethod
    def from_arrays(
        cls,
        arrival: ArrayLike,
        size: ArrayLike,
        kind: ArrayLike | None = None,
        weight: ArrayLike | None = None,
        prediction: ArrayLike | None = None,
        cost: ArrayLike | None = None,
    ) -> JobTable:
        """Check columns and make a table of them.

        Parameters
        ----------
        arrival, size
            One number a job.
        kind, weight, prediction, cost
            Likewise, or one number for all. Left out, they are class 0, weight 1, the size
            itself, and cost 1.

        Raises
        ------
        ValueError
            Naming the column, the first row that is wrong and its value.

        Examples
        --------
        >>> JobTable.from_arrays([0, 1, 1], [2, 5, 1]).prediction
        array([2., 5., 1.])
        """
        sizes = _column("size", size, None)
        rows = len(sizes)
        table = cls(
            arrival=_column("arrival", arrival, rows),
            size=sizes,
            kind=_kind_column(0 if kind is None else kind, rows),
            weight=_column("weight", 1.0 if weight is None else weight, rows),
            prediction=sizes if prediction is None else _column("prediction", prediction, rows),
            cost=_column("cost", 1.0 if cost is None else cost, rows),
        )
        table._check()
        return table

    def _check(self) -> None:
        """Refuse columns that no engine can serve."""
        _refuse(self.size, self.size > 0.0, "size", "must be above 0")
        _refuse(self.arrival, self.arrival >= 0.0, "arrival", "must be 0 or later")
        ordered = np.diff(self.arrival, prepend=0.0) >= 0.0
        _refuse(self.arrival, ordered, "arrival", "must not be before the row above it")
        for name in ("kind", "weight", "prediction", "cost"):
            column = getattr(self, name)
            _refuse(column, column >= 0, name, "must be 0 or more")

    @classmethod
    def from_frame(cls, frame: pd.DataFrame) -> JobTable:
        """Make a table of a DataFrame with the columns ``arrival``, ``size`` and any others."""
        missing = [name for name in ("arrival", "size") if name not in frame.columns]
        if missing:
            raise ValueError(
                f"frame: has no column {' or '.join(missing)}; it has {_listed(frame.columns)}"
            )
        return cls.from_arrays(**{name: frame[name] for name in COLUMNS if name in frame.columns})

    def to_frame(self) -> pd.DataFrame:
        """Give a DataFrame with one row a job."""
        return pd.DataFrame({name: getattr(self, name) for name in COLUMNS})

    def head(self, n: int) -> JobTable:
        """Give the first n rows."""
        return self.rows(0, n)

    def rows(self, start: int, stop: int) -> JobTable:
        """Give the rows from ``start`` up to ``stop``, not included."""
        return JobTable(*(getattr(self, name)[start:stop] for name in COLUMNS))


#: The columns of a table of jobs.
COLUMNS = tuple(field.name for field in fields(JobTable))


@dataclass(frozen=True)
class JobClass:
    """A class of jobs.

    Attributes
    ----------
    name
        Its name in tables and charts.
    share
        Its share of the arrivals (not of the load); the shares of a workload sum to 1.
    size
        The law of its sizes, or that law's text.
    weight
        Holding cost of one of its jobs for each unit of time in the system.
    """

    name: str
    share: float
    size: Distribution
    weight: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ValueError(f"name={self.name!r}: must be a word")
        share = number("share", self.share)
        if not 0.0 < share <= 1.0:
            raise ValueError(f"share={share:g}: must be above 0 and at most 1")
        weight = number("weight", self.weight)
        if not 0.0 <= weight < math.inf:
            raise ValueError(f"weight={weight:g}: must be a finite number, 0 or more")
        for name, value in (("share", share), ("weight", weight), ("size", _law(self.size))):
            object.__setattr__(self, name, value)


# ------------------------------------------------------------------------------------------------
# When they come
# ------------------------------------------------------------------------------------------------


class Arrivals(ABC):
    """A stream of arrival times with a given long-run rate."""

    #: Its letter in Kendall's notation.
    letter: ClassVar[str] = "G"

    #: Arrivals for each unit of time, where the stream has a rate of its own.
    own_rate: float | None = None

    @abstractmethod
    def source(self, rate: float, seed: Seed) -> TimeSource:
        """Start the stream: what it gives, called with n, are the next n arrival times."""

    @property
    @abstractmethod
    def spec(self) -> str:
        """The text for it."""


@dataclass(frozen=True)
class Poisson(Arrivals):
    """Independent exponential gaps: arrivals without memory, as from many unrelated users."""

    letter = "M"

    def source(self, rate: float, seed: Seed) -> TimeSource:
        """Start the stream."""
        generator = random_stream(seed, "arrivals")

        def times(n: int) -> FloatArray:
            gaps = generator.standard_exponential(n)
            np.cumsum(gaps, out=gaps)
            gaps *= 1.0 / rate
            return gaps

        return times

    @property
    def spec(self) -> str:
        """The text for it."""
        return "poisson"


@dataclass(frozen=True)
class Renewal(Arrivals):
    """Independent gaps of one law, stretched to the rate.

    >>> Renewal("gamma:shape=0.5,mean=1").law.scv  # twice as bursty as Poisson
    2.0
    """

    law: Distribution

    def __post_init__(self) -> None:
        object.__setattr__(self, "law", _law(self.law, "law"))

    def source(self, rate: float, seed: Seed) -> TimeSource:
        """Start the stream."""
        law = self.law.with_mean(1.0 / rate)
        generators = [random_stream(seed, "arrivals", part) for part in range(law.streams)]

        def times(n: int) -> FloatArray:
            gaps = law.sample(generators, n)
            return np.cumsum(gaps, out=gaps)

        return times

    @property
    def spec(self) -> str:
        """The text for it."""
        return f"renewal:{self.law.spec}"


@dataclass(frozen=True)
class Batch(Arrivals):
    """Groups of jobs that arrive at one instant; the groups themselves are Poisson.

    Parameters
    ----------
    size
        A number: the mean of a geometric law (1, 2, 3, ... jobs). Or a law of whole numbers:
        ``det:8`` for batches of 8, ``empirical:FILE`` for sizes seen.
    """

    size: float | Distribution

    letter = "M[X]"

    def __post_init__(self) -> None:
        size = self.size
        if isinstance(size, str):
            size = parse_law(size) if ":" in size else number("batch size", size)
        if isinstance(size, Distribution):
            values = {Deterministic: "value", Empirical: "values"}.get(type(size))
            if values is None or np.any(np.mod(getattr(size, values), 1.0)):
                raise ValueError(
                    f"batch size={size.spec}: must be the mean of a geometric law, "
                    "or a law of whole numbers (det or empirical)"
                )
        else:
            size = number("batch size", size)
            if not 1.0 <= size < math.inf:
                raise ValueError(f"batch size={size:g}: a mean must be 1 or more")
        object.__setattr__(self, "size", size)

    @property
    def mean_size(self) -> float:
        """Mean number of jobs in a batch."""
        return self.size.mean if isinstance(self.size, Distribution) else self.size

    def _sizes(self, generator: Generator, n: int) -> NDArray[np.int64]:
        if isinstance(self.size, Distribution):
            return self.size.sample(generator, n).astype(np.int64)
        if self.size == 1.0:
            return np.ones(n, dtype=np.int64)
        uniform = generator.random(n)
        return 1 + (np.log1p(-uniform) / math.log1p(-1.0 / self.size)).astype(np.int64)

    def source(self, rate: float, seed: Seed) -> TimeSource:
        """Start the stream."""
        gaps_of, sizes_of = (random_stream(seed, "arrivals", part) for part in range(2))
        gap = self.mean_size / rate
        kept = np.empty(0)

        def times(n: int) -> FloatArray:
            nonlocal kept
            while len(kept) < n:
                sizes = self._sizes(sizes_of, 1 + int((n - len(kept)) / self.mean_size))
                gaps = np.zeros(int(sizes.sum()))
                first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
                gaps[first] = gap * gaps_of.standard_exponential(len(sizes))
                kept = np.concatenate([kept, gaps])
            head, kept = kept[:n], kept[n:]
            return np.cumsum(head)

        return times

    @property
    def spec(self) -> str:
        """The text for it."""
        size = self.size
        return f"batch:{size.spec if isinstance(size, Distribution) else f'{size:g}'}"


@dataclass(frozen=True)
class Diurnal(Arrivals):
    """Poisson arrivals whose rate swings: rate * (1 + amplitude * sin(2 pi t / period)).

    Parameters
    ----------
    amplitude
        Between 0 and 1 (not included): 0.5 swings between half and one and a half of the mean.
    period
        Length of a day, in the unit of the sizes.
    """

    amplitude: float
    period: float

    letter = "M(t)"

    def __post_init__(self) -> None:
        amplitude = number("amplitude", self.amplitude)
        if not 0.0 <= amplitude < 1.0:
            raise ValueError(f"amplitude={amplitude:g}: must be 0 or more and below 1")
        object.__setattr__(self, "amplitude", amplitude)
        object.__setattr__(self, "period", positive("period", self.period))

    def source(self, rate: float, seed: Seed) -> TimeSource:
        """Start the stream."""
        generator = random_stream(seed, "arrivals")
        phase = 0.0  # time of day at the last arrival

        def times(n: int) -> FloatArray:
            nonlocal phase
            even = np.cumsum(generator.standard_exponential(n)) / rate
            uneven = self._warp(even, phase)
            phase = (phase + float(uneven[-1])) % self.period if n else phase
            return uneven

        return times

    def _warp(self, even: FloatArray, phase: float) -> FloatArray:
        """Find when as many jobs are expected as an even stream brings by the times ``even``.

        Ten halvings of the only place it can be, then five steps of Newton's method: always as
        many, so that a job's time does not depend on which jobs are computed along with it.
        """
        turn = 2.0 * math.pi / self.period
        swing = self.amplitude / turn
        even = even - swing * math.cos(turn * phase)
        low, high = even - swing, even + swing
        for _ in range(10):
            middle = 0.5 * (low + high)
            late = middle - swing * np.cos(turn * (phase + middle)) > even
            low, high = np.where(late, low, middle), np.where(late, middle, high)
        time = 0.5 * (low + high)
        for _ in range(5):
            angle = turn * (phase + time)
            miss = time - swing * np.cos(angle) - even
            time = np.clip(time - miss / (1.0 + self.amplitude * np.sin(angle)), low, high)
        return np.maximum.accumulate(np.maximum(time, 0.0))

    @property
    def spec(self) -> str:
        """The text for it."""
        return f"diurnal:amplitude={self.amplitude:g},period={self.period:g}"


@dataclass(frozen=True, eq=False)
class TraceArrivals(Arrivals):
    """Arrival times that were recorded, stretched where the workload names a rate or a load.

    The first job comes at 0. After the last one the record starts over, one mean gap later, so
    that there is no end; a workload of exactly the recorded jobs is :meth:`Workload.from_table`.

    Parameters
    ----------
    times
        Recorded times, in order. Only the gaps between them count.
    """

    times: FloatArray

    def __post_init__(self) -> None:
        times = _column("times", self.times, None)
        ordered = np.diff(times, prepend=times[:1]) >= 0.0
        _refuse(times, ordered, "times", "must not be before the row above it")
        if len(times) < 2 or times[-1] == times[0]:
            raise ValueError(f"times={len(times)}: needs two or more, and not all the same")
        object.__setattr__(self, "times", times)

    @property
    def own_rate(self) -> float:  # type: ignore[override]
        """Recorded rate: jobs after the first, over the time they took."""
        return float((len(self.times) - 1) / (self.times[-1] - self.times[0]))

    def source(self, rate: float, seed: Seed) -> TimeSource:  # noqa: ARG002
        """Start the stream; nothing in it is random."""
        gaps = np.diff(self.times, prepend=self.times[0]) * (self.own_rate / rate)
        gaps[0] = 1.0 / rate
        done = 0

        def times(n: int) -> FloatArray:
            nonlocal done
            block = gaps[np.arange(done, done + n) % len(gaps)]
            if done == 0:
                block[:1] = 0.0
            done += n
            return np.cumsum(block, out=block)

        return times

    @property
    def spec(self) -> str:
        """A description, since a text cannot hold the times."""
        return f"trace of {len(self.times)} arrivals"


_ARRIVALS = "poisson, renewal:LAW, batch:MEAN, batch:LAW, diurnal:amplitude=A,period=P"


def parse_arrivals(text: str) -> Arrivals:
    """Read the text of an arrival process.

    Parameters
    ----------
    text
        ``poisson``, ``renewal:gamma:shape=0.5,mean=1``, ``batch:4``, ``batch:det:8``,
        ``diurnal:amplitude=0.5,period=86400``.

    Raises
    ------
    ValueError
        For an unknown process, or one whose parameters are refused.

    Examples
    --------
    >>> parse_arrivals("batch:4")
    Batch(size=4.0)
    """
    name, _, rest = text.strip().partition(":")
    if name == "poisson" and not rest:
        return Poisson()
    if name == "renewal":
        return Renewal(parse_law(rest))
    if name == "batch":
        return Batch(rest)  # type: ignore[arg-type]
    if name == "diurnal":
        return Diurnal(**_settings("arrivals", text, rest, ("amplitude", "period")))
    raise ValueError(f"arrivals={text!r}: unknown; known are {_ARRIVALS}")


# ------------------------------------------------------------------------------------------------
# What is known of them
# ------------------------------------------------------------------------------------------------


class Prediction(ABC):
    """What is said of a job's size at its arrival."""

    @abstractmethod
    def source(self, workload: Workload, seed: Seed) -> PredictionSource:
        """Start predicting: what it gives, called with classes and sizes, are the predictions."""

    @property
    @abstractmethod
    def spec(self) -> str:
        """The text for it."""


@dataclass(frozen=True)
class ExactPrediction(Prediction):
    """The size itself."""

    def source(self, workload: Workload, seed: Seed) -> PredictionSource:  # noqa: ARG002
        """Start predicting: what it gives is the very same array."""
        return lambda _kind, size: size

    @property
    def spec(self) -> str:
        """The text for it."""
        return "exact"


@dataclass(frozen=True)
class LogNormalError(Prediction):
    """The size times exp(sigma Z), Z standard normal: right in the median, by factors off."""

    sigma: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", positive("sigma", self.sigma))

    def source(self, workload: Workload, seed: Seed) -> PredictionSource:  # noqa: ARG002
        """Start predicting, with a stream of random numbers of its own."""
        generator = random_stream(seed, "predictions")

        def predict(_kind: NDArray[np.int64], size: FloatArray) -> FloatArray:
            factor = generator.standard_normal(len(size))
            factor *= self.sigma
            np.exp(factor, out=factor)
            factor *= size
            return factor

        return predict

    @property
    def spec(self) -> str:
        """The text for it."""
        return f"lognormal:sigma={self.sigma:g}"


@dataclass(frozen=True)
class ClassMean(Prediction):
    """The mean size of the job's class: what is known when only the class is."""

    def source(self, workload: Workload, seed: Seed) -> PredictionSource:  # noqa: ARG002
        """Start predicting."""
        means = np.array([each.size.mean for each in workload.classes])
        return lambda kind, _size: means[kind]

    @property
    def spec(self) -> str:
        """The text for it."""
        return "class-mean"


def parse_prediction(text: str) -> Prediction:
    """Read the text of a predictor: ``exact``, ``lognormal:sigma=0.5`` or ``class-mean``.

    Raises
    ------
    ValueError
        For an unknown predictor, or one whose parameters are refused.
    """
    name, _, rest = text.strip().partition(":")
    if name == "exact" and not rest:
        return ExactPrediction()
    if name == "class-mean" and not rest:
        return ClassMean()
    if name == "lognormal":
        return LogNormalError(**_settings("prediction", text, rest, ("sigma",)))
    raise ValueError(
        f"prediction={text!r}: unknown; known are exact, lognormal:sigma=S, class-mean"
    )


#: What a job is charged at, by name: a function of a table whose own cost is not filled yet.
COSTS: dict[str, Callable[[JobTable], FloatArray]] = {
    "one": lambda jobs: jobs.cost,
    "size": lambda jobs: jobs.size,
    "prediction": lambda jobs: jobs.prediction,
}


# ------------------------------------------------------------------------------------------------
# Workload
# ------------------------------------------------------------------------------------------------


class Workload:
    """A recipe for jobs.

    Parameters
    ----------
    size
        The law of all sizes, or its text (``"pareto:alpha=1.5"``). Either this or ``classes``.
    classes
        The classes of jobs; a job's ``kind`` is the place of its class in this order.
    load
        Arrival rate times mean size over the number of servers. The arrival rate then follows
        from the number of servers.
    arrival_rate
        Jobs for each unit of time. At most one of this and ``load``.
    arrivals
        How they come; Poisson unless stated. An :class:`Arrivals` or its text.
    prediction
        What is said of their sizes; exact unless stated. A :class:`Prediction` or its text.
    cost
        What a job is charged at: a name in :data:`COSTS`, ``"one"`` unless stated, or a function
        of a :class:`JobTable`.

    Raises
    ------
    ValueError
        Naming the parameter, its value and what is allowed.

    Examples
    --------
    >>> workload = Workload(
    ...     classes=[JobClass("chat", 0.9, "exp:1", weight=4), JobClass("batch", 0.1, "exp:10")],
    ...     load=0.5,
    ... )
    >>> workload.names, workload.mean_size
    (('chat', 'batch'), 1.9)
    """

    def __init__(
        self,
        size: Distribution | str | None = None,
        *,
        classes: Sequence[JobClass] | None = None,
        load: float | None = None,
        arrival_rate: float | None = None,
        arrivals: Arrivals | str | None = None,
        prediction: Prediction | str | None = None,
        cost: str | Callable[[JobTable], FloatArray] | None = None,
    ) -> None:
        self.classes = _check_classes(size, classes)
        if load is not None and arrival_rate is not None:
            raise ValueError(f"load={load}, arrival_rate={arrival_rate}: give one of the two")
        self.load = None if load is None else positive("load", load)
        self.arrival_rate = None if arrival_rate is None else positive("arrival_rate", arrival_rate)
        self.arrivals = _check_arrivals(arrivals)
        self.prediction = _check_prediction(prediction)
        self.cost = _check_cost(cost)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{each.name} {each.size.spec}" for each in self.classes)
        return f"<Workload {sizes}; load={self.load}, arrival_rate={self.arrival_rate}>"

    # What it is.

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the classes, in order."""
        return tuple(each.name for each in self.classes)

    @cached_property
    def size(self) -> Distribution:
        """The law of a job's size, whatever its class."""
        if len(self.classes) == 1:
            return self.classes[0].size
        return Mixture(
            tuple(each.share for each in self.classes), tuple(each.size for each in self.classes)
        )

    @property
    def mean_size(self) -> float:
        """E[S] over all classes."""
        return self.size.mean

    @property
    def fixed(self) -> JobTable | None:
        """The table of its jobs, where they are given; None where they are drawn without end."""
        return None

    @property
    def length(self) -> int | None:
        """How many jobs there are, where they are given; None where they are drawn without end."""
        return None if self.fixed is None else len(self.fixed)

    def rate(self, servers: int = 1) -> float:
        """Jobs for each unit of time, when served by so many unit-speed servers.

        Raises
        ------
        ValueError
            Where the workload states neither a load nor an arrival rate.
        """
        if self.load is not None:
            return self.load * _servers(servers) / self.mean_size
        rate = self.arrival_rate or self.arrivals.own_rate
        if rate is None:
            raise ValueError("load=None: a workload needs a load or an arrival_rate")
        return rate

    def load_on(self, servers: int = 1) -> float:
        """Arrival rate times mean size over the number of servers."""
        if self.load is not None:
            return self.load
        return self.rate(servers) * self.mean_size / _servers(servers)

    def check_stable(self, servers: int = 1) -> None:
        """Refuse a load under which the queue grows for ever.

        Raises
        ------
        ValueError
            Where the load is 1 or more and the jobs are drawn without end.
        """
        load = self.load_on(servers)
        if load >= 1.0 and self.length is None:
            letter = self.arrivals.letter
            article = "an" if letter.startswith("M") else "a"
            raise ValueError(
                f"load={load:g}: {article} {letter}/G/{servers} queue is stable only below 1"
            )

    def with_load(self, load: float) -> Workload:
        """Give the same workload at another load."""
        other = copy.copy(self)
        other.load, other.arrival_rate = positive("load", load), None
        return other

    def to_dict(self) -> dict[str, Any]:
        """Describe the recipe in plain values, for records."""
        return {
            "classes": [
                {"name": each.name, "share": each.share, "weight": each.weight}
                | {"size": each.size.spec}
                for each in self.classes
            ],
            "load": self.load,
            "arrival_rate": self.arrival_rate,
            "arrivals": self.arrivals.spec,
            "prediction": self.prediction.spec,
            "cost": self.cost if isinstance(self.cost, str) else _name_of(self.cost),
        }

    # Its jobs.

    def blocks(self, jobs: float, seed: Seed = 0, servers: int = 1) -> Iterator[JobTable]:
        """Give the jobs, :data:`BLOCK` at a time.

        Parameters
        ----------
        jobs
            How many; of fixed jobs, no more than there are.
        seed
            A number or a numpy ``SeedSequence``.
        servers
            Number of servers, from which a load becomes an arrival rate.

        Yields
        ------
        JobTable
            Exactly ``BLOCK`` rows, the last block excepted. Arrival times count from the last
            arrival of the block before it, at first from 0.
        """
        rest = self._count(jobs)
        times = self.arrivals.source(self.rate(servers), seed)
        draw = self._job_source(seed)
        while rest:
            n = min(rest, BLOCK)
            yield draw(times(n))
            rest -= n

    def table(self, jobs: float, seed: Seed = 0, servers: int = 1) -> JobTable:
        """Give the jobs in one table, with arrival times from 0."""
        parts, clock = [], 0.0
        for block in self.blocks(jobs, seed, servers):
            parts.append([getattr(block, name) for name in COLUMNS])
            parts[-1][0] = parts[-1][0] + clock
            clock = float(parts[-1][0][-1])
        return JobTable(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def _count(self, jobs: float) -> int:
        count = whole("jobs", jobs)
        return count if self.length is None else min(count, self.length)

    def _job_source(self, seed: Seed) -> Callable[[FloatArray], JobTable]:
        """Give a function that completes arrival times to jobs."""
        kinds = random_stream(seed, "kinds")
        shares = [each.share for each in self.classes]
        weights = np.array([each.weight for each in self.classes])
        sizes = [_size_source(each.size, seed, k) for k, each in enumerate(self.classes)]
        predict = self.prediction.source(self, seed)
        same_kind = np.zeros(BLOCK, dtype=np.int64)
        same_weight = np.full(BLOCK, weights[0])

        def draw(arrival: FloatArray) -> JobTable:
            n = len(arrival)
            if len(sizes) == 1:
                kind, weight, size = same_kind[:n], same_weight[:n], np.empty(n)
                sizes[0](size)
            else:
                kind = choose(kinds, shares, n)
                weight, size = weights[kind], _sizes_by_kind(sizes, kind)
            return self._charged(
                JobTable(arrival, size, kind, weight, predict(kind, size), _ONES[:n])
            )

        return draw

    def _charged(self, jobs: JobTable) -> JobTable:
        """Fill in the cost."""
        if self.cost == "one":
            return jobs
        if isinstance(self.cost, str):
            cost = COSTS[self.cost](jobs)
        else:
            cost = _column(f"cost={_name_of(self.cost)}", self.cost(jobs), len(jobs))
        return JobTable(jobs.arrival, jobs.size, jobs.kind, jobs.weight, jobs.prediction, cost)

    # Other sources.

    @classmethod
    def from_table(
        cls,
        table: JobTable,
        *,
        names: Sequence[str] | None = None,
        load: float | None = None,
        prediction: Prediction | str | None = None,
        cost: str | Callable[[JobTable], FloatArray] | None = None,
    ) -> Workload:
        """Make a workload of fixed jobs, such as a trace.

        Parameters
        ----------
        table
            The jobs.
        names
            Names of the classes; ``class 0``, ``class 1``, ... unless given.
        load
            Stretch the arrival times to this load; they are kept unless given.
        prediction, cost
            Replace those columns; they are kept unless given.
        """
        return _FixedWorkload(table, names, load, prediction, cost)

    @classmethod
    def from_frame(cls, frame: pd.DataFrame, **options: Any) -> Workload:
        """Make a workload of the rows of a DataFrame.

        Parameters
        ----------
        frame
            Columns ``arrival`` and ``size``, and any of ``kind``, ``weight``, ``prediction`` and
            ``cost``. A ``kind`` may be the name of the class.
        **options
            As for :meth:`from_table`.

        Examples
        --------
        >>> import pandas
        >>> frame = pandas.DataFrame(
        ...     {"arrival": [0, 1, 4], "size": [1, 2, 1], "kind": ["chat", "batch", "chat"]}
        ... )
        >>> workload = Workload.from_frame(frame)
        >>> workload.names, workload.load_on(servers=2)
        (('chat', 'batch'), 0.3333333333333333)
        """
        if "kind" in frame.columns and not pd.api.types.is_numeric_dtype(frame["kind"]):
            missing = int(frame["kind"].isna().sum())
            if missing:
                raise ValueError(f"frame: has {missing} jobs without a kind")
            codes, names = pd.factorize(frame["kind"])
            frame = frame.assign(kind=codes)
            options.setdefault("names", [str(name) for name in names])
        return cls.from_table(JobTable.from_frame(frame), **options)

    @classmethod
    def from_toml(cls, path: str | Path, **options: Any) -> Workload:
        """Read classes from a TOML file.

        Parameters
        ----------
        path
            A file with one ``[[class]]`` for each class of jobs, with the keys ``name``,
            ``share``, ``size`` (the text of a law) and, if not 1, ``weight``. Before the first
            class may stand ``load`` or ``arrival_rate``, ``arrivals``, ``prediction``, ``cost``.
        **options
            Parameters of :class:`Workload`, in place of those in the file.

        Raises
        ------
        ValueError
            Naming the file and what is wrong in it.
        """
        content = _read_toml(Path(path))
        try:
            return cls(**_workload_settings(content, options))
        except ValueError as error:
            raise ValueError(f"file={path}: {error}") from None


class _FixedWorkload(Workload):
    """Jobs that are given, not drawn."""

    def __init__(
        self,
        table: JobTable,
        names: Sequence[str] | None,
        load: float | None,
        prediction: Prediction | str | None,
        cost: str | Callable[[JobTable], FloatArray] | None,
    ) -> None:
        if not len(table):
            raise ValueError("table: has no jobs")
        self._fixed = table
        super().__init__(
            classes=_classes_of(table, names),
            load=load,
            arrivals=_GivenArrivals(table.arrival),
            prediction=prediction,
            cost=cost,
        )
        self._keeps_prediction = prediction is None
        self._keeps_cost = cost is None

    @cached_property
    def size(self) -> Distribution:
        """The law of a size picked at random from the table."""
        return Empirical(self._fixed.size, source=f"a table of {len(self._fixed)} jobs")

    @property
    def fixed(self) -> JobTable:
        """The table of its jobs, as given; :meth:`blocks` may stretch and complete them."""
        return self._fixed

    def to_dict(self) -> dict[str, Any]:
        """Describe the recipe in plain values, for records."""
        kept = {"prediction": self._keeps_prediction, "cost": self._keeps_cost}
        return super().to_dict() | {name: "as given" for name, keep in kept.items() if keep}

    def _job_source(self, seed: Seed) -> Callable[[FloatArray], JobTable]:
        predict = self.prediction.source(self, seed)
        done = 0

        def draw(arrival: FloatArray) -> JobTable:
            nonlocal done
            rows = self._fixed.rows(done, done + len(arrival))
            done += len(arrival)
            said = rows.prediction if self._keeps_prediction else predict(rows.kind, rows.size)
            cost = rows.cost if self._keeps_cost else _ONES[: len(arrival)]
            jobs = JobTable(arrival, rows.size, rows.kind, rows.weight, said, cost)
            return jobs if self._keeps_cost else self._charged(jobs)

        return draw


class _GivenArrivals(Arrivals):
    """The arrival times of a table, stretched by the ratio of its own rate to the one asked."""

    def __init__(self, arrival: FloatArray) -> None:
        self._arrival = arrival
        span = float(arrival[-1] - arrival[0])
        self.own_rate = (len(arrival) - 1) / span if span > 0.0 else math.inf

    def source(self, rate: float, seed: Seed) -> TimeSource:  # noqa: ARG002
        """Start the stream; nothing in it is random."""
        own = self.own_rate or 0.0
        if math.isinf(own) and rate != own:
            raise ValueError("load: all jobs of the table arrive at once, so none can be given")
        stretch = 1.0 if rate == own else own / rate
        done, clock = 0, 0.0

        def times(n: int) -> FloatArray:
            nonlocal done, clock
            block = self._arrival[done : done + n] - clock
            done, clock = done + n, float(self._arrival[done + n - 1])
            return block * stretch

        return times

    @property
    def spec(self) -> str:
        """A description, since a text cannot hold the times."""
        return f"table of {len(self._arrival)} jobs"


_ONES = np.ones(BLOCK)


def _size_source(law: Distribution, seed: Seed, kind: int) -> Callable[[FloatArray], FloatArray]:
    """Give a function that fills an array with sizes of one class."""
    generators = [random_stream(seed, "sizes", kind, part) for part in range(law.streams)]
    return lambda out: law.sample(generators, out=out)


def _sizes_by_kind(
    sizes: Sequence[Callable[[FloatArray], FloatArray]], kind: NDArray[np.int64]
) -> FloatArray:
    """Draw each job's size from its class, every class having streams of its own."""
    result = np.empty(len(kind))
    for k, draw in enumerate(sizes):
        rows = np.flatnonzero(kind == k)
        result[rows] = draw(np.empty(len(rows)))
    return result


def _classes_of(table: JobTable, names: Sequence[str] | None) -> list[JobClass]:
    """Describe the classes that a table holds; a class without jobs cannot be described."""
    count = int(table.kind.max()) + 1
    words = [f"class {k}" for k in range(count)] if names is None else list(names)
    if len(words) < count:
        raise ValueError(f"names={len(words)}: the table has {count} classes")
    classes = []
    for k, word in enumerate(words):
        rows = table.kind == k
        if not rows.any():
            raise ValueError(f"kind={k}: no job of the table is of this class ({word})")
        law = Empirical(table.size[rows], source=f"{word}, {rows.sum()} jobs")
        weight = float(table.weight[rows].mean())
        classes.append(JobClass(word, float(rows.mean()), law, weight))
    return classes


# ------------------------------------------------------------------------------------------------
# Checking
# ------------------------------------------------------------------------------------------------


def _seed_sequence(seed: Seed) -> SeedSequence:
    if isinstance(seed, SeedSequence):
        return seed
    if not isinstance(seed, int | np.integer) or seed < 0:
        raise ValueError(f"seed={seed!r}: must be a whole number, 0 or more, or a SeedSequence")
    return SeedSequence(int(seed))


def _servers(servers: int) -> int:
    return whole("servers", servers)


def _law(law: Distribution | str, name: str = "size") -> Distribution:
    if isinstance(law, Distribution):
        return law
    if isinstance(law, str):
        return parse_law(law)
    raise ValueError(f"{name}={law!r}: must be a Distribution or a text such as exp:1")


def _check_classes(
    size: Distribution | str | None, classes: Sequence[JobClass] | None
) -> tuple[JobClass, ...]:
    if (size is None) == (classes is None):
        raise ValueError(f"size={size!r}, classes={classes!r}: give exactly one of the two")
    if size is not None:
        return (JobClass("all", 1.0, _law(size)),)
    checked = tuple(classes or ())
    if not checked:
        raise ValueError("classes=[]: needs at least one class")
    for each in checked:
        if not isinstance(each, JobClass):
            raise ValueError(f"classes={each!r}: each must be a JobClass")
    total = math.fsum(each.share for each in checked)
    if abs(total - 1.0) > 1e-9:
        raise ValueError(f"share={total:g}: the shares of the classes must sum to 1")
    names = [each.name for each in checked]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"name={twice!r}: is given to two classes")
    return checked


def _check_arrivals(arrivals: Arrivals | str | None) -> Arrivals:
    if arrivals is None:
        return Poisson()
    if isinstance(arrivals, str):
        return parse_arrivals(arrivals)
    if isinstance(arrivals, Arrivals):
        return arrivals
    raise ValueError(f"arrivals={arrivals!r}: must be an Arrivals or one of {_ARRIVALS}")


def _check_prediction(prediction: Prediction | str | None) -> Prediction:
    if prediction is None:
        return ExactPrediction()
    if isinstance(prediction, str):
        return parse_prediction(prediction)
    if isinstance(prediction, Prediction):
        return prediction
    raise ValueError(f"prediction={prediction!r}: must be a Prediction or the text of one")


def _check_cost(cost: Any) -> str | Callable[[JobTable], FloatArray]:
    if cost is None:
        return "one"
    if callable(cost) or (isinstance(cost, str) and cost in COSTS):
        return cost
    raise ValueError(f"cost={cost!r}: must be one of {', '.join(COSTS)}, or a function of the jobs")


def _column(name: str, values: ArrayLike, rows: int | None) -> FloatArray:
    """Give a column of finite numbers, one for each row, that nobody else can change."""
    try:
        column = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name}: every value must be a number") from None
    if rows is not None and column.ndim == 0:
        column = np.full(rows, column)
    if column.ndim != 1 or (rows is not None and len(column) != rows):
        wanted = "one dimension" if rows is None else f"{rows} rows, as many as size has"
        raise ValueError(f"{name}: has shape {column.shape}, must have {wanted}")
    _refuse(column, np.isfinite(column), name, "must be a finite number")
    return column


def _kind_column(values: ArrayLike, rows: int) -> NDArray[np.int64]:
    column = _column("kind", values, rows)
    _refuse(column, np.mod(column, 1.0) == 0.0, "kind", "must be a whole number")
    return column.astype(np.int64)


def _refuse(column: NDArray[Any], good: NDArray[np.bool_], name: str, rule: str) -> None:
    """Name the first row that breaks a rule."""
    if not good.all():
        row = int(np.argmin(good))
        raise ValueError(f"{name}={column[row]:g} in row {row}: {rule}")


def _settings(name: str, text: str, rest: str, words: Sequence[str]) -> dict[str, float]:
    """Read ``word=number,word=number``, with all of these words."""
    found = {}
    for part in filter(None, rest.split(",")):
        word, _, value = (piece.strip() for piece in part.partition("="))
        if word not in words or word in found:
            raise ValueError(f"{name}={text!r}: takes {' and '.join(words)}, once each")
        found[word] = number(f"{name}={text!r}: {word}", value)
    if len(found) < len(words):
        raise ValueError(f"{name}={text!r}: needs {' and '.join(words)}")
    return found


_CLASS_KEYS = ("name", "share", "weight", "size")
_WORKLOAD_KEYS = ("load", "arrival_rate", "arrivals", "prediction", "cost")


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"file={path}: cannot be read ({error.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"file={path}: is not TOML ({error})") from None


def _workload_settings(content: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Turn the content of a TOML file into the parameters of a workload."""
    for key in content:
        if key != "class" and key not in _WORKLOAD_KEYS:
            raise ValueError(f"{key}: unknown; known are [[class]], {', '.join(_WORKLOAD_KEYS)}")
    tables = content.get("class")
    if not isinstance(tables, list) or not tables:
        raise ValueError("class: needs one [[class]] or more")
    settings = {key: content[key] for key in _WORKLOAD_KEYS if key in content} | dict(options)
    if options.get("load") is not None and "load" not in content:
        settings.pop("arrival_rate", None)
    if options.get("arrival_rate") is not None:
        settings.pop("load", None)
    return settings | {"classes": [_read_class(i, each) for i, each in enumerate(tables, 1)]}


def _read_class(place: int, table: Mapping[str, Any]) -> JobClass:
    label = table.get("name", f"number {place}")
    for key in table:
        if key not in _CLASS_KEYS:
            raise ValueError(f"class {label}: {key} is unknown; known are {', '.join(_CLASS_KEYS)}")
    missing = [key for key in ("name", "share", "size") if key not in table]
    if missing:
        raise ValueError(f"class {label}: needs {' and '.join(missing)}")
    try:
        return JobClass(**table)
    except ValueError as error:
        raise ValueError(f"class {label}: {error}") from None


def _listed(names: Any) -> str:
    return ", ".join(str(name) for name in names) or "none"


def _name_of(function: Any) -> str:
    return getattr(function, "__qualname__", repr(function))
