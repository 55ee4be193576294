"""An honest guess of a request's output length, and how good it is.

What can be predicted from depends on what is known. A public trace tells the length of a prompt
and nothing of its text, so the predictor here knows just that: the mean output of earlier requests
whose prompts were about as long. How good that is depends on the trace, and it says so
(:meth:`LengthBuckets.errors`).

:func:`with_error` makes a prediction of any quality out of the truth. That is no predictor; it
answers what one of such a quality would be worth.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["LengthBuckets", "prediction_errors", "with_error"]


@dataclass(frozen=True)
class LengthBuckets:
    """Mean output length of earlier requests, in buckets of prompt length.

    Attributes
    ----------
    edges
        Upper edges of all buckets but the last, in prompt tokens.
    means
        Mean output of each bucket, in tokens.
    """

    edges: tuple[float, ...]
    means: tuple[float, ...]

    @classmethod
    def fit(cls, prompt: ArrayLike, output: ArrayLike, buckets: int = 16) -> LengthBuckets:
        """Learn from earlier requests.

        Parameters
        ----------
        prompt, output
            Tokens, one number a request.
        buckets
            How many buckets, of about equally many requests; fewer where lengths repeat.

        Raises
        ------
        ValueError
            If there is less than one request a bucket.
        """
        prompts, outputs = np.asarray(prompt, float), np.asarray(output, float)
        if prompts.shape != outputs.shape or not 1 <= buckets <= len(prompts):
            raise ValueError(
                f"buckets={buckets}: from 1 to the number of requests, here {len(prompts)}"
            )
        # Edges that are lengths seen, the longest left out, so that no bucket is empty.
        steps = np.linspace(0, 1, buckets + 1)[1:-1]
        edges = np.unique(np.quantile(prompts, steps, method="lower"))
        edges = edges[edges < prompts.max()]
        place = np.searchsorted(edges, prompts)
        means = np.bincount(place, outputs) / np.bincount(place)
        return cls(tuple(map(float, edges)), tuple(map(float, means)))

    def predict(self, prompt: ArrayLike) -> NDArray[np.float64]:
        """Predicted output tokens, one number a request."""
        return np.asarray(self.means)[np.searchsorted(self.edges, np.asarray(prompt, float))]

    def to_dict(self) -> dict[str, object]:
        """Plain values, for a record."""
        return {
            "from": "prompt length",
            "edges": [round(edge, 1) for edge in self.edges],
            "means": [round(mean, 2) for mean in self.means],
        }

    def errors(self, prompt: ArrayLike, output: ArrayLike) -> dict[str, float]:
        """How good it is on other requests: see :func:`prediction_errors`."""
        return prediction_errors(self.predict(prompt), output)


def prediction_errors(prediction: ArrayLike, truth: ArrayLike) -> dict[str, float]:
    """How good predictions are.

    Returns
    -------
    dict
        ``mean_absolute_error``, in tokens; ``of_the_constant``, the same of predicting everyone's
        median; ``explained``, the share of the variance (0: no better than the mean);
        ``pairs_in_order``, the share of pairs of requests of different length that are put in the
        right order, ties counting half (0.5: a coin), which is what matters to a queue.
    """
    predicted, true = np.asarray(prediction, float), np.asarray(truth, float)
    above = np.sign(true[:, None] - true[None, :])
    says = np.sign(predicted[:, None] - predicted[None, :])
    pairs = above > 0
    residual = ((true - predicted) ** 2).sum()
    variance = ((true - true.mean()) ** 2).sum()
    return {
        "mean_absolute_error": float(np.abs(true - predicted).mean()),
        "of_the_constant": float(np.abs(true - np.median(true)).mean()),
        "explained": float(1 - residual / variance) if variance > 0 else 0.0,
        "pairs_in_order": float((1 + says[pairs]).mean() / 2) if pairs.any() else 0.5,
    }


def with_error(
    truth: ArrayLike, sigma: float, generator: np.random.Generator
) -> NDArray[np.float64]:
    """Make the truth wrong by a lognormal factor of median 1.

    Parameters
    ----------
    truth
        The true lengths.
    sigma
        Standard deviation of the factor's logarithm; 0.7 is wrong by a factor of 2 or more in a
        third of the cases.
    generator
        Where the draws come from.
    """
    true = np.asarray(truth, float)
    return true * np.exp(sigma * generator.standard_normal(true.shape))
