"""Every frame of healthy 0-9-1 captures, as pamqp unmarshals it, is the row we give."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import amqpsniff
from tests.conftest import SAMPLES
from tests.decode.feeding import Stream, streams_of
from tests.decode.strategies import parsed

pamqp_frame = pytest.importorskip("pamqp.frame")

CAPTURES = [
    "aiopika_rpc.pcap", "blocked.pcap", "bunny.pcapng", "kombu.pcap.gz", "node.pcap",
    "php_churn.pcap", "pika_mix.pcap",
]  # fmt: skip
KINDS = {
    "ProtocolHeader": "protocol-header",
    "ContentHeader": "header",
    "ContentBody": "body",
    "Heartbeat": "heartbeat",
}
RENAMED = {"nowait": "no_wait", "exchange_type": "type", "global_": "global"}
SECRETS = {"response"}


def unmarshalled(stream: Stream) -> Iterator[tuple[int, int, int, Any]]:
    """Frames as (offset, bytes, channel, pamqp's object)."""
    octets, at = stream.octets, 0
    while at < len(octets):
        size, channel, found = pamqp_frame.unmarshal(octets[at:])
        yield at, size, channel, found
        at += size


def shown(name: str, value: Any) -> Any:
    """A plain argument as our JSON has it."""
    return "[redacted]" if name in SECRETS else value


@pytest.mark.parametrize("name", CAPTURES)
def test_frames(name: str) -> None:
    path = SAMPLES / name
    rows = amqpsniff.open(path).table("frames").to_pylist()
    ours = {(row["client"], row["sender"], row["stream_offset"]): row for row in rows}
    count = 0
    for stream in streams_of(path):
        for offset, size, channel, found in unmarshalled(stream):
            row = ours[stream.client, ("client", "server")[stream.direction], offset]
            count += 1
            kind = KINDS.get(type(found).__name__, "method")
            assert (row["frame_type"], row["channel"]) == (kind, channel)
            assert row["size"] + (0 if kind == "protocol-header" else 8) == size
            if kind != "method":
                continue
            assert row["method"].replace("-", "") == found.name.lower().replace("-", "")
            arguments = parsed(row["arguments"])
            for theirs, value in found:
                key = RENAMED.get(theirs, theirs)
                if isinstance(value, (str, int)):
                    assert arguments[key] == shown(key, value), (row, key)
    assert count == len(rows)
