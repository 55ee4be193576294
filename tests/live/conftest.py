"""Tests against the vLLM that is installed: all of them are skipped where there is none."""

from __future__ import annotations

import importlib.util
import os

import pytest

from whonext.serving import prepare_environment

os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")  # the step clock makes many schedulers
prepare_environment()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    missing = importlib.util.find_spec("vllm") is None
    for item in items:
        if "tests/live/" not in item.path.as_posix():
            continue
        item.add_marker(pytest.mark.live)
        if missing:
            item.add_marker(pytest.mark.skip(reason="vllm is not installed (make live)"))
