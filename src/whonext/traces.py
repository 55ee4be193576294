"""Requests that really came: public traces of LLM services, one's own, and stand-ins for them.

A trace is a DataFrame with one row a request and the columns ``arrival`` (seconds since the first
request), ``prompt`` and ``output`` (tokens). :func:`trace_workload` turns it into jobs.

The files of the public traces are not part of this package. They are looked for in the folder
named by the environment variable ``WHONEXT_TRACES``, or by an argument, and fetched from their
authors' repositories where they are missing. Where there is no network, a synthetic trace with
the same marginal laws can stand in:

>>> trace = synthetic("azure-conversation", requests=1000, seed=1)
>>> list(trace.columns), len(trace)
(['arrival', 'prompt', 'output'], 1000)
>>> workload = trace_workload(trace, load=0.7)
>>> workload.load_on(servers=1)
0.7
"""

from __future__ import annotations

import csv
import hashlib
import json
import math
import os
import urllib.error
import urllib.request
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import special, stats

from whonext.checks import number, whole
from whonext.distributions import Distribution, FloatArray, LogNormal, Mixture, parse_law
from whonext.workload import Prediction, Seed, Workload, random_stream

__all__ = [
    "SERVICE_TIMES",
    "TOKEN_COSTS",
    "TRACES",
    "PublicTrace",
    "TraceModel",
    "download",
    "find_folder",
    "fit",
    "listing",
    "load_trace",
    "read_csv",
    "read_requests",
    "spread_batches",
    "synthetic",
    "trace_workload",
]

#: Columns of a trace.
COLUMNS = ("arrival", "prompt", "output")

#: Seconds in each unit of time that a file may count in.
UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0, "h": 3600.0}


# ------------------------------------------------------------------------------------------------
# The public traces
# ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PublicTrace:
    """A trace that anyone can fetch.

    Attributes
    ----------
    file
        Name of the file in the folder of traces.
    address
        Where it comes from.
    sha256
        Checksum of the file.
    requests
        How many rows it has.
    columns
        Its names for arrival, prompt and output.
    unit
        Unit of its times, or ``"date"``.
    spread
        How arrivals that share a time stamp are spread unless stated, see :func:`spread_batches`.
    licence, source
        Under what terms, and from whom.
    """

    file: str
    address: str
    sha256: str
    requests: int
    columns: tuple[str, str, str]
    unit: str
    spread: str
    licence: str
    source: str


_AZURE = (
    "https://raw.githubusercontent.com/Azure/AzurePublicDataset/"
    "b469a113cedca53ddc3bdea71a143dc4b7d8700c/data/"
)
_MOONCAKE = (
    "https://raw.githubusercontent.com/kvcache-ai/Mooncake/"
    "3b5a594133958449a1feaf1c9e0fc1b553e34a28/FAST25-release/traces/"
)


def _azure(file: str, sha256: str, requests: int) -> PublicTrace:
    return PublicTrace(
        file=file,
        address=_AZURE + file,
        sha256=sha256,
        requests=requests,
        columns=("TIMESTAMP", "ContextTokens", "GeneratedTokens"),
        unit="date",
        spread="none",
        licence="CC BY 4.0",
        source="Azure/AzurePublicDataset, 2023 (Patel et al., Splitwise, ISCA 2024)",
    )


def _mooncake(file: str, sha256: str, requests: int, spread: str) -> PublicTrace:
    return PublicTrace(
        file=f"mooncake_{file}",
        address=_MOONCAKE + file,
        sha256=sha256,
        requests=requests,
        columns=("timestamp", "input_length", "output_length"),
        unit="ms",
        spread=spread,
        licence="Apache-2.0",
        source="kvcache-ai/Mooncake, FAST25 release (Qin et al.)",
    )


