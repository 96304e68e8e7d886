"""Output of commands: standard output, or a file that appears once it is complete."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from amqpsniff.errors import UsageError
from amqpsniff.wire_text import harmless

STANDARD_OUTPUT = Path("-")


@contextmanager
def sink(output: Path | None, captures: list[str], refused: str = "") -> Iterator[IO[bytes]]:
    """A file that takes the place of `output`, or standard output for None and `-`.

    Raises UsageError where the output is one of the captures, and with what is `refused` where it
    is a terminal.
    """
    if output is None or output == STANDARD_OUTPUT:
        if refused and sys.stdout.isatty():
            raise UsageError(refused)
        yield standard_output()
        return
    refuse_captures(output, captures)
    with _replacing(output) as file:
        yield file


def refuse_captures(output: Path, captures: list[str]) -> None:
    """Raise UsageError when the output is one of the captures, also one that a folder holds."""
    from amqpsniff.capture import expand

    if not output.exists():
        return
    for name in expand(captures):
        if Path(name).exists() and output.samefile(name):
            raise UsageError(f"{output} is the capture itself; give another name")


def is_special(path: Path) -> bool:
    """True if a path exists and cannot be replaced: a device, a pipe."""
    return path.exists() and not path.is_file()


@contextmanager
def _replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file to write that takes the place of `path` when all went well, and else goes away."""
    if path.is_dir():
        raise UsageError(f"{path} is a directory; give the name of a file")
    if is_special(path):
        with path.open("wb") as file:
            yield file
        return
    target = path.resolve()
    # not by the process's number: in a container that is the same each time
    part = target.with_name(f".{target.name}.{os.urandom(4).hex()}.part")
    try:
        with part.open("xb") as file:
            with suppress(OSError):  # there may be none, or no modes; who may read it stays so
                os.fchmod(file.fileno(), stat.S_IMODE(target.stat().st_mode))
            yield file
        part.replace(target)
    except BaseException as error:
        with suppress(OSError):  # it may never have been there, in a folder that is read only
            part.unlink()
        if isinstance(error, OSError) and error.filename in (None, str(part)):
            error.filename = str(path)
        raise


def write_text(text: str) -> None:
    """Write output for programs to standard output: UTF-8 in any locale."""
    standard_output().write(text.encode(errors="backslashreplace"))


def standard_output() -> IO[bytes]:
    """Standard output for bytes; on a terminal those that steer it are written as escapes."""
    return _Harmless() if sys.stdout.isatty() else sys.stdout.buffer  # type: ignore[return-value]


class _Harmless:
    """A binary file before a terminal."""

    closed = False

    def write(self, octets: Any) -> int:
        text = bytes(octets).decode(errors="replace")
        sys.stdout.write("\n".join(map(harmless, text.split("\n"))))
        return len(octets)

    def flush(self) -> None:
        sys.stdout.flush()
