"""Captures from the files, directories and patterns that a caller names, or standard input."""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from amqpsniff.capture.file import (
    BLOCK_BYTES,
    STANDARD_INPUT,
    CaptureFile,
    is_regular,
    open_capture,
)
from amqpsniff.capture.formats import (
    MANIFEST,
    NOTHING,
    is_packed_capture,
    is_remote,
    missing,
    shown,
)
from amqpsniff.capture.merge import GLANCE_BYTES, CaptureSet
from amqpsniff.capture.open import OWN, for_tshark
from amqpsniff.capture.open_files import OpenFiles
from amqpsniff.errors import CaptureError, NotACapture

__all__ = [
    "BLOCK_BYTES",
    "CaptureFile",
    "CaptureSet",
    "expand",
    "is_regular",
    "open_capture",
    "read",
]


def expand(
    inputs: Iterable[str | os.PathLike[str] | IO[bytes]], opened: OpenFiles | None = None
) -> list[str]:
    """Names of the captures that files, directories, patterns (`*`, `?`, `[]`, `**`), `-` mean.

    A directory means every file below it whose content is a capture; other files in it are passed
    over, but for captures by their names that are compressed in a way that is not read: those are
    listed like a file that cannot be read. A folder that cannot be looked into is listed by its
    name, to be reported like a file that cannot be read. A file named, or matched by a pattern, is
    taken as it is; a pattern means no pipes. A file that is reached twice is listed once, where it
    came first. Files that are open go into `opened`, by names of their own. Raises CaptureError for
    a name that is not there, a pattern that matches nothing, and when there is nothing in the end.
    """
    names: dict[object, str] = {}
    paths = []
    for source in inputs:
        if opened is not None and not isinstance(source, (str, os.PathLike)):
            name = opened.add(source)
            names[name] = name
            continue
        path = os.fspath(source)  # type: ignore[arg-type]
        paths.append(path)
        for name in _expand_path(path):
            names.setdefault(_identity(name), name)
    if not names:
        listed = ", ".join(map(shown, paths)) or "no input"
        advice = NOTHING
        for path in paths:
            if Path(path, MANIFEST).is_file():
                advice = (
                    "a batch has written tables there: "
                    f"amqpsniff batch CAPTURES -o {shown(path)} --report NAME"
                )
        raise CaptureError(f"{listed}: no capture found; {advice}")
    return list(names.values())


def read(
    inputs: Iterable[str | os.PathLike[str]],
    *,
    block_bytes: int = BLOCK_BYTES,
    reader: str = OWN,
) -> CaptureSet:
    """The packets of all inputs (see `expand`) in the order of time, as an iterator of batches.

    Numbers are within each capture. Raises CaptureError when nothing can be read; with several
    captures, those that cannot be read are findings.
    """
    return CaptureSet(expand(inputs), block_bytes=block_bytes, reader=reader)


def _expand_path(path: str) -> Iterator[str]:
    if path == STANDARD_INPUT:
        yield path
    elif path and Path(path).is_dir():  # an empty name would be the current folder
        yield from _captures_below(path)
    elif os.path.lexists(path):
        yield path
    elif glob.has_magic(path) and not is_remote(path):
        matches = sorted(glob.glob(path, recursive=True))  # noqa: PTH207
        if not matches:
            raise CaptureError(f"{shown(path)}: no file matches this pattern")
        for match in matches:
            if Path(match).is_dir():
                yield from _captures_below(match)
            elif is_regular(match):
                yield match
    else:
        raise missing(path)


def _captures_below(directory: str) -> list[str]:
    """Captures below a folder by their paths, the order in which archives read them too."""
    captures: list[str] = []  # and folders that may not be listed
    walk = os.walk(directory, onerror=lambda error: captures.append(error.filename))
    for folder, _, files in walk:
        paths = (str(Path(folder) / name) for name in files)
        captures += filter(_holds_capture, paths)
    return sorted(captures)


def _holds_capture(path: str) -> bool:
    """True if a file in a directory is a capture, or one that cannot be read for another reason."""
    try:
        if not stat.S_ISREG(Path(path).stat().st_mode):
            return False
        open_capture(path, block_bytes=GLANCE_BYTES).close()
    except FileNotFoundError:  # a link to nothing
        return False
    except NotACapture:
        return for_tshark(path, is_explicit=False) or is_packed_capture(path)
    except (CaptureError, OSError):
        return True
    return True


def _identity(name: str) -> object:
    """The identity of a file, equal for all of its names."""
    try:
        status = Path(name).stat()
    except OSError:
        return name
    return status.st_dev, status.st_ino
