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
"""Bytes kept in memory of a file that cannot seek; more go to disk."""


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
        self._files[name] = file if _seeks(file) else _copied(file)
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
        self._position = 0

    def read(self, octets: int) -> bytes:
        """The next bytes."""
        self._file.seek(self._position)
        data = self._file.read(octets)
        self._position += len(data)
        return data

    def seek(self, position: int) -> None:
        """Continue at a position."""
        self._position = position

    def fileno(self) -> int:
        """No descriptor to wait for: all bytes are available already."""
        raise OSError

    def close(self) -> None:
        """The file is the caller's."""


def _seeks(file: Any) -> bool:
    return hasattr(file, "seek") and bool(getattr(file, "seekable", lambda: True)())


def _copied(file: IO[bytes]) -> IO[bytes]:
    """A temporary copy of a file's bytes, deleted with the last reference to it."""
    copy = tempfile.SpooledTemporaryFile(MAX_IN_MEMORY)  # noqa: SIM115
    shutil.copyfileobj(file, copy)
    return cast("IO[bytes]", copy)
