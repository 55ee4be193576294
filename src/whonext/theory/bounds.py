"""What can be said of one server when arrivals are not Poisson.

Source: J. F. C. Kingman, "Some inequalities for the queue GI/G/1", Biometrika 49, 1962.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from whonext.theory._arguments import require_moment, stable_load

if TYPE_CHECKING:
    from whonext.distributions import Distribution

__all__ = ["kingman"]


def kingman(between_arrivals: Distribution, size: Distribution) -> float:
    """Kingman's upper bound on the mean wait in GI/G/1, first come first served.

    ``E[W] <= arrival_rate * (Var A + Var S) / (2 (1 - load))``, close at high load.

    Parameters
    ----------
    between_arrivals
        Law of the time A between arrivals, independent of one another.
    size
        Law of the size S.

    Raises
    ------
    ValueError
        Where the load E[S] / E[A] is not below 1 or a variance is infinite.

    Examples
    --------
    For M/M/1 the bound says 5.125 where the truth is 4:

    >>> from whonext.distributions import Exponential
    >>> round(kingman(Exponential(1.25), Exponential(1)), 6)
    5.125
    """
    require_moment(between_arrivals, 2, "Kingman's bound")
    require_moment(size, 2, "Kingman's bound")
    load = stable_load(size.mean / between_arrivals.mean, 1, "GI/G/1")
    spread = between_arrivals.variance + size.variance
    return float(spread / between_arrivals.mean / (2 * (1 - load)))
