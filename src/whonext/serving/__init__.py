"""The same policies inside live vLLM.

This is the only room that imports vllm, and each module does so when it is used:
``import whonext.serving`` works without it.

- :mod:`whonext.serving.facts`: what a server is told about classes and requests.
- :mod:`whonext.serving.scheduler`: vLLM's scheduler, asking a policy who is next.
- :mod:`whonext.serving.step_clock`: vLLM's real scheduler without a model, on a virtual clock.
- :mod:`whonext.serving.model`: a real small model and a tiny random one, as local folders.
- :mod:`whonext.serving.server`: the HTTP server, and an engine in this process.
- :mod:`whonext.serving.load`: open-loop load, measured from the client's side.
- :mod:`whonext.serving.predictor`: an honest guess of a request's output length.
"""

from __future__ import annotations

import importlib.util
import os

__all__ = ["SCHEDULER", "prepare_environment", "require_vllm"]

#: Qualified name for vLLM's ``scheduler_cls``.
SCHEDULER = "whonext.serving.scheduler.WhoNextScheduler"


def prepare_environment() -> None:
    """Set what vLLM reads from the environment, where the user has not.

    No hub (models are local folders), no usage reports, and on a CPU 1 GiB for the KV cache. To
    be called before vllm is imported.
    """
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")


def require_vllm() -> None:
    """Prepare the environment and raise a clear error where vllm is not installed.

    Raises
    ------
    ModuleNotFoundError
        In one line, saying what to install.
    """
    prepare_environment()
    if importlib.util.find_spec("vllm") is None:
        raise ModuleNotFoundError(
            "vllm is not installed: `make live` installs it (requirements-cpu.txt, or "
            "requirements.txt where there is a GPU)",
            name="vllm",
        )
