"""Reports made for tests, and what is inside of them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from amqpsniff.spec.describe import describe
from tests import encoder
from tests.cli.running import Result, run, write_capture
from tests.tcp.wire import Talk

HOSTILE = "</script><img src=x onerror=alert(1)>\u2028\u202e<!--\"'&{{1}}\x1b[2J\x00"
BYTES = HOSTILE.encode()


def report(target: Path, *arguments: str | Path) -> Result:
    """Run `amqpsniff report` with the page going to `target`."""
    return run("report", *arguments, "-o", target)


def data_of(page: str) -> dict[str, Any]:
    """The values that the page's script is given."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    assert found is not None
    values: dict[str, Any] = json.loads(found[1])
    return values


def text_of(page: str) -> str:
    """The page without its scripts and styles."""
    return re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.S)


def _method(name: str, channel: int = 1, **values: Any) -> bytes:
    row = next(row for row in describe(name) if "0-9-1" in row.dialects)
    empty: dict[str, Any] = {"s": b"", "S": b"", "F": []}
    given = {one.name: values.get(one.name, empty.get(one.type, 0)) for one in row.arguments}
    return encoder.method(row, given, channel=channel)


def _publish(name: bytes, body: bytes) -> bytes:
    row = describe("basic.publish")[0]
    values = {"ticket": 0, "exchange": name, "routing_key": name, "mandatory": 0, "immediate": 0}
    properties = {"message_id": name, "content_type": name}
    return b"".join(encoder.content(row, values, body, properties=properties))


def hostile_capture(path: Path, octets: bytes = BYTES) -> Path:
    """A capture in which every name tries to leave its place in the page, or has these bytes."""
    text, name = encoder.Field("S", octets), octets[:255]
    names = ("product", "version", "platform", "connection_name")
    properties = [(one.encode(), text) for one in names]
    said = [
        (0, encoder.PROTOCOL_HEADERS["0-9-1"]),
        (1, _method("connection.start", 0, server_properties=properties, mechanisms=b"PLAIN")),
        (
            0,
            _method(
                "connection.start-ok", 0, client_properties=properties, mechanism=b"PLAIN",
                response=b"\0user\0hunter2", locale=name,
            ),
        ),
        (0, _method("connection.open", 0, virtual_host=name)),
        (0, _method("channel.open")),
        (0, _method("exchange.declare", exchange=name, type=name)),
        (1, _method("exchange.declare-ok")),
        (0, _method("queue.declare", queue=name, arguments=[(name[:100], text)])),
        (1, _method("queue.declare-ok", queue=name)),
        (0, _method("queue.bind", queue=name, exchange=name, routing_key=name)),
        (1, _method("queue.bind-ok")),
        (0, _method("basic.consume", queue=name, consumer_tag=name)),
        (1, _method("basic.consume-ok", consumer_tag=name)),
        (0, _publish(name, octets)),
        (1, _method("channel.close", reply_code=404, reply_text=name, class_id=50)),
    ]  # fmt: skip
    talk = Talk().hands()
    for side, sent in said:
        (talk.server if side else talk.client)(sent)
    return write_capture(path, talk.goodbye().packets)