#: The public traces by name. The arrivals of ``mooncake-conversation`` were recorded in batches,
#: one every three seconds.
TRACES: dict[str, PublicTrace] = {
    "azure-conversation": _azure(
        "AzureLLMInferenceTrace_conv.csv",
        "2f1e5b666d4e3055fdbba98598ce2ec307767b9064e03e2fa46676dbcc7d0bf8",
        19_366,
    ),
    "azure-code": _azure(
        "AzureLLMInferenceTrace_code.csv",
        "54e9a6d2a4bd06ba1e060304b900abbc74cbea53de96506e60fe5bb4f2277fb6",
        8_819,
    ),
    "mooncake-conversation": _mooncake(
        "conversation_trace.jsonl",
        "b8cbb061a85206d729d91cdc2981f43c9e0d99209dce588d3af5f7934408b9df",
        12_031,
        "random",
    ),
    "mooncake-synthetic": _mooncake(
        "synthetic_trace.jsonl",
        "bd070915a98fc0ed264d7cfef2ce746002eb3076a695ec31ba2674c0111ec131",
        3_993,
        "none",
    ),
}


def find_folder(folder: str | Path | None = None) -> Path:
    """Give the folder of traces.

    Parameters
    ----------
    folder
        The folder itself. Left out, it is the one named by ``WHONEXT_TRACES``, and else
        ``whonext/traces`` in the user's cache.
    """
    if folder is not None:
        return Path(folder)
    named = os.environ.get("WHONEXT_TRACES")
    if named:
        return Path(named)
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "whonext" / "traces"


def listing(folder: str | Path | None = None) -> list[dict[str, Any]]:
    """Describe each public trace: name, requests, file, whether it is there, licence, source."""
    home = find_folder(folder)
    return [
        {
            "name": name,
            "requests": trace.requests,
            "file": trace.file,
            "here": (home / trace.file).is_file(),
            "licence": trace.licence,
            "source": trace.source,
        }
        for name, trace in TRACES.items()
    ]


def load_trace(
    name: str,
    folder: str | Path | None = None,
    *,
    fallback: str | None = None,
    spread: str | None = None,
    seed: Seed = 0,
    prefix_blocks: bool = False,
) -> pd.DataFrame:
    """Read a public trace, from the folder of traces or from where it is published.

    Parameters
    ----------
    name
        One of :data:`TRACES`.
    folder
        See :func:`find_folder`. A file that is missing there is downloaded into it.
    fallback
        ``"synthetic"``: where the file is missing, do not try the network, warn, and stand in a
        synthetic trace of as many requests.
    spread
        How arrivals that share a time stamp are spread (:func:`spread_batches`). Left out, it is
        ``"random"`` for ``mooncake-conversation`` and ``"none"`` for the others.
    seed
        For a random spread or a synthetic trace.
    prefix_blocks
        Add a column ``prefix_blocks`` with the names of each prompt's blocks of 512 tokens, so
        that shared prefixes can be seen (Mooncake only).

    Returns
    -------
    pandas.DataFrame
        Columns ``arrival``, ``prompt``, ``output``; ``attrs["origin"]`` is ``"file"`` or
        ``"synthetic"``.

    Raises
    ------
    ValueError
        Where the file is damaged, or missing and cannot be had.
    """
    public = _public(name)
    _check_choice("fallback", fallback, (None, "synthetic"))
    path = find_folder(folder) / public.file
    if not path.is_file():
        if fallback == "synthetic":
            warnings.warn(
                f"trace={name!r}: {path} is missing; a synthetic trace stands in",
                stacklevel=2,
            )
            return synthetic(name, public.requests, seed)
        download(name, folder)
    frame = _read_public(public, path, prefix_blocks)
    how = public.spread if spread is None else spread
    frame["arrival"] = spread_batches(frame["arrival"].to_numpy(), how, seed)
    frame.attrs = {"name": name, "origin": "file"}
    return frame


def _public(name: str) -> PublicTrace:
    if name not in TRACES:
        raise ValueError(f"trace={name!r}: unknown; known are {', '.join(TRACES)}")
    return TRACES[name]


def _read_public(public: PublicTrace, path: Path, prefix_blocks: bool) -> pd.DataFrame:
    arrival, prompt, output = public.columns
    extra = {"hash_ids": "prefix_blocks"} if prefix_blocks else {}
    frame = read_requests(
        path, arrival=arrival, prompt=prompt, output=output, unit=public.unit, extra=extra
    )
    if _sha256(path.read_bytes()) != public.sha256:
        raise ValueError(
            f"file={path}: is not the published file (its sha256 differs, and it has "
            f"{len(frame)} of {public.requests} requests); read_requests reads any file"
        )
    if prefix_blocks:
        frame["prefix_blocks"] = [tuple(blocks) for blocks in frame["prefix_blocks"]]
    return frame


