"""Files of an archive from the paths, folders, patterns and URIs that a caller names.

Unlike for a single reader, every file in a folder counts as a capture: any other file becomes a row
of the table `errors`. Files with names that begin with `.` or `_` are left out, as Spark leaves
them out, and so are pipes, devices, and folders that a batch has written.
"""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from amqpsniff.capture.formats import MANIFEST, is_remote, shown
from amqpsniff.errors import CaptureError, UsageError, read_twice

from .filesystem import StorageOptions, file_system

SEED = "_work/seed"
"""The file that a batch writes there before all others, a number that its sightings share."""


class Listed(NamedTuple):
    """A file, with its size and time of change; None if the file system does not have them."""

    path: str
    size: int | None
    modified_ns: int | None


def list_captures(
    inputs: Iterable[str | os.PathLike[str]], options: StorageOptions | None = None
) -> list[Listed]:
    """The files that names refer to, each once, by the first of its names.

    Raises CaptureError for a name without a file, for a pattern that matches nothing, and without
    any files; UsageError for the name of a folder that a batch has written.
    """
    names = [os.fspath(name) for name in inputs]
    found: dict[str, Listed] = {}
    identities: set[object] = set()
    for name in names:
        for identity, file in _remote(name, options) if is_remote(name) else _local(name):
            if identity not in identities:
                identities.add(identity)
                found[file.path] = file
    if not found:
        raise CaptureError(f"{', '.join(names) or 'no input'}: no file found")
    return [found[path] for path in sorted(found)]


def _local(name: str) -> Iterator[tuple[object, Listed]]:
    """Files, each with the identity that all its names share."""
    if name and Path(name).is_dir():  # of no name it makes the folder one is in
        if _is_written(name):
            raise _no_captures(name)
        yield from _below(name)
    elif os.path.lexists(name):
        file = _file_at(name)
        if file is None:
            raise CaptureError(
                f"{name}: is not a file, and an archive's captures are read more than once"
            )
        yield file
    elif glob.has_magic(name):
        head = _head(name)
        found = sorted(glob.glob(name, recursive=True))  # noqa: PTH207
        rest = name[len(head) :]
        matches = [match for match in found if not _is_below_hidden(match[len(head) :], rest)]
        if not matches:
            raise CaptureError(f"{name}: no file matches this pattern")
        for match in matches:
            if Path(match).is_dir():
                yield from _below(match)
            elif file := _file_at(match):
                yield file
    elif name == "-":
        raise read_twice("batch", name)
    else:
        raise CaptureError(f"{shown(name)}: no such file or directory")


def _below(folder: str) -> Iterator[tuple[object, Listed]]:
    shut: list[str] = []  # folders that may not be listed are captures that cannot be read
    for inside, folders, files in os.walk(
        folder, onerror=lambda error: shut.append(error.filename)
    ):
        if _is_written(inside):
            folders.clear()
            continue
        folders[:] = sorted(name for name in folders if not _is_hidden(name))
        for name in sorted(files):
            if not _is_hidden(name) and (file := _file_at(str(Path(inside) / name))):
                yield file
    yield from ((path, Listed(path, None, None)) for path in shut)


def _is_written(folder: str) -> bool:
    """True if a batch has written a folder, or begun to."""
    return any(os.path.lexists(f"{folder}/{mark}") for mark in (MANIFEST, SEED))


def _no_captures(name: str) -> UsageError:
    return UsageError(f"{shown(name)} is the folder of a batch, not of captures; read it alone")


def _is_hidden(name: str) -> bool:
    return name.startswith((".", "_"))


def _head(pattern: str) -> str:
    """The folder in which a pattern begins to be one."""
    return pattern[
        : min(pattern.find(character) for character in "*?[" if character in pattern)
    ].rpartition("/")[0]


def _is_below_hidden(path: str, pattern: str = "") -> bool:
    """True if a part of a path is hidden; a pattern with such a part names them."""
    return any(map(_is_hidden, path.split("/"))) and not any(map(_is_hidden, pattern.split("/")))


def _file_at(path: str) -> tuple[object, Listed] | None:
    """A file; None for a pipe or a device, because opening it may wait for ever."""
    try:
        status = Path(path).stat()
    except OSError:
        return path, Listed(path, None, None)
    if not stat.S_ISREG(status.st_mode):
        return None
    return (status.st_dev, status.st_ino), Listed(path, status.st_size, status.st_mtime_ns)


def _written(paths: Iterable[str]) -> set[str]:
    """The folders among paths that a batch has written, or begun to."""
    marks = (f"/{MANIFEST}", f"/{SEED}")
    return {path.removesuffix(mark) for path in paths for mark in marks if path.endswith(mark)}


def _remote(name: str, options: StorageOptions | None) -> Iterator[tuple[object, Listed]]:
    from fnmatch import fnmatch

    from pyarrow import fs

    head = name
    if glob.has_magic(name):
        head = _head(name)
    system, path = file_system(head, options)
    prefix = head[: len(head) - len(path)] if head.endswith(path) else f"{head.split('://')[0]}://"
    info = system.get_file_info(path)
    if info.type == fs.FileType.NotFound:
        raise CaptureError(f"{shown(name)}: no such file or directory")
    if info.type == fs.FileType.File:
        found = [info]
    else:
        found = system.get_file_info(fs.FileSelector(path, recursive=True))
    count = 0
    written_folders = _written(entry.path for entry in found if entry.type == fs.FileType.File)
    if path.rstrip("/") in written_folders and head == name:
        raise _no_captures(name)
    for entry in found:
        full_name = prefix + entry.path
        relative = entry.path[len(path) :]
        if entry.type != fs.FileType.File or _is_below_hidden(relative, name[len(head) :]):
            continue
        if written_folders and any(
            str(folder) in written_folders for folder in PurePosixPath(entry.path).parents
        ):
            continue
        if head == name or fnmatch(full_name, name):
            count += 1
            yield full_name, Listed(full_name, entry.size, entry.mtime_ns)
    if head != name and not count:
        raise CaptureError(f"{name}: no file matches this pattern")
