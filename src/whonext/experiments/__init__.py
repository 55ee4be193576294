"""The named, seeded runs behind every figure of the book and every row of the ledger.

An experiment is a function that returns plain values, made known by a decorator::

    @experiment("my-figure")
    def my_figure(small: bool = False) -> dict:
        ...

``whonext reproduce my-figure`` runs it and writes ``results/my-figure.json``, which pages read
with :func:`load_record`. With ``small`` the same code runs in seconds, for tests.

A long run keeps what it has with :func:`kept`, and takes up from there if it is stopped.
"""

from __future__ import annotations

import contextvars
import difflib
import importlib
import importlib.metadata
import importlib.util
import json
import os
import pkgutil
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

__all__ = [
    "Experiment",
    "experiment",
    "find",
    "kept",
    "load_record",
    "registry",
    "results_folder",
    "run",
    "save_record",
]

#: What an experiment looks like: ``function(small=False)`` gives plain values.
Function = Callable[..., dict[str, Any]]


@dataclass(frozen=True)
class Experiment:
    """A named run.

    Attributes
    ----------
    name
        Its name on the command line, and of its record.
    about
        What it shows, in a line.
    seed
        The seed that its record states.
    function
        Called with ``small``; returns what becomes the record's ``data``.
    """

    name: str
    about: str
    seed: int
    function: Function


_known: dict[str, Experiment] = {}


def experiment(name: str, *, seed: int = 0) -> Callable[[Function], Function]:
    """Make a function known as an experiment; the function itself stays as it is.

    Parameters
    ----------
    name
        Lower case, words joined by hyphens.
    seed
        The seed that the function uses.
    """

    def register(function: Function) -> Function:
        known = _known.get(name)
        if known is not None and known.function.__module__ != function.__module__:
            raise ValueError(f"experiment={name!r}: is the name of two experiments")
        about = (function.__doc__ or "").strip().partition("\n")[0]
        _known[name] = Experiment(name, about, seed, function)
        return function

    return register


def registry() -> dict[str, Experiment]:
    """All experiments by name, in alphabetical order."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return dict(sorted(_known.items()))


def find(name: str) -> Experiment:
    """Look up an experiment.

    Raises
    ------
    ValueError
        Where there is none of that name.
    """
    known = registry()
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise ValueError(f"experiment={name!r}: unknown{hint}; there are {', '.join(known)}")
    return known[name]


# ------------------------------------------------------------------------------------------------
# Running
# ------------------------------------------------------------------------------------------------

_partial: contextvars.ContextVar[Path | None] = contextvars.ContextVar("partial", default=None)


def run(name: str, small: bool = False) -> dict[str, Any]:
    """Run an experiment.

    Parameters
    ----------
    name
        Which one.
    small
        Whether to run it short, as tests do.

    Returns
    -------
    dict
        ``name, command, seed, version, machine, date, seconds, data``: the record.
    """
    from whonext import __version__

    each = find(name)
    token = _partial.set(None if small else _partial_path(name))
    began = time.perf_counter()
    try:
        data = each.function(small=small)
    finally:
        _partial.reset(token)
    return {
        "name": name,
        "command": f"whonext reproduce {name}{' --small' if small else ''}",
        "seed": each.seed,
        "version": __version__,
        "machine": machine(),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "seconds": round(time.perf_counter() - began, 1),
        "data": _plain(data),
    }


def kept(step: str, compute: Callable[[], Any]) -> Any:
    """Give the result of a step of a long run, from the last try where that got so far.

    Parameters
    ----------
    step
        A name for the step that contains all its settings: a result kept under one name is
        never used for another.
    compute
        Gives plain values.
    """
    from whonext import __version__

    path = _partial.get()
    if path is None:
        return _plain(compute())
    found = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    if found.get("version") != __version__:
        found = {"version": __version__, "steps": {}}
    if step not in found["steps"]:
        found["steps"][step] = _plain(compute())
        _write(path, found)
    return found["steps"][step]


def machine() -> str:
    """Say what numbers are made on: processor, cores, system and the versions that matter."""
    versions = [f"Python {platform.python_version()}", f"numpy {np.__version__}"]
    if importlib.util.find_spec("numba"):
        versions.append(f"numba {importlib.metadata.version('numba')}")
    system = f"{platform.system()} {platform.machine()}"
    return f"{_processor()}, {os.cpu_count()} cores; {system}; {', '.join(versions)}"


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


# ------------------------------------------------------------------------------------------------
# Records
# ------------------------------------------------------------------------------------------------


def results_folder() -> Path:
    """Find the folder of the records: ``WHONEXT_RESULTS``, or ``results/`` of the checkout.

    Raises
    ------
    ValueError
        Where there is neither.
    """
    named = os.environ.get("WHONEXT_RESULTS")
    folder = Path(named) if named else Path(__file__).resolve().parents[3] / "results"
    if not folder.is_dir():
        raise ValueError(
            f"results={folder}: no such folder; set WHONEXT_RESULTS to where the records are"
        )
    return folder


def load_record(name: str) -> dict[str, Any]:
    """Read the record of an experiment.

    Raises
    ------
    ValueError
        Where it has not been written yet.
    """
    path = results_folder() / f"{name}.json"
    if not path.is_file():
        raise ValueError(f"record={name!r}: not there yet; whonext reproduce {name} writes it")
    return json.loads(path.read_text(encoding="utf-8"))


def save_record(record: dict[str, Any]) -> Path:
    """Write a record, in place of the one before, and forget the steps kept on the way."""
    path = results_folder() / f"{record['name']}.json"
    _write(path, record)
    _partial_path(record["name"]).unlink(missing_ok=True)
    return path


def _partial_path(name: str) -> Path:
    """Find where an unfinished run keeps its steps: apart from the records."""
    return results_folder() / ".cache" / f"{name}.json"


def _write(path: Path, value: Any) -> None:
    """Write JSON so that a reader sees the old file or the new one, never half of it."""
    path.parent.mkdir(exist_ok=True)
    beside = path.with_suffix(".writing")
    beside.write_text(_json(value) + "\n", encoding="utf-8")
    beside.replace(path)


def _json(value: Any, indent: int = 0) -> str:
    """JSON with short lists and objects on one line: records are read by people too."""
    flat = json.dumps(value, allow_nan=False, ensure_ascii=False)
    if len(flat) + indent <= 100 or not isinstance(value, dict | list) or not value:
        return flat
    inner, outer = " " * (indent + 1), " " * indent
    if isinstance(value, dict):
        parts = [f"{json.dumps(k)}: {_json(v, indent + 1)}" for k, v in value.items()]
        return "{\n" + ",\n".join(inner + part for part in parts) + f"\n{outer}}}"
    if all(isinstance(v, int | float) or v is None for v in value):
        return flat
    return "[\n" + ",\n".join(inner + _json(v, indent + 1) for v in value) + f"\n{outer}]"


def _plain(value: Any) -> Any:
    """Plain JSON values of what an experiment gives: numpy's numbers and arrays, tuples."""
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    return value
