"""Open-loop load: requests are sent when they are due, whatever has become of those before.

A closed loop (so many clients, each sending when it has its answer) slows down when the server
does, and so hides the queue. An open loop does not. Times are the client's: a response time runs
from the moment the request was due, so that a late driver cannot flatter the server either.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = ["LoadRequest", "Outcome", "replay", "replay_http"]


@dataclass(frozen=True)
class LoadRequest:
    """A request to be sent.

    Parameters
    ----------
    id
        Its name, unique in the run.
    arrival
        When it is due, in seconds from the start of the run.
    prompt
        Its prompt, as token ids.
    output
        Tokens of output. The length is forced (``ignore_eos``).
    facts
        What the scheduler is told: see :mod:`whonext.serving.facts`.
    """

    id: str
    arrival: float
    prompt: Sequence[int]
    output: int
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """What became of a request, in seconds from the start of the run.

    Attributes
    ----------
    id, arrival
        As in the request: ``arrival`` is when it was due.
    sent, first_token, finish
        As the client saw it; ``nan`` for what did not happen.
    tokens
        Tokens received.
    error
        What went wrong, or an empty text.
    """

    id: str
    arrival: float
    sent: float
    first_token: float
    finish: float
    tokens: int
    error: str = ""

    @property
    def response(self) -> float:
        """From due to done."""
        return self.finish - self.arrival

    @property
    def ttft(self) -> float:
        """Time to first token, from due."""
        return self.first_token - self.arrival


#: Sends a request and calls back at each piece of output with its number of tokens.
_Send = Callable[[LoadRequest, Callable[[int], None]], Awaitable[None]]


async def replay(engine: Any, requests: Sequence[LoadRequest]) -> list[Outcome]:
    """Send requests to an ``AsyncLLM`` in this process.

    Parameters
    ----------
    engine
        From :func:`whonext.serving.server.start_engine`.
    requests
        In any order.

    Returns
    -------
    list of Outcome
        In the order of the requests.
    """
    from vllm import SamplingParams
    from vllm.inputs import TokensPrompt
    from vllm.sampling_params import RequestOutputKind

    async def send(request: LoadRequest, received: Callable[[int], None]) -> None:
        parameters = SamplingParams(
            max_tokens=request.output,
            ignore_eos=True,
            temperature=0.0,
            detokenize=False,
            extra_args=dict(request.facts),
            output_kind=RequestOutputKind.DELTA,
        )
        prompt = TokensPrompt(prompt_token_ids=list(request.prompt))
        async for piece in engine.generate(prompt, parameters, request.id):
            received(len(piece.outputs[0].token_ids))

    return await _replay(send, requests)


async def replay_http(url: str, model: str, requests: Sequence[LoadRequest]) -> list[Outcome]:
    """Send requests to an OpenAI-compatible server, with the ``openai`` package.

    Parameters
    ----------
    url
        The server's, without ``/v1``.
    model
        The name under which it serves the model.
    requests
        In any order.
    """
    import openai

    client = openai.AsyncOpenAI(base_url=url + "/v1", api_key="none", timeout=600, max_retries=0)

    async def send(request: LoadRequest, received: Callable[[int], None]) -> None:
        stream = await client.completions.create(
            model=model,
            prompt=list(request.prompt),
            max_tokens=request.output,
            temperature=0.0,
            stream=True,
            stream_options={"include_usage": True},
            extra_body={"ignore_eos": True, "vllm_xargs": dict(request.facts)},
        )
        streamed = 0
        async for piece in stream:
            if piece.choices:
                streamed += 1
                received(1)
            elif piece.usage is not None:  # a piece may hold more than one token
                received(piece.usage.completion_tokens - streamed)

    async with client:
        return await _replay(send, requests)


async def _replay(send: _Send, requests: Sequence[LoadRequest]) -> list[Outcome]:
    if len({request.id for request in requests}) < len(requests):
        raise ValueError("requests: two have the same id")
    start = time.perf_counter()

    def now() -> float:
        return time.perf_counter() - start

    async def one(request: LoadRequest) -> Outcome:
        await asyncio.sleep(request.arrival - now())
        sent = now()
        first = last = np.nan
        tokens = 0

        def received(count: int) -> None:
            nonlocal first, last, tokens
            if count and not tokens:
                first = now()
            tokens += count
            last = now()

        error = ""
        try:
            await send(request, received)
        except Exception as problem:  # noqa: BLE001, whatever it is, it must not end the run
            error = f"{type(problem).__name__}: {problem}"
            last = np.nan
        return Outcome(request.id, request.arrival, sent, first, last, tokens, error)

    return list(await asyncio.gather(*(one(request) for request in requests)))
