"""The file system of an archive: this machine's, or any that Arrow or fsspec know.

A name with `://` in it is a URI; it goes to Arrow's file systems (s3, gs, hdfs, abfs …), or to
fsspec where storage options are given or Arrow does not know it. Any other name is a path here.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import re
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from amqpsniff.capture.formats import is_remote
from amqpsniff.errors import OutputError, UsageError
from amqpsniff.installation import how_to_install

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
"""Errors that only writing causes; any other may concern another file."""

_HADOOPS = re.compile("^s3[an]://")
"""Names that Hadoop has for what all others call `s3://`."""

StorageOptions = Mapping[str, Any]
"""Options with which fsspec opens a file system: keys, endpoints."""


def whole_path(name: str) -> str:
    """A name that means the same wherever a process runs."""
    return name if is_remote(name) else str(Path(name).absolute())


def file_system(name: str, options: StorageOptions | None = None) -> tuple[Any, str]:
    """The Arrow file system of a name, and the path in it.

    Raises UsageError for a URI that nothing here can open.
    """
    from pyarrow import fs

    if not is_remote(name):
        return fs.LocalFileSystem(), str(Path(name).absolute())
    name = _HADOOPS.sub("s3://", name)
    refused: Exception | None = None
    if not options:
        try:
            found: tuple[Any, str] = fs.FileSystem.from_uri(name)
        except OSError as error:
            refused = error
        except ValueError:  # of a scheme that Arrow does not know
            pass
        else:
            return found
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        scheme = name.partition("://")[0]
        raise UsageError(
            f"{name}: this Arrow cannot open {scheme}:// by itself; install fsspec and its "
            f"package for it ({how_to_install('fsspec')})"
        ) from None
    try:
        system, path = url_to_fs(name, **(options or {}))
    except (ImportError, OSError, ValueError) as error:  # OSError: hdfs without its libraries
        why = str(refused or error).partition("\n")[0]
        raise UsageError(f"{name}: cannot be opened here: {why}") from None
    return fs.PyFileSystem(fs.FSSpecHandler(system)), path


@dataclass
class Opener:
    """Opens captures by name for reading; may be sent to another process.

    `options` are those of fsspec. Names of files here are taken from the folder `home` on: a worker
    may run in another one than where they were given.
    """

    options: StorageOptions
    home: str = field(default_factory=lambda: str(Path.cwd()))

    def __call__(self, name: str) -> IO[bytes]:
        if not is_remote(name):
            return io.FileIO(Path(self.home, name))
        system, path = file_system(name, self.options)
        opened: IO[bytes] = system.open_input_file(path)
        return opened


def is_part(name: str) -> bool:
    """True if a file of a folder is one that was never written to its end."""
    last = name.rpartition("/")[2]
    return last.startswith(".") and last.endswith(".part")


class Folder:
    """A folder to write to; names in it are relative, with `/` between their parts."""

    def __init__(self, name: str, options: StorageOptions | None = None) -> None:
        self.name = name
        self.options = dict(options or {})
        self._system, self._base = file_system(name, self.options)
        self._local = not is_remote(name)

    def __reduce__(self) -> tuple[Any, ...]:
        return Folder, (self.name, self.options)

    def read(self, name: str) -> bytes | None:
        """A file's bytes; None if it does not exist."""
        try:
            with self._system.open_input_stream(self._path(name)) as file:
                octets: bytes = file.read()
        except (FileNotFoundError, NotADirectoryError):
            return None
        return octets

    def open(self, name: str) -> Any:
        """Arrow's file, open for reading; raises OSError when it is not there."""
        return self._system.open_input_file(self._path(name))

    def write(self, name: str, octets: bytes) -> None:
        """Put a file there in one step: it has its old content, or the new one."""
        with self.create(name) as file:
            file.write(octets)

    @contextlib.contextmanager
    def create(self, name: str) -> Iterator[Any]:
        """A file to write; it appears under its name once it is complete.

        Raises OutputError where it cannot be written.
        """
        path = self._path(name)
        folder, _, last = path.rpartition("/")
        # an object is there once it is whole
        part = f"{folder}/.{last}.{uuid.uuid4().hex[:8]}.part" if self._local else path
        try:
            with self._writing():
                self._system.create_dir(folder, recursive=True)
                stream = self._system.open_output_stream(part)
            with self._writing(*NO_ROOM), stream as file:
                yield file
            if self._local:
                with self._writing():
                    Path(part).replace(path)
        except BaseException:
            if self._local:
                Path(part).unlink(missing_ok=True)
            raise

    @contextlib.contextmanager
    def _writing(self, *numbers: int) -> Iterator[None]:
        """Raises OutputError for errors of the system: for all of them, or for these."""
        try:
            yield
        except OSError as error:
            if numbers and error.errno not in numbers:
                raise
            why = os.strerror(error.errno) if error.errno else str(error)
            raise OutputError(f"{self.name}: tables cannot be written there: {why}") from error

    def names(self, folder: str = "") -> list[str]:
        """Names of all files below a folder, relative to this one; none when it is not there."""
        return sorted(self.files(folder))

    def files(self, folder: str = "") -> dict[str, Any]:
        """The files below a folder, by name, each with its `size` and its `mtime_ns`; a number that
        the file system does not give is None.
        """
        from pyarrow import fs

        selector = fs.FileSelector(self._path(folder), recursive=True, allow_not_found=True)
        found = self._system.get_file_info(selector)
        skip = len(self._base.rstrip("/")) + 1
        return {file.path[skip:]: file for file in found if file.type == fs.FileType.File}

    def delete(self, name: str) -> None:
        """Remove a file if it exists."""
        with contextlib.suppress(FileNotFoundError):
            self._system.delete_file(self._path(name))

    def _path(self, name: str) -> str:
        base = self._base.rstrip("/")
        return f"{base}/{name}" if name else base
