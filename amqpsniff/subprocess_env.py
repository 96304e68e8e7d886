"""The environment of child Python processes, which import nothing from the current folder."""

from __future__ import annotations

import os

SAFE_PATH_ENV = {"PYTHONSAFEPATH": "1"}


def safe_environment() -> dict[str, str]:
    """The environment of a Python that is to be started."""
    return os.environ | SAFE_PATH_ENV