def download(name: str, folder: str | Path | None = None) -> Path:
    """Fetch a public trace and keep it, if its checksum is right.

    Parameters
    ----------
    name
        One of :data:`TRACES`.
    folder
        Where to keep it; see :func:`find_folder`.

    Raises
    ------
    ValueError
        Where there is no network, the checksum is wrong, or the folder cannot be written to.
    """
    public = _public(name)
    path = find_folder(folder) / public.file
    try:
        with urllib.request.urlopen(public.address, timeout=20) as answer:
            content = answer.read()
    except (urllib.error.URLError, OSError) as error:
        reason = getattr(error, "reason", None) or error
        raise ValueError(
            f"trace={name!r}: {path} is missing, and {public.address} cannot be reached "
            f"({reason}); put the file there, name its folder in WHONEXT_TRACES, "
            "or take the synthetic trace"
        ) from None
    if _sha256(content) != public.sha256:
        raise ValueError(
            f"trace={name!r}: {public.address} gave another file (its sha256 is not "
            f"{public.sha256})"
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"{path.name}.{os.getpid()}.part")
        part.write_bytes(content)
        part.replace(path)
    except OSError as error:
        raise ValueError(f"folder={path.parent}: cannot be written to ({error.strerror})") from None
    return path


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


# ------------------------------------------------------------------------------------------------
# Reading files
# ------------------------------------------------------------------------------------------------


