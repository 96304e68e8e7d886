"""Connections of captures given as octets: every table and rule is asked, nothing is raised."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import amqpsniff
from amqpsniff.capture import read
from amqpsniff.engine import ENGINE_TABLES, Key, Stream
from amqpsniff.tcp import Conversation
from amqpsniff.tcp.codes import CLOSE, DATA, GAP
from amqpsniff.tcp.reassembly import Reassembler
from amqpsniff.tcp.stream import StreamBatch
from tests.conftest import OWN, SAMPLES
from tests.decode.script import OPENING, method, publish
from tests.encoder import body, header
from tests.thorough import some

MS = 1_000_000
WAYS = ("client", "server")
ENDS = ("10.0.0.1:40000", "10.0.0.2:5672")
CAPTURES = [*sorted(SAMPLES.glob("*.pcap*")), OWN / "violations.pcap"]

OF_PACKETS = {"acked", "incarnation", "isn", "serial", "syn_ignored", "version"}
"""What only those ask of a conversation who have its packets: `sanitize`, `compare`, `opinion`, and
those who count attempts to connect."""

OF_TCP = set(
    "a_high a_low a_port b_high b_low b_port ended_number findings_made first first_isn key "
    "lingers name reset second successor".split()
)
"""What the stage of TCP alone uses."""


def test_streams_are_conversations() -> None:
    """What is asked of a conversation can be asked of bytes, compiled or not."""
    names = [name for name in dir(Conversation) if not name.startswith("_")]
    asked = {name for name in names if not callable(getattr(Conversation, name))}
    assert {"awaited_acks", "zero_windows"} < asked
    assert asked - set(dir(Stream("a", True))) - OF_TCP <= OF_PACKETS


def events(path: Path) -> Iterator[StreamBatch]:
    """What reassembly makes of a capture."""
    reassembler = Reassembler()
    for batch in read([path]):
        yield reassembler.feed(batch)
    yield reassembler.finish()


@pytest.mark.parametrize(
    ("path", "named"),
    [(path, named) for at, path in enumerate(CAPTURES) for named in some([at % 2, 1 - at % 2])],
    ids=lambda one: getattr(one, "name", None),
)
def test_every_connection(path: Path, named: int) -> None:
    """Of every capture, with its holes and times; keys are ends or just names, in turn."""
    if not path.exists():
        pytest.skip("no such capture beside the repository (AMQPSNIFF_SHARED)")
    given = amqpsniff.Engine(body_sha256=True)
    ids: dict[int, Key] = {}
    for batch in events(path):
        for row in range(batch.count):
            slot, way = batch.half[row] >> 1, WAYS[batch.half[row] & 1]
            talk = batch.conversations[slot]
            if slot not in ids and talk is not None:
                ids[slot] = (talk.a, talk.b) if named else f"{talk.connection_id} {len(ids)}"
            if batch.kind[row] == DATA:
                given.feed_bytes(ids[slot], way, batch.payload(row), batch.ts_ns[row])
            elif batch.kind[row] == GAP:
                given.gap(ids[slot], way, batch.length[row], batch.ts_ns[row])
            elif batch.kind[row] == CLOSE:
                given.close(ids.pop(slot))
    given.finish()
    rows = {name: given.take(name).num_rows for name in ENGINE_TABLES}
    capture = amqpsniff.open(path)
    found = {name: capture.table(name).num_rows for name in ("frames", "messages")}
    if not capture.totals.encrypted:
        assert rows == rows | found


def test_a_publish_in_two_calls() -> None:
    """Nothing is known of acknowledgements that were waited for, and so nothing is said."""
    given = amqpsniff.Engine()
    given.feed_bytes(ENDS, "client", OPENING, MS)
    for ms in range(100, 1_000, 100):
        given.feed_bytes(ENDS, "client", publish(), ms * MS)
        given.feed_bytes(ENDS, "client", header(1, 60, 2) + body(1, b"hi"), (ms + 43) * MS)
    given.finish()
    assert given.take("messages").num_rows == 9
    assert "delayed-ack-stall" not in {finding.code for finding in given.findings()}


@pytest.mark.parametrize("named", [True, False], ids=["ends", "names"])
def test_short_connections(named: bool) -> None:
    """Many of one client are a finding; whose those are that only have a name is not known."""
    given = amqpsniff.Engine()
    for port in range(6):
        key = (f"10.0.0.1:{port}", "10.0.0.2:5672") if named else str(port)
        script = (
            ("client", OPENING),
            ("server", method("connection.tune", 0)),
            ("client", method("connection.tune-ok", 0) + method("connection.open", 0)),
            ("server", method("connection.open-ok", 0)),
            ("client", method("connection.close", 0, reply_code=200)),
            ("server", method("connection.close-ok", 0)),
        )
        for number, (way, octets) in enumerate(script):
            given.feed_bytes(key, way, octets, (100 * port + number + 1) * MS)
        given.close(key)
    given.finish()
    codes = [finding.code for finding in given.findings()]
    assert codes.count("connection-churn") == named
