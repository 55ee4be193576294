"""What every formula asks of its arguments, said once."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from whonext.distributions import Distribution

__all__ = ["InfiniteMomentError", "number", "rate_and_load", "require_moment", "stable_load"]

_ORDINAL = {1: "first", 2: "second", 3: "third", 4: "fourth", 5: "fifth"}


class InfiniteMomentError(ValueError):
    """The quantity asked for is infinite, because a moment of the size is."""


def number(
    name: str, value: float, *, above: float | None = None, least: float | None = None
) -> float:
    """``value`` as a finite float, or a ``ValueError`` that names it."""
    allowed = "must be a number"
    if above is not None:
        allowed += f" above {above:g}"
    if least is not None:
        allowed += f" of at least {least:g}"
    try:
        result = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name}={value!r}: {allowed}") from None
    if (
        not math.isfinite(result)
        or (above is not None and result <= above)
        or (least is not None and result < least)
    ):
        raise ValueError(f"{name}={result:g}: {allowed}")
    return result


def count(name: str, value: int, least: int = 1) -> int:
    """``value`` as a whole number of at least ``least``, or a ``ValueError`` that names it."""
    if isinstance(value, bool) or int(value) != value or value < least:
        raise ValueError(f"{name}={value}: must be a whole number of at least {least}")
    return int(value)


def stable_load(load: float, servers: int = 1, model: str | None = None) -> float:
    """``load`` where the queue is stable, or a ``ValueError``."""
    load = number("load", load, least=0.0)
    if load >= 1:
        raise ValueError(
            f"load={load:g}: an {model or f'M/G/{servers}'} queue is stable only below 1"
        )
    return load


def rate_and_load(
    mean_size: float,
    *,
    arrival_rate: float | None = None,
    load: float | None = None,
    servers: int = 1,
    model: str | None = None,
) -> tuple[float, float]:
    """Arrival rate and load of a stable queue, from exactly one of the two."""
    if (arrival_rate is None) == (load is None):
        raise ValueError("give exactly one of arrival_rate and load")
    servers = count("servers", servers)
    if not math.isfinite(mean_size):
        raise InfiniteMomentError("the mean size is infinite, so no load below 1 can be offered")
    if load is not None:
        load = stable_load(load, servers, model)
        return load * servers / mean_size, load
    arrival_rate = number("arrival_rate", arrival_rate, least=0.0)  # type: ignore[arg-type]
    return arrival_rate, stable_load(arrival_rate * mean_size / servers, servers, model)


def require_moment(size: Distribution, order: int, what: str) -> float:
    """Give the moment of that order, or raise where ``what`` is infinite for want of it."""
    value = size.second_moment if order == 2 else size.moment(order)
    if not math.isfinite(value):
        raise InfiniteMomentError(
            f"{what} is infinite: the {_ORDINAL.get(order, f'{order}th')} moment "
            f"of {size.spec} is infinite"
        )
    return float(value)
