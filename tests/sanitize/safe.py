"""Captures made safe, and what of the original must not be in them."""

from __future__ import annotations

import base64
import io
import json
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import amqpsniff
from amqpsniff.capture import open_capture
from amqpsniff.options import Options
from amqpsniff.sanitize import Sanitized, SanitizeOptions, sanitize
from amqpsniff.sanitize.policy import BROKER_HEADERS, REQUEST_HEADERS
from tests.capture import build

REPLACED = {
    "frames": {"arguments", "reply_text"},
    "messages": {"headers", "user_id", "app_id", "cluster_id", "reply_text"},
    "connections": {"user", "connection_name", "close_text", "tls_server_name"},
    "channels": {"close_text"},
    "links": {"close_text", "filter"},
    "findings": {"detail"},
}
"""Columns that may differ, by table."""

_FILLED = re.compile(rb"(?:[\xa1\xb1].{1,4})?x*", re.DOTALL)
"""Filler, also as a value of AMQP 1.0."""

_HOST = re.compile("://[^/]*")

KEPT_HEADERS = {rule.name for rule in (*BROKER_HEADERS, *REQUEST_HEADERS)}

NAMES = {
    "exchange", "routing_key", "queue", "consumer_tag", "vhost", "message_id", "correlation_id",
    "reply_to", "type", "link", "source", "target",
}  # fmt: skip
ADDRESSES = {"client", "server", "connection_id"}


def made(path: Path, folder: Path, options: SanitizeOptions | None = None) -> Path:
    """The safe capture of a capture."""
    safe = folder / f"{path.name}.safe.pcapng"
    safe.write_bytes(bytes_of(path, options)[0])
    return safe


def bytes_of(
    path: Path, options: SanitizeOptions | None = None, decoding: Options | None = None
) -> tuple[bytes, Sanitized]:
    """The bytes of the safe capture, and what was done."""
    sink = io.BytesIO()
    *_, done = sanitize(path, sink, options, decoding)
    return sink.getvalue(), done


def packets(path: Path) -> list[tuple[Any, ...]]:
    """What must stay of every packet: number, time, lengths and link type."""
    rows = build.rows(open_capture(path))
    return [(r.number, r.ts_ns, len(r.octets), r.original, r.link_type) for r in rows]


def rows(
    path: Path, table: str, options: SanitizeOptions | None = None, **keys: Any
) -> list[dict[str, Any]]:
    """Rows of a table without the columns that may differ; `keys` open TLS."""
    gone = REPLACED[table] | {"capture"}
    if options is not None and options.names:
        gone |= NAMES
    if options is not None and options.addresses:
        gone |= ADDRESSES
    return _kept(amqpsniff.open(path, **keys).table(table).to_pylist(), gone)


def rows_of_tables(path: Path) -> dict[str, list[dict[str, Any]]]:
    """The same of every table, read once."""
    found: dict[str, list[dict[str, Any]]] = {table: [] for table in REPLACED}
    for table, batch in amqpsniff.open(path).tables(*REPLACED):
        found[table] += _kept(batch.to_pylist(), REPLACED[table] | {"capture"})
    return found


def _kept(rows: list[dict[str, Any]], gone: set[str]) -> list[dict[str, Any]]:
    return [{name: _without_host(row[name]) for name in row if name not in gone} for row in rows]


def _without_host(value: Any) -> Any:
    """A value without the host of a URL in it."""
    return _HOST.sub("://", value) if isinstance(value, str) and "://" in value else value


def secrets(path: Path, **keys: Any) -> Iterator[bytes]:
    """Bytes of a capture that nobody may see: logins, bodies, headers, whom clients say they are.

    Only what is long enough not to be there by chance, and is no name that is shown elsewhere.
    """
    capture = amqpsniff.open(path, bodies=True, show_secrets=True, **keys)
    frames, messages, *others = (
        capture.table(name).to_pylist() for name in ("frames", "messages", "links", "connections")
    )
    kept = " ".join(
        str(row[name])
        for row in chain(frames, messages, *others)
        for name in NAMES
        if row.get(name)
    ).encode()
    for secret in _secrets(frames, messages):
        if len(secret) > 3 and secret not in kept and not _FILLED.fullmatch(secret):
            yield secret


def _is_declaration(row: dict[str, Any]) -> bool:
    """True for what RabbitMQ's management is asked or answers, which is cleaned like arguments and
    reply texts of 0-9-1; tokens are binary.
    """
    return "/management" in (row["routing_key"], row["queue"]) and row["body"][0] not in b"\xa0\xb0"


def _secrets(frames: list[dict[str, Any]], messages: list[dict[str, Any]]) -> Iterator[bytes]:
    for row in frames:
        arguments = json.loads(row["arguments"] or "{}")
        if row["method"] == "connection.start-ok":
            response = str(arguments.get("response", "")).encode()
            if arguments.get("mechanism") == "AMQPLAIN":
                response = response.partition(b"PASSWORDS")[2][4:]
            yield from response.split(b"\0")
            for name in ("connection_name", "information"):
                yield str(arguments["client_properties"].get(name, "")).encode()
        elif row["method"] in ("connection.secure-ok", "connection.update-secret"):
            yield str(arguments.get("response", arguments.get("new_secret"))).encode()
        elif row["method"] == "connection.start":
            yield str(arguments["server_properties"].get("cluster_name", "")).encode()
        elif row["method"] == "sasl-init":
            response = arguments.get("initial_response", "")
            if isinstance(response, dict):
                response = base64.b64decode(response["base64"]).decode()
            yield from response.encode().split(b"\0")
        elif row["method"] == "open":
            yield str(arguments.get("container_id", "")).encode()
    for row in messages:
        yield (row["user_id"] or "").encode()
        yield (row["app_id"] or "").encode()
        if row["body"] and not _is_declaration(row):
            yield row["body"][:64]
            yield row["body"][-64:]
        for name, value in json.loads(row["headers"] or "{}").items():
            if isinstance(value, str) and name not in KEPT_HEADERS:
                yield value.encode()
