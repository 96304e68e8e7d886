"""The console script: answers `--version` before anything heavy is imported, and ends every run.

Whatever a command raises ends here, as one line on standard error and an exit code: 0 fine, 1
findings that `--fail-on` asked for, 2 usage, 3 a capture that could not be read or an output that
could not be written, 130 Ctrl-C. A run that another signal ends tidies up and then dies of
that signal. A reader that closes the pipe early (`| head`) is no error, on standard error neither.
"""

from __future__ import annotations

import errno
import io
import os
import sys

from amqpsniff import __version__

TYPE_CHECKING = False  # as in `typing`, whose import takes longer than `--version`
if TYPE_CHECKING:
    from typing import TextIO

FOUND = 1
USAGE = 2
FAILED = 3
INTERRUPTED = 130
VERBOSE = {"-v", "--verbose"}
TRACEBACK = "AMQPSNIFF_TRACEBACK"
"""Environment variable that lets an unexpected exception through, for a report of the bug."""


def main() -> int:
    """Run the command line with `sys.argv` and return the exit code."""
    _open_streams()
    try:
        code = _run(sys.argv[1:])
        sys.stdout.flush()
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BrokenPipeError:
        code = 0
    except Exception as error:  # noqa: BLE001 (a person never sees a traceback)
        code = INTERRUPTED if _interrupted() else _failed(error)
    for stream in (sys.stdout, sys.stderr):
        _drop(stream)
    if code == INTERRUPTED:  # whatever was running has tidied up by now
        from .interrupts import end

        code = end()
    return code


def _run(arguments: list[str]) -> int:
    """Run a command line; the exit code."""
    if arguments and arguments[0] in ("--version", "-V") and set(arguments[1:]) <= VERBOSE:
        print(f"amqpsniff {__version__}")
        if arguments[1:]:
            from .installed import describe

            describe()
        return 0
    from amqpsniff.process_tuning import (
        ARROW_MEMORY,
        leave_out,
        raise_gc_threshold,
        skip_exit_gc,
    )

    from .interrupts import remembered

    os.environ.setdefault(*ARROW_MEMORY)
    leave_out()
    raise_gc_threshold()
    skip_exit_gc()
    with remembered():
        from .commands import run

        return run(arguments)


def _interrupted() -> bool:
    """True if there was a signal: DuckDB may have replaced its exception by another one."""
    from .interrupts import heard

    return heard()


def _open_streams() -> None:
    """Make both streams writable with any text, also where they were closed or are not UTF-8.

    With PYTHONUNBUFFERED, which containers set, Python asks the system once to write something and
    loses what is not taken at once: by a pipe that is full, when a signal comes. A buffer asks on.
    """
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    sys.stdout = _buffered(sys.stdout, by_line=sys.stdout.isatty())
    sys.stderr = _buffered(sys.stderr, by_line=True)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[attr-defined]


def _buffered(stream: TextIO, *, by_line: bool) -> TextIO:
    """The stream with a buffer."""
    octets = getattr(stream, "buffer", None)
    if not isinstance(octets, io.RawIOBase):
        return stream
    buffer = io.BufferedWriter(octets)
    return io.TextIOWrapper(buffer, stream.encoding, line_buffering=by_line)


def _failed(error: Exception) -> int:
    """Print the error in one line; the exit code for it."""
    from amqpsniff.errors import AmqpsniffError, CaptureError, OutputError

    _drop(sys.stdout)
    if isinstance(error, (CaptureError, OutputError)):
        code = FAILED
    elif isinstance(error, AmqpsniffError):
        code = USAGE
        error = ValueError(error.with_options())
    elif isinstance(error, UnicodeEncodeError):  # of an argument; names of files may be anything
        code = USAGE
        error = ValueError(f"{error.object}: not {error.encoding}, but has to be")
    elif isinstance(error, OSError):
        code = FAILED
        error = OSError(_reason(error))
    elif os.environ.get(TRACEBACK):
        raise error
    else:
        code = FAILED
        description = f"{type(error).__name__}: {error}"
        advice = f"set {TRACEBACK}=1 to see where"
        if "__pyx_capi__" in description:  # a compiled module cimports one that is not compiled
            advice = (
                "amqpsniff was compiled only in part: install it again, with CC=false not at all"
            )
        error = RuntimeError(f"internal error, {description}; {advice}")
    complain(str(error))
    return code


def _reason(error: OSError) -> str:
    from pathlib import Path

    reason = error.strerror or str(error)
    if error.filename:
        folder = Path(os.fsdecode(error.filename)).parent
        if error.errno == errno.ENOENT and not folder.exists():
            reason = f"there is no folder {folder}; make it first"
        return f"{error.filename}: {reason}"
    if error.errno == errno.ENOENT:  # what has no name and is missing is a folder, for `tempfile`
        return f"{reason}; set TMPDIR to a folder that can be written to"
    return f"cannot write the output: {reason}"


def complain(text: str) -> None:
    """Write one line to standard error; on a terminal as many as it needs there."""
    from amqpsniff.wire_text import harmless

    from .render.text import folded

    line = f"amqpsniff: {harmless(text)}"
    if sys.stderr.isatty():
        from .output import columns

        line = "\n".join(folded(line, columns(sys.stderr), "  "))
    tell(f"{line}\n")


def tell(text: str) -> None:
    """Write to standard error; one that is closed is ignored."""
    from contextlib import suppress

    say = getattr(sys.stdout, "say", None)  # of a `Paged` terminal
    with suppress(OSError, ValueError):
        if say is None or not say(text):
            sys.stderr.write(text)
    _drop(sys.stderr)


def _drop(stream: TextIO) -> None:
    """Write out what a stream still holds, or throw it away: Python would try it once more."""
    try:
        stream.flush()
    except (OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
