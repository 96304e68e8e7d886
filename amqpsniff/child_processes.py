"""What programs that are started need: an environment, and room for temporary files, without which
something waits for ever.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from .errors import OutputError

SAFE_PATH_ENV = {"PYTHONSAFEPATH": "1"}

ROOM = 1 << 16
"""Bytes that have to find room: less, and what a process says of its errors is lost."""


def safe_environment() -> dict[str, str]:
    """The environment of a Python that is to be started; it imports nothing from this folder."""
    return os.environ | SAFE_PATH_ENV


def trouble_with(folder: str) -> str:
    """The system's words for why a folder takes no file; empty if it does."""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(ROOM))
    except OSError as error:
        return error.strerror or str(error)
    return ""


def require_room() -> None:
    """Raise OutputError where the folder for temporary files is full."""
    folder = tempfile.gettempdir()
    if trouble := trouble_with(folder):
        raise OutputError(f"temporary files ({folder}): {trouble}; set TMPDIR to another disk")
