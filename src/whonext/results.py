"""What every engine returns: a :class:`Result`, in which each number has an interval or a reason.

Times are counted in a histogram whose bins are 64 equal steps of each power of two, so that any
quantile is known to within 1/64 and two runs merge exactly by adding up.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from whonext.estimates import ENOUGH, Honesty, interval, quantile_interval

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Comparison", "Estimate", "Result", "Summary", "Tally", "bin_edges"]

# Columns of the moments. The compiled kernels bake these numbers in: after a change here, remove
# the caches of the compiled code (`make clean`).
COUNT, RESPONSE_1, RESPONSE_2, WAITING_1, WAITING_2, SLOWDOWN_1, SLOWDOWN_2, SIZE_1 = range(8)
COLUMNS = 8
MEASURES = ("response", "waiting", "slowdown")

SUB_BINS = 64
FIRST_EXPONENT = -40
BINS = SUB_BINS * 104


def bin_edges(index: Any) -> np.ndarray:
    """Lower edge of each histogram bin.

    Parameters
    ----------
    index : array of int
        Bin numbers; bin 0 holds zero.

    Returns
    -------
    array of float, of the shape of ``index``

    Examples
    --------
    >>> bin_edges([0, 41 * SUB_BINS, 41 * SUB_BINS + 32])
    array([0. , 1. , 1.5])
    """
    index = np.asarray(index)
    edge = np.ldexp(1 + (index % SUB_BINS) / SUB_BINS, index // SUB_BINS + FIRST_EXPONENT - 1)
    return np.where(index == 0, 0.0, edge)


_EDGES = bin_edges(np.arange(BINS + 1))


def _bins_of(values: np.ndarray) -> np.ndarray:
    """Bin numbers of an array; the compiled kernels have the same rule for one value."""
    mantissa, exponent = np.frexp(values)
    place = (exponent - FIRST_EXPONENT) * SUB_BINS + ((mantissa - 0.5) * 2 * SUB_BINS).astype(int)
    return np.where(values <= 0, 0, np.clip(place, 1, BINS - 1))


@dataclass
class Tally:
    """The counts of one replication, which add up.

    Attributes
    ----------
    moments : array (classes, 8)
        Count, then first and second powers of response, waiting and slowdown, then sizes.
    histograms : array of int (classes, 3, bins)
        Response, waiting and slowdown.
    elapsed, number_area, work_area, busy_area
        Length of the window of the time averages, and the integrals over it of the number of
        jobs, of the work and of the busy servers.
    offered
        Work that arrived in the window.
    left_inside
        Counted jobs that had not left when the run ended.
    seconds
        Time that the simulation took.
    jobs
        All jobs simulated, warm-up included.
    """

    moments: np.ndarray
    histograms: np.ndarray
    elapsed: float = 0.0
    number_area: float = 0.0
    work_area: float = 0.0
    busy_area: float = 0.0
    offered: float = 0.0
    left_inside: int = 0
    seconds: float = 0.0
    jobs: int = 0

    @classmethod
    def empty(cls, classes: int) -> Tally:
        """A tally of nothing."""
        return cls(
            np.zeros((classes, COLUMNS)), np.zeros((classes, len(MEASURES), BINS), dtype=np.int64)
        )

    @classmethod
    def of_table(
        cls,
        jobs: Any,
        response: np.ndarray,
        waiting: np.ndarray,
        classes: int,
        counted: tuple[int, int | None] = (0, None),
        until: float = math.inf,
    ) -> Tally:
        """Count a table of jobs whose response times are known.

        Parameters
        ----------
        jobs : JobTable
            Absolute arrival times.
        response, waiting : arrays, one number a job
            ``nan`` for a job that never left.
        classes
            Number of classes.
        counted
            Places of the first job counted and of the first no longer counted. The window of the
            time averages runs between the arrivals before these two, or from the start and to
            the end of the table.
        until
            End of the window at the latest: jobs that leave after it are left inside.
        """
        tally = cls.empty(classes)
        first, last = counted[0], len(response) if counted[1] is None else counted[1]
        finish = jobs.arrival + response
        place = np.arange(len(finish))
        mine = (place >= first) & (place < last)
        gone = mine & (finish <= until)
        tally.add(response[gone], waiting[gone], jobs.size[gone], jobs.kind[gone])
        begin = float(jobs.arrival[first - 1]) if first else 0.0
        end = float(jobs.arrival[last - 1] if last < len(finish) else np.nanmax(finish))
        end = min(end, until)
        present = np.fmin(finish, end) - np.maximum(jobs.arrival, begin)
        tally.number_area = float(np.maximum(present, 0).sum())
        tally.work_area = math.nan  # needs the path of each job, which is not kept here
        tally.elapsed = end - begin
        tally.offered = float(jobs.size[mine].sum())
        tally.left_inside = int((mine & ~gone).sum())
        tally.jobs = len(finish)
        return tally

    def add(
        self, response: np.ndarray, waiting: np.ndarray, size: np.ndarray, kind: np.ndarray
    ) -> None:
        """Count finished jobs, given as arrays of one length."""
        slowdown = response / size
        for k in range(len(self.moments)):
            mine = kind == k
            columns = [response[mine], waiting[mine], slowdown[mine]]
            self.moments[k, COUNT] += mine.sum()
            self.moments[k, SIZE_1] += size[mine].sum()
            for m, values in enumerate(columns):
                self.moments[k, 1 + 2 * m] += values.sum()
                self.moments[k, 2 + 2 * m] += (values**2).sum()
                self.histograms[k, m] += np.bincount(_bins_of(values), minlength=BINS)


@dataclass(frozen=True)
class Estimate:
    """A number with its interval, or the reason why it has none.

    Attributes
    ----------
    value
        The estimate; ``None`` where there is no honest one.
    ci95
        95 % interval; ``None`` where there is no honest one.
    reason
        Why one of them is missing.
    """

    value: float | None
    ci95: tuple[float, float] | None = None
    reason: str | None = None


def _estimate(each: Iterable[float], honest: Honesty) -> Estimate:
    """The mean of the replications, as far as it may honestly be given."""
    values = np.asarray(list(each), dtype=float)
    values = values[np.isfinite(values)]
    if honest.no_mean:
        return Estimate(None, None, honest.no_mean)
    if len(values) == 0:
        return Estimate(None, None, "no job was counted")
    if honest.no_interval:
        return Estimate(float(values.mean()), None, honest.no_interval)
    bounds = interval(values)
    reason = None if bounds else "an interval needs at least two replications"
    return Estimate(float(values.mean()), bounds, reason)


class Summary:
    """One measure (response, waiting or slowdown) of all jobs, or of one class.

    Attributes
    ----------
    mean, ci95, reason
        The mean, its 95 % interval over the replications, and why one is missing.
    sample_mean
        The plain average of what was simulated, whether or not it estimates anything.
    p50, p90, p99, p999
        Quantiles.
    """

    def __init__(self, tallies: Sequence[Tally], measure: int, kind: int | None, honest: Honesty):
        rows = slice(None) if kind is None else slice(kind, kind + 1)
        counts = np.array([t.moments[rows, COUNT].sum() for t in tallies])
        sums = np.array([t.moments[rows, 1 + 2 * measure].sum() for t in tallies])
        squares = np.array([t.moments[rows, 2 + 2 * measure].sum() for t in tallies])
        self._histograms = [t.histograms[rows, measure].sum(axis=0) for t in tallies]
        self._pooled = np.sum(self._histograms, axis=0)
        self.count = int(counts.sum())
        with np.errstate(invalid="ignore", divide="ignore"):
            estimate = _estimate(sums / counts, honest)
            self.sample_mean = float(sums.sum() / counts.sum())
            spread = squares.sum() / counts.sum() - self.sample_mean**2
        self.sample_variance = float(max(spread, 0.0))
        self.mean, self.ci95, self.reason = estimate.value, estimate.ci95, estimate.reason

    def quantile(self, p: float) -> float:
        """The ``p``-quantile, interpolated inside its bin.

        Raises
        ------
        ValueError
            If ``p`` is not in (0, 1), or no job was counted.
        """
        if not 0 < p < 1:
            raise ValueError(f"p={p}: a quantile is asked for at 0 < p < 1")
        return _quantile(self._pooled, p)

    def quantile_ci(self, p: float) -> tuple[float, float] | None:
        """95 % interval of the ``p``-quantile over the replications.

        ``None`` with fewer than two replications, or where they are so short that fewer than ten
        jobs of each lie beyond their quantile, or where one of them never came as far as the
        quantile of all: with heavy tails most may never have met the long job that sets it, and
        an interval cannot speak of what has not come.
        """
        centre = self.quantile(p)
        came_as_far = [float(_exceedance(h, np.asarray(centre))) > 0 for h in self._histograms]
        enough = all(h.sum() * (1 - p) >= ENOUGH for h in self._histograms)
        if len(self._histograms) < 2 or not (enough and all(came_as_far)):
            return None
        used = slice(0, min(int(np.nonzero(self._pooled)[0][-1]) + 2, BINS))
        above = np.array([np.cumsum(h[::-1])[::-1] for h in self._histograms])[:, used]
        tails = above / above[:, :1]
        tails[:, 0] = tails[:, 1]  # bin 0 is an atom at zero, which no job is beyond
        bounds = quantile_interval(_EDGES[used], tails, p)
        return None if bounds is None else (min(bounds[0], centre), max(bounds[1], centre))

    p50 = property(lambda self: self.quantile(0.5))
    p90 = property(lambda self: self.quantile(0.9))
    p99 = property(lambda self: self.quantile(0.99))
    p999 = property(lambda self: self.quantile(0.999))

    def exceedance(self, points: Any) -> tuple[np.ndarray, np.ndarray]:
        """P[T > t] at each point, and its standard error over the replications (nan for one)."""
        points = np.asarray(points, dtype=float)
        each = np.array([_exceedance(h, points) for h in self._histograms])
        pooled = _exceedance(self._pooled, points)
        if len(each) < 2:
            return pooled, np.full(points.shape, np.nan)
        return pooled, each.std(axis=0, ddof=1) / math.sqrt(len(each))

    def tail(self, points: Any = None) -> pd.DataFrame:
        """Tail on log-spaced points: columns ``t, probability, se``."""
        import pandas as pd

        if points is None:
            points = self._default_points()
        probability, error = self.exceedance(points)
        return pd.DataFrame({"t": points, "probability": probability, "se": error})

    def _default_points(self) -> np.ndarray:
        """Four points in each doubling, from where the tail begins to fall to its end."""
        used = np.nonzero(self._pooled[1:])[0] + 1
        if len(used) == 0:
            return np.array([])
        step = SUB_BINS // 4
        points = _EDGES[np.arange(used[0] // step * step + step, used[-1] + 1, step)]
        probability = _exceedance(self._pooled, points)
        return points[(probability < 0.9995) & (probability > 0)]

    def to_dict(self) -> dict[str, Any]:
        """``mean, ci95, p50, p90, p99, p999`` and, where something is missing, ``reason``."""
        out: dict[str, Any] = {
            "mean": self.mean,
            "ci95": list(self.ci95) if self.ci95 else None,
            "p50": None,
            "p90": None,
            "p99": None,
            "p999": None,
            "quantile_ci95": {},
            "reason": self.reason,
        }
        if self.count:
            for name, p in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999)):
                out[name] = self.quantile(p)
                bounds = self.quantile_ci(p)
                out["quantile_ci95"][name] = list(bounds) if bounds else None
        return out

    def __repr__(self) -> str:
        if self.mean is None:
            return f"<no mean: {self.reason}>"
        bounds = f" in [{self.ci95[0]:.5g}, {self.ci95[1]:.5g}]" if self.ci95 else ""
        return f"<mean {self.mean:.5g}{bounds}>"


def _quantile(histogram: np.ndarray, p: float) -> float:
    total = histogram.sum()
    if total == 0:
        raise ValueError("no job was counted, so there is no quantile")
    below = np.cumsum(histogram)
    place = int(np.searchsorted(below, p * total, side="left"))
    if place == 0:
        return 0.0
    inside = (p * total - below[place - 1]) / histogram[place]
    return float(_EDGES[place] + inside * (_EDGES[place + 1] - _EDGES[place]))


def _exceedance(histogram: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Share of the counts above each point, interpolated inside a bin."""
    total = max(histogram.sum(), 1)
    above = np.append(np.cumsum(histogram[::-1])[::-1], 0)
    place = np.clip(_bins_of(points), 0, BINS - 1)
    lower, upper = _EDGES[place], _EDGES[place + 1]
    inside = np.clip((points - lower) / (upper - lower), 0, 1)
    inside = np.where(place == 0, 1.0, inside)  # bin 0 is an atom at zero
    return (above[place] - inside * histogram[place]) / total


