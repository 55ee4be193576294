"""The room can be entered without vLLM, and says in one line what is missing."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest

from whonext import serving


def test_nothing_heavy_is_imported_by_looking_in() -> None:
    code = (
        "import sys, whonext, whonext.serving, whonext.serving.facts, whonext.serving.model, "
        "whonext.serving.server, whonext.serving.load, whonext.serving.predictor, "
        "whonext.serving.step_clock, whonext.experiments.live; "
        "print([m for m in ('vllm', 'torch', 'transformers', 'openai') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_where_vllm_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match=r"^vllm is not installed: `make live`"):
        serving.require_vllm()
