"""Captures in files that the caller has open: anything binary that reads.

A reading begins at the file's first byte and keeps its own place, so that several may go on at
once. A file that cannot seek is kept in a temporary one.
"""

from __future__ import annotations

import io
import shutil
import tempfile
from typing import IO, Any, cast

from amqpsniff.errors import UsageError

MAX_IN_MEMORY = 64 << 20
"""Bytes of a file that cannot seek which are kept in memory; more go to disk."""


class OpenFiles:
    """Files by the names that rows give them; empty where all captures are named."""

    def __init__(self) -> None:
        self._files: dict[str, IO[bytes]] = {}

    def __len__(self) -> int:
        return len(self._files)

    def __contains__(self, name: str) -> bool:
        return name in self._files

    def add(self, file: Any) -> str:
        """Take a file; its name, which is that of its path where it has one.

        Raises UsageError if it is not a binary file.
        """
        if not hasattr(file, "read") or isinstance(file, io.TextIOBase):
            raise UsageError(f"{file!r} is not a capture; give a path, or a file opened with `rb`")
        path = getattr(file, "name", None)
        name = path if isinstance(path, str) and path else f"<{type(file).__name__}>"
        number = 1
        while name in self._files:
            number += 1
            name = f"{name.rpartition(' ')[0] if number > 2 else name} {number}"
        self._files[name] = file if _seeks(file) else _kept(file)
        return name

    def open(self, name: str) -> IO[bytes]:
        """A reading of a file by its name, of another by its path; closing it closes no file."""
        if name in self._files:
            return cast("IO[bytes]", _Reading(self._files[name]))
        return cast("IO[bytes]", io.FileIO(name))


class _Reading:
    """A reading of a file with a place of its own."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._at = 0

    def read(self, octets: int) -> bytes:
        """The next bytes."""
        self._file.seek(self._at)
        found = self._file.read(octets)
        self._at += len(found)
        return found

    def seek(self, place: int) -> None:
        """Continue at a position."""
        self._at = place

    def fileno(self) -> int:
        """No descriptor to wait for: all bytes are there already."""
        raise OSError

    def close(self) -> None:
        """The file is the caller's."""


def _seeks(file: Any) -> bool:
    return hasattr(file, "seek") and bool(getattr(file, "seekable", lambda: True)())


def _kept(file: IO[bytes]) -> IO[bytes]:
    """A temporary copy of a file's bytes; it goes with the last object that has it."""
    kept = tempfile.SpooledTemporaryFile(MAX_IN_MEMORY)  # noqa: SIM115
    shutil.copyfileobj(file, kept)
    return cast("IO[bytes]", kept)
