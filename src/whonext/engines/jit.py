"""Numba where it is installed; plain Python where it is not (in a browser)."""

from __future__ import annotations

from typing import Any

__all__ = ["COMPILED", "jit"]

try:
    from numba import njit
except ImportError:  # the kernels are ordinary Python, only slower
    COMPILED = False

    def jit(function: Any) -> Any:
        """Leave the kernel as it is."""
        return function
else:
    COMPILED = True

    def jit(function: Any) -> Any:
        """Compile the kernel at its first call, and keep the result on disk."""
        return njit(cache=True, error_model="numpy")(function)
