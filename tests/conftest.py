"""What all tests share: numba's threads and hypothesis's settings."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# The same examples on every run, so that a failure in CI is a failure at home. A slow machine is
# no failure: these tests never judge a time.
settings.register_profile(
    "whonext",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "whonext"))
