"""`amqpsniff bodies`: the bodies of messages as files, with a manifest."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

from amqpsniff.analysis.content_encoding import (
    ENCODINGS,
    NotDecodable,
    decoded,
    encoding_of,
    extension,
)
from amqpsniff.errors import UsageError
from amqpsniff.units import count
from amqpsniff.units import octets as shown

from .entry import complain
from .options import Input, Rows, spread
from .reading import Reading

COLUMNS = (
    "capture", "packet_number", "ts_ns", "connection_id", "client", "channel", "method",
    "exchange", "routing_key", "message_id", "content_type", "content_encoding", "status",
    "body_size", "headers", "body",
)  # fmt: skip
"""Columns of messages that are read."""

MANIFEST = ("file", *COLUMNS[:-2], "size", "sha256", "decoded")
"""Columns of the manifest. `file` is null where nothing of a body was captured, `size` and `sha256`
are those of the file, `decoded` is true where its content encoding was undone."""

FORMATS = ("ndjson", "csv")


@spread("""
    Output:
        -o --output DIR: Directory to write to: a new or an empty one.
        --decode: Decompress bodies: gzip, deflate, zstd, bzip2, xz and br.
        --format F: Format of the manifest: {FORMATS}. [default]
""")
def bodies(
    source: Input,
    rows: Rows,
    output: Path,
    decode: bool = False,
    format_: str = FORMATS[0],
) -> int:
    """Write the bodies of messages to files, with a manifest.

    The manifest has one row per message: file, connection, packet, exchange, routing key, content
    type, size, SHA-256 and whether the body is complete. Names of files are numbers, and endings
    by content type; of a body that is not complete, what was captured before the first hole is
    written.

    Examples:

        amqpsniff bodies trace.pcapng -o bodies/
        amqpsniff bodies trace.pcapng -o new/ --exchange orders --decode
    """
    reading = Reading(source, rows, bodies=True)
    row_filter = reading.row_filter(rows, "messages")
    _refuse(output)
    messages = _messages(reading, row_filter)
    first = list(islice(messages, 1))  # a file that is no capture leaves no directory behind
    output.mkdir(parents=True, exist_ok=True)
    written = octets = 0
    with (output / f"manifest.{format_}").open("x", encoding="utf-8", newline="") as file:
        write = _manifest(file, format_)
        for message in chain(first, messages):
            row = _store(output, message, written + 1, decode=decode)
            write(row)
            written += row["file"] is not None
            octets += row["size"] or 0
    if not source.quiet:
        noun = "body" if written == 1 else "bodies"
        complain(f"{count(written)} {noun}, {shown(octets)}, in {output}")
    return reading.exit_code


def _refuse(directory: Path) -> None:
    """Raise UsageError when the directory holds anything, or is a file."""
    if directory.exists() and not directory.is_dir():
        raise UsageError(f"{directory} is not a directory; give -o a new or an empty one")
    if directory.exists() and any(directory.iterdir()):
        raise UsageError(f"{directory} is not empty; give -o a new or an empty directory")


def _messages(reading: Any, row_filter: Any) -> Iterator[dict[str, Any]]:
    from amqpsniff.tables.values import rows_of

    for batch in reading.chosen(row_filter, columns=COLUMNS, progress=True):
        yield from rows_of(batch)


def _manifest(file: IO[str], form: str) -> Any:
    """A function that writes one row of the manifest."""
    if form == "csv":
        writer = csv.DictWriter(file, MANIFEST)
        writer.writeheader()
        return writer.writerow
    return lambda row: file.write(json.dumps(row, ensure_ascii=False) + "\n")


def _store(
    directory: Path, message: dict[str, Any], number: int, *, decode: bool
) -> dict[str, Any]:
    """Write one body; its row of the manifest."""
    body = message.pop("body")
    row = {name: message.get(name) for name in MANIFEST}
    if body is None:
        return row
    ending = extension(message["content_type"])
    encoding = encoding_of(message)
    stem = f"{number:08}-packet{message['packet_number']}"
    row["decoded"] = False
    if decode and encoding in ENCODINGS:
        row |= _write_decoded(directory, f"{stem}.{ending}", body, encoding)
    if not row["decoded"]:
        row |= _write(directory, f"{stem}.{ending}{ENCODINGS.get(encoding, '')}", (body,))
    return row


def _write_decoded(directory: Path, name: str, body: bytes, encoding: str) -> dict[str, Any]:
    """Write what a body decodes to; `decoded` is false, and no file there, when it does not."""
    try:
        return _write(directory, name, decoded(body, encoding)) | {"decoded": True}
    except NotDecodable:
        (directory / name).unlink()
        return {"decoded": False}


def _write(directory: Path, name: str, pieces: Any) -> dict[str, Any]:
    """Write a new file; a name that is there already, a link too, is an error, never followed."""
    digest = hashlib.sha256()
    size = 0
    with (directory / name).open("xb") as file:
        for piece in pieces:
            file.write(piece)
            digest.update(piece)
            size += len(piece)
    return {"file": name, "size": size, "sha256": digest.hexdigest()}
