"""Where the captures are, for every test, and what tests do not depend on: moods of the machine."""

import contextlib
import os
from pathlib import Path

import pytest

from tests.browser import browser

__all__ = ["browser"]  # a fixture: one browser for a whole run

REPO = Path(__file__).resolve().parent.parent
SAMPLES = REPO / "samples"
CAPTURES = REPO / "tests" / "captures"
# Captures that are kept beside the repository, not in it; tests that read them skip without them.
SHARED = Path(os.environ.get("AMQPSNIFF_SHARED", REPO.parent / "shared"))

SHOWN_OTHERWISE = (
    "COLUMNS LINES NO_COLOR FORCE_COLOR PY_COLORS CLICOLOR CLICOLOR_FORCE TTY_COMPATIBLE "
    "TTY_INTERACTIVE GITHUB_ACTIONS TERMINAL_WIDTH PYTHONIOENCODING SSLKEYLOGFILE "
    "AMQPSNIFF_TRACEBACK"
).split()
"""Environment variables that change what is printed, or read; tests that want one set it."""

for _name in SHOWN_OTHERWISE:
    os.environ.pop(_name, None)

with contextlib.suppress(ImportError):
    from hypothesis import HealthCheck, settings

    # a machine that is busy takes longer than Hypothesis expects of any example
    settings.register_profile(
        "patient", settings.default, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
    settings.load_profile("patient")


def _folder(path: Path) -> Path:
    if not path.is_dir():
        pytest.skip(f"no {path.name} captures beside the repository (AMQPSNIFF_SHARED)")
    return path


@pytest.fixture(scope="session")
def own_captures() -> Path:
    """Folder of captures of RabbitMQ 3.10.8 with an independent decoder's rows beside them."""
    return _folder(SHARED / "captures" / "own")


@pytest.fixture(scope="session")
def public_captures() -> Path:
    """Folder of captures from public repositories, listed in its MANIFEST.tsv."""
    return _folder(SHARED / "captures" / "public")


@pytest.fixture(scope="session")
def samples() -> Path:
    """Folder of the captures in the repository."""
    return SAMPLES
