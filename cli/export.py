"""`amqpsniff export`: any table as NDJSON, CSV, Parquet or Arrow."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Annotated

from amqpsniff.errors import UsageError

from .completions import columns
from .options import TABLES, Input, OutputFile, Rows, offer, one_of, spread
from .reading import Reading
from .rows import Export, standard_output

ENDINGS = {
    "ndjson": (".ndjson", ".jsonl", ".json"),
    "csv": (".csv",),
    "parquet": (".parquet", ".pq"),
    "arrow": (".arrow", ".arrows", ".ipc"),
}
"""Formats, and the endings of file names that mean them."""

BINARY = ("parquet", "arrow")

OTLP = "otlp"
"""The format of spans; as protobuf in files with these endings."""
PROTOBUF_ENDINGS = (".pb", ".binpb")
FORMATS = (*ENDINGS, OTLP)


@spread("""
    Output:
        -t --table T: Table whose rows are written: {TABLES}.
        --columns A,B: Only these columns, in this order.
        --format F: Output format: {FORMATS}. Default: what the ending of -o says, else ndjson.
            otlp: journeys of messages as spans of OpenTelemetry, as JSON, or as protobuf in a file
            that ends in .pb. [default]
""")
def export(
    source: Input,
    rows: Rows,
    table: Annotated[str, one_of(TABLES, "no table {}")],
    columns: Annotated[str | None, offer(columns)] = None,
    bodies: bool = False,
    body_sha256: bool = False,
    format_: Annotated[str | None, one_of(FORMATS, "no format {} here")] = None,
    output: OutputFile = None,
) -> int:
    """Write the rows of a table, for programs.

    The tables are frames (a row per AMQP frame), messages (a row per publish, deliver, get and
    return), connections, channels (a row per opening of a number), links (of AMQP 1.0) and
    findings.

    Examples:

        amqpsniff export trace.pcapng --table messages -o messages.parquet
        amqpsniff export captures/ -t channels --errors -o channels.csv
        amqpsniff export trace.pcapng -t messages --columns routing_key,body_size
        amqpsniff export trace.pcapng -t messages --format otlp -o spans.json
    """

    if format_ == OTLP:
        if table != "messages" or columns is not None or rows.limit is not None:
            raise UsageError("--format otlp is for --table messages, without --columns and --limit")
        return _export_spans(source, rows, output)
    form = format_of(format_, output)
    if output is None and form in BINARY and sys.stdout.isatty():
        raise UsageError(f"{form} is not for a terminal; give -o FILE, or pipe it into a program")
    names = [name.strip() for name in columns.split(",")] if columns is not None else None
    exported = Export(
        source,
        rows,
        table,
        columns=names,
        bodies=bodies,
        body_sha256=body_sha256,
        progress=output is not None or not sys.stdout.isatty(),
    )
    if output is None:
        return exported.write(form, standard_output())
    refuse_captures(output, source.captures)
    with replacing(output) as file:
        return exported.write(form, file)


def _export_spans(source: Input, rows: Rows, output: Path | None) -> int:
    """Write the spans of the wanted messages."""
    from amqpsniff.otlp.encoding import JSON, PROTOBUF, write

    reading = Reading(source, rows)
    protobuf = output is not None and output.suffix.lower() in PROTOBUF_ENDINGS
    form = PROTOBUF if protobuf else JSON
    with reading.passing(progress=output is not None) as capture:
        traces = capture.traces(**rows.part())
        if output is None:
            write(traces, standard_output(), form)
        else:
            refuse_captures(output, source.captures)
            with replacing(output) as file:
                write(traces, file, form)
    return reading.exit_code


def format_of(wanted: str | None, output: Path | None) -> str:
    """The format that is wanted, or that a file's name means; raises UsageError for any other."""
    if wanted is not None:
        if wanted not in ENDINGS:
            raise UsageError(f"no format `{wanted}`; there are {', '.join(ENDINGS)}")
        return wanted
    if output is None or _special(output):
        return "ndjson"
    for form, endings in ENDINGS.items():
        if output.suffix.lower() in endings:
            return form
    raise UsageError(f"the ending of {output} names no format; give --format {'|'.join(ENDINGS)}")


def refuse_captures(output: Path, captures: list[str]) -> None:
    """Raise UsageError when the output is one of the captures, also one that a folder holds."""
    from amqpsniff.capture import expand

    if not output.exists():
        return
    for name in expand(captures):
        if Path(name).exists() and output.samefile(name):
            raise UsageError(f"{output} is the capture itself; give another name")


def _special(path: Path) -> bool:
    """True if a path is there and is no file that could be replaced: a device, a pipe."""
    return path.exists() and not path.is_file()


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file to write that takes the place of `path` when all went well, and else goes away."""
    if path.is_dir():
        raise UsageError(f"{path} is a directory; give the name of a file")
    if _special(path):
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


STANDARD_OUTPUT = "-"


@contextmanager
def capture_sink(output: Path) -> Iterator[IO[bytes]]:
    """A capture to write: a file that replaces `output`, or standard output for `-`."""
    if str(output) != STANDARD_OUTPUT:
        with replacing(output) as file:
            yield file
        return
    if sys.stdout.isatty():
        raise UsageError("a capture is no text for a terminal; give -o FILE, or a pipe")
    yield sys.stdout.buffer
    sys.stdout.buffer.flush()


def named_output(output: Path) -> str:
    """The target of a written capture, in words."""
    return "standard output" if str(output) == STANDARD_OUTPUT else str(output)
