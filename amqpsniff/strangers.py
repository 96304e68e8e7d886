"""A Python that this one starts imports no module from the folder where somebody happens to be,
which may hold anything. Python 3.10 does not know of it.
"""

from __future__ import annotations

import os

NO_STRANGERS = {"PYTHONSAFEPATH": "1"}


def without_strangers() -> dict[str, str]:
    """The environment of a Python that is to be started."""
    return os.environ | NO_STRANGERS
