"""Exact results, bounds and asymptotes, one family a module.

- :mod:`~whonext.theory.littles_law`: Little's law, and both its sides on a sample path.
- :mod:`~whonext.theory.markovian`: M/M/1 and M/M/c: waits, responses, quantiles.
- :mod:`~whonext.theory.pollaczek_khinchine`: M/G/1, first come first served: moments, tails.
- :mod:`~whonext.theory.priorities`: classes in a fixed order, with preemption and without.
- :mod:`~whonext.theory.smiths_rule`: order by size over weight, true or predicted.
- :mod:`~whonext.theory.size_based`: SJF, LJF, PSJF, SRPT, LRPT, FB, PS, LCFS-PR.
- :mod:`~whonext.theory.bounds`: Kingman.

:func:`answer` asks them all for a rule and a workload.
"""

from __future__ import annotations

from whonext.theory import (
    bounds,
    littles_law,
    markovian,
    pollaczek_khinchine,
    priorities,
    size_based,
    smiths_rule,
)
from whonext.theory._arguments import InfiniteMomentError
from whonext.theory.answers import Answer, ClassAnswer, answer

__all__ = [
    "Answer",
    "ClassAnswer",
    "InfiniteMomentError",
    "answer",
    "bounds",
    "littles_law",
    "markovian",
    "pollaczek_khinchine",
    "priorities",
    "size_based",
    "smiths_rule",
]
