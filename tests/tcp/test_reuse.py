"""Endpoints that are used again within seconds, without a SYN in the capture."""

from __future__ import annotations

import pytest

from tests.tcp.wire import ACK, FIN, RST, Packet, Talk, alike_in_any_batches

HEADER = b"AMQP\x00\x00\x09\x01"
SECOND = 15_600_000
"""How far Linux's initial sequence numbers get in a second."""


def talk(isn: tuple[int, int], end: str = "") -> Talk:
    """A short conversation, with its handshake; `end`: how it ends."""
    made = Talk(isn).hands()
    made.client(HEADER)
    made.server(b"start")
    made.client(b"start-ok")
    made.server(b"tune")
    if end == "fin":
        made.goodbye()
    elif end == "rst":
        made.client(flags=RST | ACK)
    return made


def again(first: Talk, jump: int) -> list[Packet]:
    """The same endpoints later, their numbers so much farther, from the header on."""
    isn = tuple((number + jump) % 2**32 for number in first.isn)
    second = talk((isn[0], isn[1]))
    return [p._replace(ts_ns=p.ts_ns + first.now - first.packets[0].ts_ns) for p in second.packets][
        3:
    ]


@pytest.mark.parametrize("end", ["", "fin", "rst"])
@pytest.mark.parametrize(
    "jump", [5000, SECOND // 10, SECOND, 20 * SECOND, 2**31, 2**32 - SECOND * 9]
)
@pytest.mark.parametrize("isn", [(1000, 9000), (2**32 - 50_000, 2**32 - 10)])
def test_header_where_both_directions_jump(end: str, jump: int, isn: tuple[int, int]) -> None:
    first = talk(isn, end)
    result = alike_in_any_batches([*first.packets, *again(first, jump)])
    assert result.kinds().count("open") == 2
    for name in {event.connection_id for event in result.events}:
        both = [b"".join(e.payload for e in result.events if _is(e, name, side)) for side in (0, 1)]
        assert both == [HEADER + b"start-ok", b"starttune"]
    assert not [event for event in result.events if event.kind == "gap"]


def _is(event: object, name: str, side: int) -> bool:
    return (event.connection_id, event.kind, event.direction) == (name, "data", side)  # type: ignore[attr-defined]


def holed(client: int, server: int) -> Talk:
    """A conversation that lost so many octets of each side before a segment that is a header."""
    made = talk((1000, 9000))
    made.sent[0] += client
    made.sent[1] += server
    made.client(HEADER)
    made.client(b"more")
    made.server(b"thanks")
    return made


@pytest.mark.parametrize(("client", "server"), [(100_000, 0), (0, 100_000), (2047, 2047), (0, 0)])
def test_a_body_that_carries_a_header_behind_a_hole(client: int, server: int) -> None:
    result = alike_in_any_batches(holed(client, server).packets)
    assert result.kinds().count("open") == 1
    assert b"".join(p for p in result.stream(0) if isinstance(p, bytes)).endswith(HEADER + b"more")


def test_a_header_that_is_sent_again() -> None:
    made = talk((1000, 9000))
    made.client(HEADER, at=0, ack=0)
    made.client(b"more")
    assert alike_in_any_batches(made.packets).kinds().count("open") == 1
    made.goodbye()
    made.client(HEADER, at=0, ack=0)
    assert alike_in_any_batches(made.packets).kinds().count("open") == 1


def test_octets_after_the_end_that_are_no_header() -> None:
    made = talk((1000, 9000), "fin")
    made.client(b"late", at=5000)
    made.client(HEADER, at=2000, flags=ACK | FIN)
    assert alike_in_any_batches(made.packets).kinds().count("open") == 1
