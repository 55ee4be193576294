"""What two hours of real requests look like: the facts that the first chapters lean on."""

from __future__ import annotations

from typing import Any

import numpy as np

from whonext.experiments import experiment
from whonext.traces import load_trace

__all__ = ["TRACES", "WINDOWS", "dispersion", "trace_facts", "trace_facts_of"]

#: The traces that are described, under the names that the chapters use.
TRACES = {"conversation": "azure-conversation", "code": "azure-code"}

#: Lengths of window, in seconds, over which arrivals are counted.
WINDOWS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 60.0, 120.0)

#: Shares of requests whose output is longer than a number of tokens.
EXCEEDANCES = tuple(float(p) for p in np.geomspace(1, 3e-4, 60).round(6))


def dispersion(arrival: np.ndarray, window: float) -> float:
    """Variance over mean of the number of arrivals in a window; 1 for a Poisson process.

    Parameters
    ----------
    arrival
        Times, increasing.
    window
        Length of a window; the last, incomplete one is left out.
    """
    place = np.floor((arrival - arrival[0]) / window).astype(np.int64)
    counts = np.bincount(place)[:-1]
    return float(counts.var() / counts.mean())


def _moments(tokens: np.ndarray) -> dict[str, float]:
    return {
        "mean": float(tokens.mean()),
        "scv": float(tokens.var() / tokens.mean() ** 2),
        "largest": int(tokens.max()),
    }


def trace_facts_of(arrival: np.ndarray, prompt: np.ndarray, output: np.ndarray) -> dict[str, Any]:
    """Describe one trace.

    Parameters
    ----------
    arrival
        Times in seconds, increasing, shape (requests,).
    prompt, output
        Tokens of the prompt and of the answer, shape (requests,).

    Returns
    -------
    dict
        ``rate`` (requests a second), ``gap_scv``, ``dispersion`` for each of ``windows``,
        ``prompt`` and ``output`` (mean, squared coefficient of variation, largest),
        ``output_tail`` (tokens that a share ``exceedances`` of the answers exceed) and
        ``kv_token_steps``: the mean over requests of the tokens held in the KV cache, summed
        over the steps that produce the answer, ``p d + d (d + 1) / 2``.
    """
    gap = np.diff(arrival)
    prompt = np.asarray(prompt, dtype=float)
    output = np.asarray(output, dtype=float)
    shares = 1 - np.array(EXCEEDANCES)
    return {
        "requests": len(arrival),
        "seconds": float(arrival[-1] - arrival[0]),
        "rate": float((len(arrival) - 1) / (arrival[-1] - arrival[0])),
        "gap_scv": float(gap.var() / gap.mean() ** 2),
        "windows": list(WINDOWS),
        "dispersion": [dispersion(arrival, window) for window in WINDOWS],
        "prompt": _moments(prompt),
        "output": _moments(output),
        "exceedances": list(EXCEEDANCES),
        "output_tail": np.quantile(output, shares, method="higher").tolist(),
        "kv_token_steps": float((prompt * output + output * (output + 1) / 2).mean()),
    }


@experiment("trace-facts")
def trace_facts(small: bool = False) -> dict[str, Any]:
    """Burstiness and lengths of the two Azure traces of 2023.

    It needs the files of the traces; ``small`` takes the first thousand requests of each.
    """
    facts = {}
    for name, trace in TRACES.items():
        frame = load_trace(trace)
        if small:
            frame = frame.head(1000)
        facts[name] = trace_facts_of(
            frame["arrival"].to_numpy(), frame["prompt"].to_numpy(), frame["output"].to_numpy()
        )
    return facts