def read_requests(
    source: str | Path | pd.DataFrame,
    *,
    arrival: str = "arrival",
    prompt: str = "prompt",
    output: str = "output",
    unit: str = "s",
    extra: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    """Read requests from one's own file or DataFrame.

    Parameters
    ----------
    source
        A CSV file with a header, a ``.jsonl`` file with one object a line, or a DataFrame.
    arrival, prompt, output
        Names of the columns with the time of arrival and the tokens in and out.
    unit
        Unit of the times (``"s"``, ``"ms"``, ``"us"``, ``"ns"``, ``"min"``, ``"h"``), or
        ``"date"`` for dates such as ``2023-11-16 18:15:46.68``.
    extra
        More columns to keep, and their new names.

    Returns
    -------
    pandas.DataFrame
        Columns ``arrival`` (seconds since the first request, in order), ``prompt`` and ``output``
        (whole numbers). Requests that are not in order of time are sorted, with a warning; those
        of one instant stay in the order of the file.

    Raises
    ------
    ValueError
        Naming the file, the line (of a DataFrame, the row) and the value that is wrong.
    """
    wanted = {arrival: "arrival", prompt: "prompt", output: "output"} | dict(extra or {})
    _check_choice("unit", unit, (*UNITS, "date"))
    table = _read_columns(source, list(wanted))
    times = table.dates(arrival) if unit == "date" else table.numbers(arrival) * UNITS[unit]
    frame = pd.DataFrame({"arrival": times - times.min()})
    frame["prompt"] = table.tokens(prompt)
    frame["output"] = table.tokens(output)
    for name in extra or {}:
        frame[wanted[name]] = pd.Series(table.columns[name], dtype=object)
    late = int((np.diff(times) < 0.0).sum())
    if late:
        warnings.warn(
            f"{table.label}: {late} requests come before the one above them; "
            "all are sorted by time",
            stacklevel=2,
        )
        frame = frame.sort_values("arrival", kind="stable", ignore_index=True)
    return frame


def read_csv(path: str | Path) -> pd.DataFrame:
    """Read jobs, not requests, from a CSV file.

    Parameters
    ----------
    path
        A file with a header and the columns ``arrival`` and ``size``; if you like, ``kind`` (a
        number or a name), ``weight``, ``prediction`` and ``cost``. Other columns are left out.

    Returns
    -------
    pandas.DataFrame
        What :meth:`whonext.workload.Workload.from_frame` takes.

    Raises
    ------
    ValueError
        Naming the file, the line and the value that is wrong.
    """
    table = _read_columns(Path(path), ["arrival", "size"], ["kind", "weight", "prediction", "cost"])
    numbers = [name for name in table.columns if name != "kind"]
    frame = pd.DataFrame({name: table.numbers(name) for name in numbers})
    if "kind" in table.columns:
        kinds = table.columns["kind"]
        named = any(not str(kind).strip().isdigit() for kind in kinds)
        frame["kind"] = [str(kind).strip() for kind in kinds] if named else [int(k) for k in kinds]
    return frame


@dataclass
class _Columns:
    """Columns as read, with what it takes to say where a bad value stands."""

    columns: Mapping[str, Sequence[Any]]
    label: str
    lines: Sequence[int] | None = None  # None: rows of a DataFrame

    def _refuse(self, name: str, row: int, rule: str) -> ValueError:
        place = f"row {row}" if self.lines is None else f"line {self.lines[row]}"
        return ValueError(f"{self.label}, {place}: {name}={self.columns[name][row]!r} {rule}")

    def numbers(self, name: str) -> FloatArray:
        """Give a column as finite numbers."""
        values = self.columns[name]
        try:
            result = np.array(values, dtype=np.float64)
        except (TypeError, ValueError):
            row = next(i for i, value in enumerate(values) if not _is_number(value))
            raise self._refuse(name, row, "is not a number") from None
        for row in np.flatnonzero(~np.isfinite(result))[:1]:
            raise self._refuse(name, int(row), "must be a finite number")
        return result

    def tokens(self, name: str) -> NDArray[np.int64]:
        """Give a column as counts of tokens."""
        values = self.numbers(name)
        for row in np.flatnonzero((values < 0.0) | (np.mod(values, 1.0) != 0.0))[:1]:
            raise self._refuse(name, int(row), "must be a whole number of tokens, 0 or more")
        return values.astype(np.int64)

    def dates(self, name: str) -> FloatArray:
        """Give a column of dates, in seconds since the first row."""
        dates = pd.to_datetime(
            pd.Series(self.columns[name], dtype=object), format="ISO8601", utc=True, errors="coerce"
        )
        for row in np.flatnonzero(dates.isna())[:1]:
            raise self._refuse(name, int(row), "is not a date such as 2023-11-16 18:15:46.68")
        return (dates - dates.iloc[0]).dt.total_seconds().to_numpy(dtype=np.float64)


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _read_columns(
    source: str | Path | pd.DataFrame, names: list[str], optional: Sequence[str] = ()
) -> _Columns:
    """Read the columns with these names, whatever they hold."""
    if isinstance(source, pd.DataFrame):
        label = "frame"
        _check_names(label, names, source.columns)
        table = _Columns({name: source[name].tolist() for name in names}, label)
    else:
        path = Path(source)
        read = _read_json_lines if path.suffix in (".jsonl", ".ndjson") else _read_csv_lines
        table = read(path, names, optional)
    if not len(next(iter(table.columns.values()))):
        raise ValueError(f"{table.label}: has no rows")
    return table


def _check_names(label: str, names: Iterable[str], present: Iterable[Any]) -> None:
    known = [str(name) for name in present]
    missing = [name for name in names if name not in known]
    if missing:
        raise ValueError(
            f"{label}: has no column {' or '.join(missing)}; it has {', '.join(known) or 'none'}"
        )


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ValueError(f"file={path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise ValueError(f"file={path}: is not a text file") from None


def _read_csv_lines(path: Path, names: list[str], optional: Sequence[str]) -> _Columns:
    reader = csv.reader(_read_text(path).splitlines())
    header = [name.strip() for name in next(reader, [])]
    if not header:
        raise ValueError(f"file={path}: is empty; a header and one line a row are expected")
    _check_names(f"file={path}", names, header)
    rows, lines = [], []
    for row in reader:
        if not row:
            continue
        if len(row) != len(header):
            raise ValueError(
                f"file={path}, line {reader.line_num}: {','.join(row)!r} has {len(row)} of "
                f"{len(header)} columns; was the file cut short?"
            )
        rows.append(row)
        lines.append(reader.line_num)
    kept = [*names, *(name for name in optional if name in header)]
    columns = {name: [row[header.index(name)] for row in rows] for name in kept}
    return _Columns(columns, f"file={path}", lines)


def _read_json_lines(path: Path, names: list[str], optional: Sequence[str]) -> _Columns:
    rows, lines = [], []
    for place, text in enumerate(_read_text(path).splitlines(), start=1):
        if not text.strip():
            continue
        label = f"file={path}, line {place}"
        try:
            row = json.loads(text)
        except ValueError:
            raise ValueError(
                f"{label}: {_short(text)!r} is not JSON; was the file cut short?"
            ) from None
        if not isinstance(row, dict):
            raise ValueError(f"{label}: {_short(text)!r} is not a JSON object")
        _check_names(label, names, row)
        rows.append(row)
        lines.append(place)
    kept = [*names, *(name for name in optional if rows and all(name in row for row in rows))]
    return _Columns({name: [row[name] for row in rows] for name in kept}, f"file={path}", lines)


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:30]}...{text[-27:]}"


