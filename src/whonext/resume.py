"""Keep the finished replications of a run in a file, so that a stopped run can go on.

The file holds one line of JSON that says which run it is, and then one for each replication that
has finished. It is written as the run goes, so that nothing more than the replications under way
is lost, however the run ends.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import json
from pathlib import Path
from typing import Any

import numpy as np

from whonext.policies import Policy
from whonext.results import Tally, _pack, _unpack
from whonext.workload import COLUMNS, Workload

__all__ = ["Kept", "replications_kept", "settings_of"]

_FIRST_JOBS = 1_000  # enough to tell two workloads apart whose texts are the same


class Kept:
    """The finished replications of one run, in memory and in a file.

    Parameters
    ----------
    path
        The file; it is made if there is none.
    settings
        All that the numbers of the run depend on, as :func:`settings_of` gives it.

    Attributes
    ----------
    tallies : dict of int to Tally
        By the number of the replication.

    Raises
    ------
    ValueError
        If the file is that of another run, or none of ours.
    """

    def __init__(self, path: str | Path, settings: dict[str, Any]) -> None:
        self.path = Path(path)
        self.tallies: dict[int, Tally] = {}
        settings = json.loads(json.dumps(settings))
        if self.path.exists() and self.path.stat().st_size:
            found, lines, length = _read(self.path)
            self._compare(found, settings)
            self.tallies = {line["replication"]: _unpack(line["tally"]) for line in lines}
            if length < self.path.stat().st_size:  # a line that was cut short is done again
                with self.path.open("r+b") as file:
                    file.truncate(length)
        else:
            self._append({"run": settings})

    def add(self, replication: int, tally: Tally) -> None:
        """Keep a replication that has just finished."""
        self.tallies[replication] = tally
        self._append({"replication": replication, "tally": _pack(tally)})

    def _append(self, line: dict[str, Any]) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def _compare(self, found: dict[str, Any], settings: dict[str, Any]) -> None:
        for name in dict.fromkeys([*settings, *found]):
            there, here = found.get(name), settings.get(name)
            if json.dumps(there) != json.dumps(here):  # as texts, because nan differs from itself
                raise ValueError(
                    f"resume={str(self.path)!r}: belongs to another run, with {name} {there!r} "
                    f"and not {here!r}; give the settings of that run, or another file"
                )


def _read(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]], int]:
    """The settings in a file, its replications, and how many of its bytes are whole lines."""
    lines, length = [], 0
    with contextlib.suppress(ValueError):  # the last line may have been cut short
        for line in path.read_bytes().splitlines(keepends=True):
            if not line.endswith(b"\n"):
                break
            lines.append(json.loads(line))
            length += len(line)
    if not lines or not isinstance(lines[0], dict) or "run" not in lines[0]:
        raise ValueError(f"resume={str(path)!r}: is not a file that a run was kept in")
    return lines[0]["run"], lines[1:], length


def replications_kept(path: str | Path) -> int:
    """How many finished replications a file holds; 0 where there is none."""
    try:
        return len(_read(Path(path))[1])
    except (OSError, ValueError):
        return 0


def settings_of(
    rule: Policy, workload: Workload, servers: int, seed: int, **others: Any
) -> dict[str, Any]:
    """All that the numbers of a run depend on, as plain values.

    What no text can tell (a rule's own code, recorded arrival times, a law of data) is told by
    the first jobs and by a digest of the code.

    Parameters
    ----------
    rule, workload, servers, seed
        As for :func:`whonext.simulate`; the rule bound already.
    **others
        Further settings, plain values.
    """
    from whonext import __version__

    source = np.random.SeedSequence(seed).spawn(1)[0]
    jobs = workload.table(_FIRST_JOBS, source, servers)
    columns = b"".join(getattr(jobs, name).tobytes() for name in COLUMNS)
    return {
        "policy": rule.spec,
        **workload.to_dict(),
        "servers": servers,
        "seed": seed,
        **others,
        "parameters of the rule": _parameters(rule),
        "code of the rule": _digest(_code(rule).encode()),
        "first jobs": _digest(columns),
        "version": __version__,
    }


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:12]


def _parameters(rule: Policy) -> dict[str, Any]:
    """What a rule holds that is plain: a rule that is no dataclass does not name it in its text."""
    return {k: v for k, v in vars(rule).items() if isinstance(v, bool | int | float | str)}


def _code(rule: Policy) -> str:
    """The source of a rule that is not ours; ours is known by the version."""
    texts = []
    for each in type(rule).__mro__[:-1]:
        if not each.__module__.startswith("whonext."):
            with contextlib.suppress(OSError, TypeError):  # typed in at a prompt
                texts.append(inspect.getsource(each))
    return "".join(texts)