@dataclass
class ClassResult:
    """The measures of one class of jobs."""

    name: str
    share: float
    weight: float
    response: Summary
    waiting: Summary
    slowdown: Summary
    number_in_system: Estimate

    def to_dict(self) -> dict[str, Any]:
        """The class as plain numbers."""
        return {
            "share": self.share,
            "weight": self.weight,
            "response": self.response.to_dict(),
            "waiting": self.waiting.to_dict(),
            "number_in_system": self.number_in_system.value,
        }


@dataclass
class Result:
    """What a simulation found.

    Attributes
    ----------
    policy, size
        The rule and the size law, as on the command line.
    servers, jobs, seed, warmup
        What was asked for; ``jobs`` is the total over the replications.
    load
        Arrival rate times mean size over servers, as asked; ``realised_load`` is what came.
    seconds
        Time that the simulation alone took, summed over the replications.
    response, waiting, slowdown : Summary
        Over all classes; ``waiting`` is the response time less the size.
    number_in_system, work, weighted_cost, realised_load : Estimate
        Time averages. Weighted cost is the sum over classes of weight times number in the system.
    per_class : dict of str to ClassResult
    left_inside
        Counted jobs that had not finished when the run ended.
    jobs_table, events : DataFrame or None
        Raw jobs and the event trace, where asked for with ``trace=True``. The trace has the same
        columns in every engine: ``time``, ``event`` (arrive, start, preempt, resume, finish, …),
        ``job`` (row in the table), ``kind`` (its class), ``server`` (-1 for none) and
        ``in_system`` (jobs present just after the event).
    """

    policy: str
    size: str
    servers: int
    load: float | None
    jobs: int
    seed: int
    warmup: int
    names: list[str]
    shares: list[float]
    weights: list[float]
    tallies: list[Tally]
    honest: dict[str, Honesty]
    jobs_table: pd.DataFrame | None = None
    events: pd.DataFrame | None = None
    response: Summary = field(init=False)
    waiting: Summary = field(init=False)
    slowdown: Summary = field(init=False)

    def __post_init__(self) -> None:
        for measure, name in enumerate(MEASURES):
            setattr(self, name, Summary(self.tallies, measure, None, self.honest[name]))

    # Time averages.

    @property
    def seconds(self) -> float:
        """Time that the simulation alone took, over all replications."""
        return float(sum(t.seconds for t in self.tallies))

    @property
    def jobs_per_second(self) -> float | None:
        """Jobs simulated per second of simulation, warm-up included, compilation apart."""
        return sum(t.jobs for t in self.tallies) / self.seconds if self.seconds > 0 else None

    @property
    def left_inside(self) -> int:
        """Counted jobs that had not left when the run ended."""
        return sum(t.left_inside for t in self.tallies)

    @property
    def number_in_system(self) -> Estimate:
        """Time average of the number of jobs in the system."""
        return self._time_average("number_area", self.honest["number"])

    @property
    def work(self) -> Estimate:
        """Time average of the work in the system: all service still to be given."""
        return self._time_average("work_area", self.honest["work"])

    @property
    def realised_load(self) -> float | None:
        """Work that arrived in the window over what the servers could have done in it."""
        elapsed = sum(t.elapsed for t in self.tallies)
        offered = sum(t.offered for t in self.tallies)
        return float(offered / (elapsed * self.servers)) if elapsed > 0 else None

    @property
    def weighted_cost(self) -> Estimate:
        """Sum over classes of weight times mean number in the system."""
        weights = np.asarray(self.weights)
        values = [
            float(weights @ t.moments[:, RESPONSE_1]) / t.elapsed
            for t in self.tallies
            if t.elapsed > 0
        ]
        return _estimate(values, self.honest["number"])

    def _time_average(self, area: str, honest: Honesty) -> Estimate:
        return _estimate([getattr(t, area) / t.elapsed for t in self.tallies if t.elapsed], honest)

    @property
    def per_class(self) -> dict[str, ClassResult]:
        """The same measures for each class of jobs, by its name."""
        return {name: self._class(k) for k, name in enumerate(self.names)}

    def _class(self, k: int) -> ClassResult:
        response, waiting, slowdown = (
            Summary(self.tallies, measure, k, self.honest[name])
            for measure, name in enumerate(MEASURES)
        )
        values = [t.moments[k, RESPONSE_1] / t.elapsed for t in self.tallies if t.elapsed > 0]
        return ClassResult(
            self.names[k],
            self.shares[k],
            self.weights[k],
            response,
            waiting,
            slowdown,
            _estimate(values, self.honest["number"]),
        )

    # What a reader takes away.

    def tail(self, points: Any = None) -> pd.DataFrame:
        """Tail of the response time: columns ``t, probability, se``."""
        return self.response.tail(points)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain numbers, as ``whonext simulate --json`` prints it."""
        number = self.number_in_system
        return {
            "policy": self.policy,
            "servers": self.servers,
            "load": self.load,
            "realised_load": self.realised_load,
            "size": self.size,
            "jobs": self.jobs,
            "replications": len(self.tallies),
            "warmup": self.warmup,
            "seed": self.seed,
            "seconds": self.seconds,
            "jobs_per_second": self.jobs_per_second,
            "response": self.response.to_dict(),
            "waiting": self.waiting.to_dict(),
            "slowdown": self.slowdown.to_dict(),
            "number_in_system": number.value,
            "number_in_system_ci95": list(number.ci95) if number.ci95 else None,
            "number_in_system_reason": number.reason,
            "work": _plain(self.work),
            "weighted_cost": _plain(self.weighted_cost),
            "left_inside": self.left_inside,
            "per_class": {name: c.to_dict() for name, c in self.per_class.items()},
            "tail": [
                {k: (None if isinstance(v, float) and math.isnan(v) else v) for k, v in row.items()}
                for row in self.tail().to_dict("records")
            ],
        }

    def to_frame(self) -> pd.DataFrame:
        """A row for all jobs and one for each class, with means, intervals and quantiles."""
        import pandas as pd

        rows = []
        parts: list[tuple[str, Result | ClassResult]] = [("all", self), *self.per_class.items()]
        for name, part in parts:
            row: dict[str, Any] = {"class": name, "jobs": part.response.count}
            for measure in MEASURES:
                summary: Summary = getattr(part, measure)
                low, high = summary.ci95 or (math.nan, math.nan)
                mean = math.nan if summary.mean is None else summary.mean
                row |= {measure: mean, f"{measure}_low": low, f"{measure}_high": high}
            if part.response.count:
                row |= {q: getattr(part.response, q) for q in ("p50", "p90", "p99", "p999")}
            rows.append(row)
            if name == "all" and len(self.names) == 1:
                break
        return pd.DataFrame(rows).set_index("class")

    def plot(self) -> Any:
        """The tail of the response time, as an Altair chart."""
        from whonext import charts

        return charts.tail_chart({self.policy: self}, title=f"Response times under {self.policy}")

    def save(self, path: str | Path) -> None:
        """Write everything but the raw jobs to a JSON file that :meth:`load` reads back."""
        record = {
            "asked": {
                "policy": self.policy,
                "size": self.size,
                "servers": self.servers,
                "load": self.load,
                "jobs": self.jobs,
                "seed": self.seed,
                "warmup": self.warmup,
                "names": self.names,
                "shares": self.shares,
                "weights": self.weights,
            },
            "honest": {k: [h.no_mean, h.no_interval] for k, h in self.honest.items()},
            "tallies": [_pack(t) for t in self.tallies],
        }
        Path(path).write_text(json.dumps(record))

    @classmethod
    def load_from(cls, path: str | Path) -> Result:
        """Read a result written by :meth:`save`."""
        record = json.loads(Path(path).read_text())
        return cls(
            **record["asked"],
            tallies=[_unpack(t) for t in record["tallies"]],
            honest={k: Honesty(*h) for k, h in record["honest"].items()},
        )

    def __repr__(self) -> str:
        load = "" if self.load is None else f", load {self.load:g}"
        return (
            f"<{self.policy} on {self.servers} server(s){load}, {self.size}, "
            f"{self.jobs:,} jobs: response {self.response!r}>"
        )


def _plain(estimate: Estimate) -> dict[str, Any]:
    bounds = list(estimate.ci95) if estimate.ci95 else None
    return {"mean": estimate.value, "ci95": bounds, "reason": estimate.reason}


def _pack(tally: Tally) -> dict[str, Any]:
    where = np.nonzero(tally.histograms)
    plain = {k: v for k, v in vars(tally).items() if k not in ("moments", "histograms")}
    return plain | {
        "moments": tally.moments.tolist(),
        "where": [axis.tolist() for axis in where],
        "counts": tally.histograms[where].tolist(),
    }


def _unpack(packed: dict[str, Any]) -> Tally:
    packed = dict(packed)
    where, counts = packed.pop("where"), packed.pop("counts")
    moments = np.array(packed.pop("moments"))
    tally = Tally.empty(len(moments))
    tally.moments = moments
    tally.histograms[tuple(np.array(axis, dtype=int) for axis in where)] = counts
    for name, value in packed.items():
        setattr(tally, name, value)
    return tally


@dataclass
class Comparison:
    """Rules held against each other on the same jobs.

    Attributes
    ----------
    results : dict of str to Result
        By the rule's name, in the order given; the first is the one compared with.
    """

    results: dict[str, Result]

    def differences(self, measure: str = "response") -> dict[str, Estimate]:
        """Mean of each rule less that of the first, replication by replication.

        The jobs are the same, so the noise they share cancels.
        """
        column = 1 + 2 * MEASURES.index(measure)
        base, *others = self.results.values()
        out = {}
        for other in others:
            values = [
                b.moments[:, column].sum() / b.moments[:, COUNT].sum()
                - a.moments[:, column].sum() / a.moments[:, COUNT].sum()
                for a, b in zip(base.tallies, other.tallies, strict=True)
            ]
            pair = (base.honest[measure], other.honest[measure])
            honest = Honesty(
                next((h.no_mean for h in pair if h.no_mean), None),
                next((h.no_interval for h in pair if h.no_interval), None),
            )
            out[other.policy] = _estimate(values, honest)
        return out

    def to_frame(self) -> pd.DataFrame:
        """A row for each rule: mean response with interval, quantiles, difference to the first."""
        import pandas as pd

        differences = self.differences()
        rows = []
        for name, result in self.results.items():
            response = result.response
            low, high = response.ci95 or (math.nan, math.nan)
            difference = differences.get(name, Estimate(0.0))
            d_low, d_high = difference.ci95 or (math.nan, math.nan)
            rows.append(
                {
                    "policy": name,
                    "mean": math.nan if response.mean is None else response.mean,
                    "low": low,
                    "high": high,
                    "p50": response.p50,
                    "p90": response.p90,
                    "p99": response.p99,
                    "p999": response.p999,
                    "difference": math.nan if difference.value is None else difference.value,
                    "difference_low": d_low,
                    "difference_high": d_high,
                }
            )
        return pd.DataFrame(rows).set_index("policy")

    def to_dict(self) -> dict[str, Any]:
        """Each result, and the differences to the first."""
        return {
            "results": {name: r.to_dict() for name, r in self.results.items()},
            "differences": {name: _plain(e) for name, e in self.differences().items()},
        }

    def plot(self) -> Any:
        """The tails of the response times, as an Altair chart."""
        from whonext import charts

        return charts.tail_chart(self.results, title=" vs ".join(self.results))

    def __repr__(self) -> str:
        return f"<{' vs '.join(self.results)}>"


EVENTS = ("arrive", "start", "preempt", "resume", "finish")


def events_frame(events: Any, kind: np.ndarray) -> pd.DataFrame:
    """The event trace of any engine in the one schema (see :class:`Result`).

    Parameters
    ----------
    events
        The kernel's array (time, code, job, server, in system), or the reference's list of
        (time, event, job, kind, server, in system).
    kind : array of int
        Class of each job.
    """
    import pandas as pd

    columns = ["time", "event", "job", "kind", "server", "in_system"]
    if isinstance(events, np.ndarray):
        jobs = events[:, 2].astype(int)
        return pd.DataFrame(
            {
                "time": events[:, 0],
                "event": [EVENTS[int(code)] for code in events[:, 1]],
                "job": jobs,
                "kind": kind[jobs],
                "server": events[:, 3].astype(int),
                "in_system": events[:, 4].astype(int),
            }
        )
    return pd.DataFrame(events, columns=columns)
