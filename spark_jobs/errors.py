"""One-line messages for failures of a job that a user can mend.

Spark reports the death of a task or of its Java as a page of text. `REASONS` maps patterns in it to
messages; the first match wins. A failure without a match is a defect of this package or of Spark,
of which every line is worth having.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pyspark import SparkConf, SparkContext

import amqpsniff.errors
from amqpsniff.child_processes import trouble_with
from amqpsniff.errors import AmqpsniffError, CaptureError, OutputError

USAGE, FAILED = 2, 3
"""Exit codes, as on the command line."""


def tell(error: Exception) -> int:
    """Print the cause of an error to standard error and return its exit code.

    Raises the error again if its cause is unknown.
    """
    reported = error if isinstance(error, AmqpsniffError) else explained(error)
    if reported is None:
        raise error
    print(f"amqpsniff: {reported.with_options()}", file=sys.stderr)
    return exit_code(reported)


def exit_code(error: AmqpsniffError) -> int:
    """The exit code of an error of ours."""
    return FAILED if isinstance(error, (CaptureError, OutputError)) else USAGE


def explained(error: BaseException) -> AmqpsniffError | None:
    """An error of ours with the cause of another one, or None if it is unknown."""
    text = "\n".join(_texts(error))
    own = _OWN.findall(text)
    if own:  # raised by a task
        name, line = own[-1]
        kind: type[AmqpsniffError] = getattr(amqpsniff.errors, name)
        return kind(line)
    for reason in REASONS:
        found = reason.sign.search(text)
        line = reason.line(found) if found else ""
        if line:
            return OutputError(line)
    if isinstance(error, OSError) and error.filename:
        return OutputError(f"{error.filename}: {error.strerror}")
    return None


@contextlib.contextmanager
def saving(place: str) -> Iterator[None]:
    """Raise OutputError if Spark cannot write to a place."""
    try:
        yield
    except Exception as error:
        text = "\n".join(_texts(error))
        refused = _REFUSED.search(text)
        if refused is None or _OWN.search(text):
            raise
        why = refused[1] or refused[2]
        raise OutputError(f"{place}: Spark cannot write there: {why}") from error


@dataclass(frozen=True)
class Reason:
    """A row: a pattern, and the message for a match of it; empty if it does not apply."""

    sign: re.Pattern[str]
    line: Callable[[re.Match[str]], str]


_OWN = re.compile(
    r"^\s*amqpsniff\.errors\.((?:Amqpsniff|Capture|Output|Filter|Spec|Usage|Tshark)Error|NotACapture)"
    r": (.+)$",
    re.MULTILINE,
)

_REFUSED = re.compile(
    r"org\.apache\.hadoop\.\S+(?:Error|Exception): (?:java\.io\.IOException: )?([^\n]+)|"
    r"java\.io\.IOException: (Mkdirs failed[^\n]+)"
)
"""Errors of Hadoop's file systems, which Spark's temporary files do not use."""

END_SECONDS = 2.0
"""Time in which a Java that no longer answers ends."""

ANOTHER = "set SPARK_LOCAL_DIRS to a folder on another disk"


def _storage(found: re.Match[str]) -> str:
    return f"object storage did not answer as it should: {found[1].strip()}; {STORAGE}"


def _no_room(found: re.Match[str]) -> str:
    return f"Spark's temporary files ({', '.join(local_folders())}): {found[1]}; {ANOTHER}"


def _java_ended(found: re.Match[str]) -> str:
    if not _java_is_over():
        return ""  # it is another connection, to where captures are
    for folder in local_folders():
        why = trouble_with(folder)
        if why:
            return f"Spark's temporary files ({folder}): {why}; {ANOTHER}"
    return f"Spark's Java has ended: it was killed, {SHORT}; {AGAIN}"


SHORT = "as the system does where memory is short"

STORAGE = "check AWS_ENDPOINT_URL, the region and the credentials (AWS_ACCESS_KEY_ID)"

AGAIN = (
    "what is done is kept: run it again with fewer workers at a time, as with --master 'local[1]'"
)

REASONS = (
    Reason(re.compile(r"(?:OSError|PermissionError): (When .*AWS Error .*)"), _storage),
    Reason(re.compile(r"(No space left on device|Disk quota exceeded)"), _no_room),
    Reason(
        re.compile(r"java\.lang\.OutOfMemoryError: ?(.*)"),
        lambda found: (
            f"Spark's Java has no memory left ({found[1] or 'heap'}); give it more with "
            "PYSPARK_SUBMIT_ARGS='--driver-memory 4g pyspark-shell'"
        ),
    ),
    Reason(
        # the last: a worker that is killed while Spark makes its acquaintance
        re.compile(
            r"Python worker (exited unexpectedly|.*crashed)|ExecutorLostFailure|"
            r"(EOF|Socket|ClosedChannel)Exception.*(\n\s+at java\..*)*"
            r"\n\s+at org\.apache\.spark\.(security\.SocketAuthHelper|api\.python\.PythonWorker)"
        ),
        lambda found: f"a worker of Spark was killed again and again, {SHORT}; {AGAIN}",
    ),
    Reason(
        re.compile(r"\[FAILED_READ_FILE[^\]]*\] [^\n]* file (\S+\.parquet)\b"),
        lambda found: (
            f"the tables cannot be read: {found[1]} is damaged or gone; delete it and run `batch` "
            "again"
        ),
    ),
    Reason(
        re.compile(r"^\s*(?:builtins\.)?MemoryError\b", re.MULTILINE),
        lambda found: f"there is no memory left; {AGAIN}",
    ),
    Reason(
        re.compile(
            r"Py4JNetworkError|Answer from Java side is empty|Connection refused|"
            r"Connection reset by peer|JAVA_GATEWAY_EXITED|has already been shut ?down"
        ),
        _java_ended,
    ),
)
"""In order: the end of a worker or of Java has a reason, which is looked for first."""


def _java_is_over() -> bool:
    """True if the Java that this process started has ended, or is about to."""
    java = getattr(SparkContext._gateway, "proc", None)
    if java is None:
        return False
    with contextlib.suppress(subprocess.TimeoutExpired):
        java.wait(END_SECONDS)
    return java.poll() is not None


def local_folders() -> list[str]:
    """Folders of Spark's temporary files, by environment and configuration."""
    folders = os.environ.get("SPARK_LOCAL_DIRS", "")
    if not folders:
        with contextlib.suppress(Exception):  # of Java, which may have ended
            folders = SparkConf().get("spark.local.dir") or ""
    folders = folders or tempfile.gettempdir()
    return [folder.strip() for folder in folders.split(",") if folder.strip()]


def _texts(error: BaseException | None) -> Iterator[str]:
    """The texts of an error and its causes, the oldest first."""
    if error is not None:
        yield from _texts(error.__cause__ or error.__context__)
        yield f"{type(error).__module__}.{type(error).__qualname__}: {error}"
