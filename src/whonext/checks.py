"""One clear ``ValueError`` for a bad number: its name, its value, what is allowed.

>>> positive("load", -1)
Traceback (most recent call last):
ValueError: load=-1: must be a finite number above 0
"""

from __future__ import annotations

import math
from typing import Any

__all__ = ["number", "positive", "whole"]


def number(name: str, value: Any) -> float:
    """Give ``value`` as a float, which may be infinite or nan.

    Raises
    ------
    ValueError
        Where it is no number.
    """
    if isinstance(value, bool):
        raise ValueError(f"{name}={value}: must be a number")
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name}={value!r}: must be a number") from None


def positive(name: str, value: Any) -> float:
    """Give ``value`` as a finite float above 0.

    Raises
    ------
    ValueError
        Where it is not one.
    """
    result = number(name, value)
    if not 0.0 < result < math.inf:
        raise ValueError(f"{name}={result:g}: must be a finite number above 0")
    return result


def whole(name: str, value: Any) -> int:
    """Give ``value`` as a whole number, 1 or more; ``1e6`` is one.

    Raises
    ------
    ValueError
        Where it is not one.
    """
    result = number(name, value)
    if not (1.0 <= result < math.inf and result == int(result)):
        raise ValueError(f"{name}={result:g}: must be a whole number, 1 or more")
    return int(value)
