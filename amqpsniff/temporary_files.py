"""Folders for temporary files, looked at before something waits for ever for room in them."""

from __future__ import annotations

import tempfile
from pathlib import Path

from .errors import OutputError

ROOM = 1 << 16
"""Bytes that have to find room: less, and what a process says of its errors is lost."""


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