def _check_choice(name: str, value: Any, allowed: Sequence[Any]) -> None:
    if value not in allowed:
        words = ", ".join(str(choice) for choice in allowed)
        raise ValueError(f"{name}={value!r}: must be one of {words}")


def spread_batches(times: FloatArray, how: str = "random", seed: Seed = 0) -> FloatArray:
    """Spread arrivals that share a time stamp over the time until the next stamp.

    A log that is written every three seconds has batches of three seconds. Left as they are, they
    look like bursts that never were.

    Parameters
    ----------
    times
        Arrival times in order, shape (n,).
    how
        ``"random"``: uniformly at random, as a Poisson process would be, given the counts;
        ``"even"``: at equal distances, the first staying where it is; ``"none"``: not at all.
    seed
        For a random spread.

    Returns
    -------
    numpy.ndarray
        Times in order. The last batch gets the median distance between stamps.

    Examples
    --------
    >>> import numpy
    >>> spread_batches(numpy.array([0.0, 0.0, 0.0, 3.0]), "even")
    array([0., 1., 2., 3.])
    """
    _check_choice("spread", how, ("random", "even", "none"))
    stamps, counts = np.unique(times, return_counts=True)
    if how == "none" or len(stamps) < 2:
        return np.asarray(times, dtype=np.float64)
    gaps = np.diff(stamps)
    widths = np.append(gaps, np.median(gaps))
    start, width = np.repeat(stamps, counts), np.repeat(widths, counts)
    if how == "even":
        place = np.arange(len(times)) - np.repeat(np.cumsum(counts) - counts, counts)
        return start + width * place / np.repeat(counts, counts)
    shared = np.repeat(counts > 1, counts)
    shift = random_stream(seed, "spread").random(len(times))
    return np.sort(start + np.where(shared, width * shift, 0.0))


