"""Attacks on what is remembered of AMQP 1.0: all stays bounded, and nothing wrong is said."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from amqpsniff import Engine
from tests.amqp10 import HEADER, Symbol, composite, error, frame, message, source, target, value

KEYS = [(f"10.0.0.1:{port}", "10.0.0.2:5672") for port in range(1024, 1200)]
ACCEPTED = composite("accepted")


def fed(*steps: tuple[str, bytes], key: tuple[str, str] = KEYS[0], engine: Any = None) -> Engine:
    """An engine that was fed what the sides of a connection say."""
    engine = engine or Engine()
    for side, octets in steps:
        engine.feed_bytes(key, {"C": "client", "S": "server"}[side], octets, 1_000_000)
    return engine


def opened(client: bytes = b"", server: bytes = b"") -> list[tuple[str, bytes]]:
    """Headers, opens and a session with a link on which the client sends."""
    begin = {"next_outgoing_id": 0, "incoming_window": 2048, "outgoing_window": 2048}
    link = {"name": "out", "handle": 0, "source": source(), "target": target("q")}
    return [
        ("C", HEADER), ("S", HEADER),
        ("C", frame("open", container_id="c")), ("S", frame("open", container_id="s")),
        ("C", frame("begin", **begin)), ("S", frame("begin", remote_channel=0, **begin)),
        ("C", frame("attach", role=False, initial_delivery_count=0, **link)),
        ("S", frame("attach", role=True, **link)),
        *([("C", client)] if client else []), *([("S", server)] if server else []),
    ]  # fmt: skip


def transfer(number: int, payload: bytes = message(), **more: Any) -> bytes:
    """A transfer on the link."""
    return frame(
        "transfer", handle=0, delivery_id=number, delivery_tag=b"t", payload=payload, **more
    )


def test_dispositions_that_name_everything_again_and_again() -> None:
    """They cost in all what deliveries allow; what is not followed any more has no outcome."""
    sent = b"".join(map(transfer, range(3000)))
    everything = {"role": True, "first": 0, "last": 2**32 - 1}
    again = frame("disposition", **everything, state=composite("received", section_number=0,
                                                               section_offset=0))  # fmt: skip
    last = frame("disposition", **everything, settled=True, state=ACCEPTED)
    engine = fed(*opened(sent, again * 1600 + last))
    engine.finish()
    assert {row.outcome for row in engine.messages()} == {None}
    (found,) = [row.detail for row in engine.findings() if row.code == "session-limit"]
    assert found.startswith("disorder")
    few = fed(*opened(sent, again * 10 + last))
    few.finish()
    assert {row.outcome for row in few.messages()} == {"confirmed"}


def test_begins_that_join_one_session() -> None:
    joins = b"".join(
        frame("begin", number, remote_channel=0, next_outgoing_id=0, incoming_window=1,
              outgoing_window=1)
        for number in range(1, 3000)
    )  # fmt: skip
    engine = fed(*opened(transfer(0), joins))
    engine.finish()
    (row,) = engine.take("channels").to_pylist()
    assert (row["published"], row["server_channel"]) == (1, 2999)


def test_sessions_and_links_without_end() -> None:
    """A client that only begins and attaches; every session has its row."""
    begins = b"".join(
        frame("begin", number, next_outgoing_id=0, incoming_window=1, outgoing_window=1)
        for number in range(1, 3000)
    )
    attaches = b"".join(
        frame("attach", name=f"l{number}", handle=number, role=False, source=source(),
              target=target("q"), initial_delivery_count=0)
        for number in range(1, 3000)
    )  # fmt: skip
    engine = fed(*opened(attaches + begins))
    engine.finish()
    assert engine.take("channels").num_rows == 3000
    assert engine.take("links").num_rows == 3000


def test_transfers_that_never_end_on_many_connections() -> None:
    """Of all connections so many are put together; the others are cut, and none is lost."""
    engine = Engine()
    count = 1000
    sent = b"".join(
        frame("transfer", handle=number, delivery_id=number, delivery_tag=b"t", more=True,
              payload=b"\0\x53\x75\xa0\x40x")
        for number in range(count)
    )  # fmt: skip
    for key in KEYS[:67]:
        fed(*opened(sent), key=key, engine=engine)
    engine.finish()
    found = engine.take("messages").column("status").to_pylist()
    assert len(found) == 67 * count
    assert set(found) == {"incomplete", "truncated"}
    assert found.count("truncated") <= 67 * count - 65_536 + 67


def test_opens_with_large_properties() -> None:
    """Properties are not kept, whether the other side answers or not."""
    engine = Engine()
    large = frame("open", container_id="c", properties={Symbol(f"p{n}"): "x" * 50 for n in
                                                        range(2000)})  # fmt: skip
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for key in KEYS[:40]:
            fed(("C", HEADER), ("S", HEADER), ("C", large), key=key, engine=engine)
        engine.take("frames")
        kept = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert kept < 40 * len(large)


def _nested(depth: int) -> bytes:
    return b"\0\x53\x01" * depth + b"\x40"


PAYLOADS = {
    "nested described types": b"\0\x53\x74" + _nested(5000),
    "a described type as descriptor": b"\0" * 5000,
    "an array of 2^32 nulls": b"\0\x53\x74\xd1\0\0\0\x15\0\0\0\2\xa1\1k"
                              b"\xf0\0\0\0\5\xff\xff\xff\xff\x40\xa1\1k\x40",
    "a map of 50,000 keys": b"\0\x53\x74" + value({f"k{n}": n for n in range(50_000)}),
    "a section of 4 GB": b"\0\x53\x74\xd1\xff\xff\xff\xff\xff\xff\xff\xff" + b"x" * 5000,
    "properties of 4 GB": b"\0\x53\x73\xd0\xff\xff\xff\xff\0\0\0\1",
    "ten thousand sections": b"\0\x53\x75\xa0\0" * 10_000,
    "ten thousand headers": (b"\0\x53\x70\x45") * 10_000,
}  # fmt: skip


@pytest.mark.parametrize("name", PAYLOADS)
def test_sections(name: str) -> None:
    """The message before and the one behind are read as ever; the text of a row is bounded."""
    octets = PAYLOADS[name]
    engine = fed(*opened(transfer(0) + transfer(1, octets) + transfer(2)))
    engine.finish()
    rows = sorted(engine.take("messages").to_pylist(), key=lambda row: row["delivery_tag"])
    assert [row["delivery_tag"] for row in rows] == [0, 1, 2]
    assert [row["body_size"] for row in rows[::2]] == [5, 5]
    assert len(rows[1]["headers"] or "") < 20 * len(octets) + 10_000


def test_numbers_at_their_ends() -> None:
    """Flows, windows and credit of 2^32-1, and far behind what was sent."""
    top = 2**32 - 1
    fields = {"next_incoming_id": top, "incoming_window": top, "next_outgoing_id": top,
              "outgoing_window": top, "handle": 0, "delivery_count": top,
              "link_credit": top, "available": top}  # fmt: skip
    flow = frame("flow", **fields)
    every = {"role": True, "first": top, "last": top - 1, "settled": True}
    settled = frame("disposition", **every, state=ACCEPTED)
    engine = fed(*opened(flow * 50 + transfer(top) * 50, flow * 50 + settled))
    engine.finish()
    (row,) = engine.take("links").to_pylist()
    assert (row["deliveries"], row["flows"]) == (50, 100)
    assert engine.take("messages").num_rows == 50


def test_an_unsettled_map_of_thousands() -> None:
    """An attach that resumes everything."""
    unsettled = {b"%d" % number: ACCEPTED for number in range(5_000)}
    again = frame("attach", name="in", handle=1, role=True, source=source("q"), target=target(),
                  unsettled=unsettled)  # fmt: skip
    end = frame("detach", handle=1, closed=True, error=error("amqp:not-found", "x" * 100_000))
    engine = fed(*opened((again + end) * 5))
    engine.finish()
    assert engine.take("links").num_rows == 6
