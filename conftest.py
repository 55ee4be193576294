"""Settings that every test run shares, wherever it is started from."""

from pathlib import Path

HERE = Path(__file__).resolve().parent


def pytest_configure(config):
    """Let `pytest --nbval` compare the labs as `make test` does, from any working folder."""
    if not hasattr(config.option, "nbval"):
        return  # nbval is not installed
    if config.option.nbval_sanitize_with is None:
        config.option.nbval_sanitize_with = str(HERE / "tests" / "notebooks" / "sanitize.cfg")
    if config.option.nbval_kernel_name is None:
        config.option.nbval_current_env = True