# ------------------------------------------------------------------------------------------------
# Stand-ins
# ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TraceModel:
    """A stochastic model of a trace: a law for each column, and how two of them go together.

    Attributes
    ----------
    name
        Of the trace it was fitted to.
    requests
        How many requests that had.
    rate
        Requests a second.
    gap, prompt, output
        Laws of the seconds between requests and of the tokens: mixtures of lognormal laws.
    ranges
        Least and largest value of each in the trace; samples are kept within.
    correlation
        Of the normal scores of prompt and output (a Gaussian copula).
    quality
        How far from the trace it is. ``ks``: Kolmogorov-Smirnov distance for each column;
        ``gap_scv``, ``spearman``, ``dispersion`` (variance over mean of the arrivals in windows
        of so many seconds): what the trace has, and what a synthetic trace of ten times as many
        requests has.
    """

    name: str
    requests: int
    rate: float
    gap: Distribution
    prompt: Distribution
    output: Distribution
    ranges: dict[str, tuple[float, float]]
    correlation: float
    quality: dict[str, Any] = field(default_factory=dict, compare=False)

    def sample(self, requests: int | None = None, seed: Seed = 0) -> pd.DataFrame:
        """Make a synthetic trace.

        Parameters
        ----------
        requests
            How many; as many as the trace had unless given.
        seed
            A number or a numpy ``SeedSequence``.
        """
        n = whole("requests", self.requests if requests is None else requests)
        parts = [random_stream(seed, "trace gaps", part) for part in range(self.gap.streams)]
        longest = self.ranges["gap"][1]
        gaps = np.minimum(self.gap.sample(parts, n), longest)
        gaps[0] = 0.0
        stretch = 1.0 / (self.rate * float(self.gap.capped_moment(1.0, longest)))
        scores = random_stream(seed, "trace tokens").standard_normal((n, 2))
        rest = math.sqrt(1.0 - self.correlation**2)
        other = self.correlation * scores[:, 0] + rest * scores[:, 1]
        frame = pd.DataFrame(
            {
                "arrival": np.cumsum(gaps) * stretch,
                "prompt": self._tokens("prompt", scores[:, 0]),
                "output": self._tokens("output", other),
            }
        )
        frame.attrs = {"name": self.name, "origin": "synthetic"}
        return frame

    def _tokens(self, name: str, scores: FloatArray) -> NDArray[np.int64]:
        """Turn normal scores into tokens: the least number that the law reaches by then."""
        low, high = (int(end) for end in self.ranges[name])
        reached = self.cdf(name, np.arange(low, high))
        return low + np.searchsorted(reached, special.ndtr(scores))

    def cdf(self, name: str, x: FloatArray) -> FloatArray:
        """P[column <= x], rounding and range included."""
        low, high = self.ranges[name]
        at = x if name == "gap" else np.floor(x) + 0.5
        return np.where(x >= high, 1.0, np.where(x < low, 0.0, getattr(self, name).cdf(at)))

    def to_dict(self) -> dict[str, Any]:
        """Give plain values, for JSON."""
        return {
            "name": self.name,
            "requests": self.requests,
            "rate": self.rate,
            "laws": {each: getattr(self, each).spec for each in ("gap", "prompt", "output")},
            "ranges": {each: list(pair) for each, pair in self.ranges.items()},
            "correlation": self.correlation,
            "quality": self.quality,
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> TraceModel:
        """Read what :meth:`to_dict` gave."""
        return cls(
            name=content["name"],
            requests=content["requests"],
            rate=content["rate"],
            **{each: parse_law(text) for each, text in content["laws"].items()},
            ranges={each: tuple(pair) for each, pair in content["ranges"].items()},
            correlation=content["correlation"],
            quality=content["quality"],
        )

    @classmethod
    def load(cls, name: str) -> TraceModel:
        """Read the model of a public trace that comes with the package."""
        _public(name)
        file = resources.files("whonext") / "data" / f"{name}.json"
        return cls.from_dict(json.loads(file.read_text(encoding="utf-8")))

    def save(self, path: str | Path) -> None:
        """Write the model as JSON."""
        Path(path).write_text(json.dumps(self.to_dict(), indent=2) + "\n", encoding="utf-8")


def synthetic(name: str, requests: int | None = None, seed: Seed = 0) -> pd.DataFrame:
    """Make a trace that looks like a public one, without its file.

    Lengths, their rank correlation and the gaps between requests follow laws fitted to the trace
    (:class:`TraceModel` says how closely). What the laws do not hold is lost: rates that drift by
    the minute, conversations that go on, prefixes that are shared.

    Parameters
    ----------
    name
        One of :data:`TRACES`.
    requests
        How many; as many as the trace has unless given.
    seed
        A number or a numpy ``SeedSequence``.
    """
    return TraceModel.load(name).sample(requests, seed)


def fit(trace: pd.DataFrame, name: str = "trace") -> TraceModel:
    """Fit the model of a synthetic trace to a trace.

    Each column gets the mixture, of one to six lognormal laws, that the Bayesian information
    criterion prefers; it is fitted by expectation maximisation on the logarithms.

    Parameters
    ----------
    trace
        Columns ``arrival`` (seconds, in order), ``prompt`` and ``output`` (tokens).
    name
        What to call it.

    Raises
    ------
    ValueError
        Where the trace has fewer than 100 requests, too few for a law.
    """
    _check_names("trace", COLUMNS, trace.columns)
    if len(trace) < 100:
        raise ValueError(f"trace={len(trace)} requests: a fit needs 100 or more")
    arrival = trace["arrival"].to_numpy(dtype=np.float64)
    gaps = np.diff(arrival)
    columns = {
        "gap": np.maximum(gaps, 1e-6),  # as fine as clocks are
        "prompt": np.maximum(trace["prompt"].to_numpy(dtype=np.float64), 1.0),
        "output": np.maximum(trace["output"].to_numpy(dtype=np.float64), 1.0),
    }
    rank = float(stats.spearmanr(columns["prompt"], columns["output"]).statistic)
    model = TraceModel(
        name=name,
        requests=len(trace),
        rate=_digits(1.0 / gaps.mean()),
        gap=_fit_law(columns["gap"]),
        prompt=_fit_law(columns["prompt"]),
        output=_fit_law(columns["output"]),
        ranges={each: (float(v.min()), float(v.max())) for each, v in columns.items()},
        correlation=_digits(2.0 * math.sin(math.pi * rank / 6.0)),
    )
    model.quality.update(_quality(model, trace, columns))
    return model


def _fit_law(values: FloatArray) -> Mixture:
    """Fit a mixture of lognormal laws, with as many as the data can bear."""
    logs = np.log(values)
    if len(logs) > 4000:  # quantiles say as much, in less time
        places = (np.arange(4000) + 0.5) / 4000
        logs = np.quantile(logs, places, method="inverted_cdf")
    fits = [_fit_normals(logs, components) for components in range(1, 7)]
    _, weights, means, deviations = min(fits, key=lambda each: each[0])
    shares = [_digits(w) for w in weights[1:]]
    laws = [
        LogNormal(_digits(math.exp(m + s**2 / 2.0)), _digits(s))
        for m, s in zip(means, deviations, strict=True)
    ]
    return Mixture((round(1.0 - sum(shares), 9), *shares), tuple(laws))


def _fit_normals(
    values: FloatArray, components: int, rounds: int = 300
) -> tuple[float, FloatArray, FloatArray, FloatArray]:
    """Fit a mixture of normal laws; give the Bayesian information criterion and the parameters."""
    n = len(values)
    groups = np.array_split(np.sort(values), components)
    least = 0.02 * max(float(values.std()), 1e-6)  # a narrower law would sit on a single value
    weights = np.full(components, 1.0 / components)
    means = np.array([group.mean() for group in groups])
    deviations = np.maximum([group.std() for group in groups], least)
    x, counts = np.unique(values, return_counts=True)
    likelihood = -math.inf
    for _ in range(rounds):
        scores = (x[:, None] - means) / deviations
        terms = weights / deviations * np.exp(-0.5 * scores**2)
        total = np.maximum(terms.sum(axis=1), 1e-300)
        before, likelihood = likelihood, float(counts @ np.log(total))
        if likelihood - before < 1e-3:
            break
        parts = terms * (counts / total)[:, None]  # how much of each value is each law's
        sums = np.maximum(parts.sum(axis=0), 1e-6 * n)
        weights = sums / sums.sum()
        means = x @ parts / sums
        variances = (parts * (x[:, None] - means) ** 2).sum(axis=0) / sums
        deviations = np.maximum(np.sqrt(variances), least)
    likelihood -= 0.5 * n * math.log(2.0 * math.pi)
    criterion = (3 * components - 1) * math.log(n) - 2.0 * likelihood
    return criterion, weights, means, deviations


def _quality(
    model: TraceModel, trace: pd.DataFrame, columns: Mapping[str, FloatArray]
) -> dict[str, Any]:
    """Measure how far the model is from the trace."""
    other = model.sample(10 * len(trace), seed=0)
    pairs = [(trace, "trace"), (other, "model")]
    return {
        "ks": {each: round(_distance(model, each, v), 4) for each, v in columns.items()},
        "gap_scv": {which: _scv(np.diff(frame["arrival"])) for frame, which in pairs},
        "spearman": {
            which: _digits(stats.spearmanr(frame["prompt"], frame["output"]).statistic)
            for frame, which in pairs
        },
        "dispersion": {
            f"{window} s": {which: _dispersion(frame["arrival"], window) for frame, which in pairs}
            for window in (1, 10, 60)
        },
    }


def _distance(model: TraceModel, name: str, values: FloatArray) -> float:
    """Kolmogorov-Smirnov distance between a column and its law, at and just before each value."""
    x, counts = np.unique(values, return_counts=True)
    at = np.cumsum(counts) / len(values)
    before = np.nextafter(x, -np.inf) if name == "gap" else x - 1.0
    return float(
        max(
            np.abs(at - model.cdf(name, x)).max(),
            np.abs(at - counts / len(values) - model.cdf(name, before)).max(),
        )
    )


def _scv(gaps: FloatArray) -> float:
    return _digits(float(gaps.var() / gaps.mean() ** 2))


def _dispersion(arrival: pd.Series, window: float) -> float:
    counts = np.bincount((arrival.to_numpy() // window).astype(np.int64))[:-1]
    return _digits(float(counts.var() / counts.mean()))


def _digits(value: float) -> float:
    """Keep five significant digits."""
    return float(f"{value:.5g}")


# ------------------------------------------------------------------------------------------------
# From tokens to jobs
# ------------------------------------------------------------------------------------------------


def _linear(
    prompt: FloatArray,
    output: FloatArray,
    *,
    prefill_per_token: float = 1e-4,
    decode_per_token: float = 0.025,
    overhead: float = 0.0,
) -> FloatArray:
    """Seconds: each token of the prompt and of the output takes its time, whatever else runs."""
    return overhead + prefill_per_token * prompt + decode_per_token * output


def _kv_token_time(prompt: FloatArray, output: FloatArray, *, step: float = 0.025) -> FloatArray:
    """Token-seconds of KV cache: the prompt, and each token of the output from its step on."""
    return step * (prompt * output + output * (output + 1.0) / 2.0)


#: Service times by name: functions of the prompt and output tokens, and of named parameters.
SERVICE_TIMES: dict[str, Callable[..., FloatArray]] = {
    "linear": _linear,
    "kv-token-time": _kv_token_time,
}

#: What a request is charged at, by name: functions of the prompt and output tokens.
TOKEN_COSTS: dict[str, Callable[[FloatArray, FloatArray], FloatArray]] = {
    "one": lambda prompt, _output: np.ones_like(prompt),
    "tokens": lambda prompt, output: prompt + output,
    "prompt": lambda prompt, _output: prompt,
    "prompt-and-twice-output": lambda prompt, output: prompt + 2.0 * output,
    "kv-token-steps": lambda prompt, output: _kv_token_time(prompt, output, step=1.0),
}


def trace_workload(
    trace: pd.DataFrame,
    *,
    service: str | Callable[..., FloatArray] = "linear",
    cost: str = "one",
    load: float | None = None,
    prediction: Prediction | str | None = None,
    **parameters: float,
) -> Workload:
    """Turn requests into jobs.

    Parameters
    ----------
    trace
        Columns ``arrival``, ``prompt`` and ``output``; a column ``kind`` with the name of each
        request's class, if there are classes.
    service
        How long a request holds a server: a name in :data:`SERVICE_TIMES`, or a function of the
        arrays of prompt and output tokens. ``"linear"`` is ``overhead + prefill_per_token *
        prompt + decode_per_token * output`` seconds. Its defaults (0, 0.0001 and 0.025) are
        round numbers, not measurements: put in your own.
    cost
        What a request is charged at: a name in :data:`TOKEN_COSTS`.
    load
        Stretch the arrival times to this load; they are kept unless given.
    prediction
        As for :class:`whonext.workload.Workload`; exact unless given.
    **parameters
        Parameters of the service time.

    Raises
    ------
    ValueError
        For an unknown name or parameter, and for a request that would take no time.
    """
    _check_names("trace", COLUMNS, trace.columns)
    _check_choice("cost", cost, tuple(TOKEN_COSTS))
    prompt, output = (trace[name].to_numpy(dtype=np.float64) for name in ("prompt", "output"))
    frame = pd.DataFrame({"arrival": trace["arrival"].to_numpy(dtype=np.float64)})
    frame["size"] = _service_times(service, prompt, output, parameters)
    frame["cost"] = TOKEN_COSTS[cost](prompt, output)
    if "kind" in trace.columns:
        frame["kind"] = trace["kind"].to_numpy()
    return Workload.from_frame(frame, load=load, prediction=prediction)


def _service_times(
    service: str | Callable[..., FloatArray],
    prompt: FloatArray,
    output: FloatArray,
    parameters: Mapping[str, float],
) -> FloatArray:
    if callable(service):
        return service(prompt, output, **parameters)
    _check_choice("service", service, tuple(SERVICE_TIMES))
    model = SERVICE_TIMES[service]
    for name, value in parameters.items():
        _check_choice(f"parameter of {service}", name, tuple(model.__kwdefaults__ or ()))
        if not 0.0 <= number(name, value) < math.inf:
            raise ValueError(f"{name}={value}: must be a finite number, 0 or more")
    return model(prompt, output, **parameters)
