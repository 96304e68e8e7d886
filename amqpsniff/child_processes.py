"""Requirements of child processes: an environment, and free space for temporary files.

Without that space a child process can wait for ever.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from .errors import OutputError

SAFE_PATH_ENV = {"PYTHONSAFEPATH": "1"}

ROOM = 1 << 16
"""Free bytes that are required: with less, the error output of a process is lost."""


def safe_environment() -> dict[str, str]:
    """Environment for a child Python; it imports nothing from the current folder."""
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
