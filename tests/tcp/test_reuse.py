"""Endpoints that are used again within seconds, without a SYN in the capture."""

from __future__ import annotations

import pytest

from tests.tcp.wire import ACK, FIN, RST, Packet, Talk, alike_in_any_batches

HEADER = b"AMQP\x00\x00\x09\x01"
HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(506)
SECOND = 15_600_000
"""How far Linux's initial sequence numbers get in a second."""


def talk(isn: tuple[int, int], end: str = "", first: bytes = HEADER) -> Talk:
    """A short conversation, with its handshake; `end`: how it ends."""
    made = Talk(isn).hands()
    made.client(first)
    made.server(b"start")
    made.client(b"start-ok")
    made.server(b"tune")
    if end == "fin":
        made.goodbye()
    elif end == "rst":
        made.client(flags=RST | ACK)
    return made


def again(first: Talk, jump: int, says: bytes = HEADER) -> list[Packet]:
    """The same endpoints later, their numbers so much farther, from what the client says first."""
    isn = tuple((number + jump) % 2**32 for number in first.isn)
    second = talk((isn[0], isn[1]), first=says)
    return [p._replace(ts_ns=p.ts_ns + first.now - first.packets[0].ts_ns) for p in second.packets][
        3:
    ]


@pytest.mark.parametrize("end", ["", "fin", "rst"])
@pytest.mark.parametrize(
    "jump", [5000, SECOND // 10, SECOND, 20 * SECOND, 2**31, 2**32 - SECOND * 9]
)
@pytest.mark.parametrize("isn", [(1000, 9000), (2**32 - 50_000, 2**32 - 10)])
@pytest.mark.parametrize("says", [HEADER, HELLO], ids=["header", "hello"])
def test_where_both_directions_jump(end: str, jump: int, isn: tuple[int, int], says: bytes) -> None:
    first = talk(isn, end, says)
    result = alike_in_any_batches([*first.packets, *again(first, jump, says)])
    assert result.kinds().count("open") == 2
    for name in {event.connection_id for event in result.events}:
        both = [b"".join(e.payload for e in result.events if _is(e, name, side)) for side in (0, 1)]
        assert both == [says + b"start-ok", b"starttune"]
    assert not [event for event in result.events if event.kind == "gap"]


@pytest.mark.parametrize("end", ["", "fin", "rst"])
@pytest.mark.parametrize("jump", [5000, SECOND, 20 * SECOND])
@pytest.mark.parametrize("answered", [True, False])
def test_neither_handshake_was_captured(end: str, jump: int, answered: bool) -> None:
    """The first waits for its handshake; the second comes while it does."""
    first = talk((1000, 9000), end)
    packets = again(first, jump)
    if not answered:
        packets = [packet for packet in packets if packet.octets[20:22] != b"\x16\x28"]
    result = alike_in_any_batches([*first.packets[3:], *packets])
    assert result.kinds().count("open") == 2
    said = [[e.payload for e in result.events if e.kind == "data" and e.direction == side]
            for side in (0, 1)]  # fmt: skip
    assert said[0] == [HEADER, b"start-ok"] * 2
    assert said[1] == [b"start", b"tune"] * (1 + answered)
    assert "gap" not in result.kinds()


@pytest.mark.parametrize("flags", [ACK, FIN | ACK])
@pytest.mark.parametrize("payload", [b"", b"tune"])
def test_the_responder_repeats_itself_before_it_answers(flags: int, payload: bytes) -> None:
    """What it sends again after the next SYN answers bytes of before."""
    first = talk((1000, 9000), "fin")
    late = first.server(payload, at=5, flags=flags)
    second = talk((50_000, 90_000))
    packets = [*first.packets[:-1], second.packets[0], late, *second.packets[1:]]
    result = alike_in_any_batches(packets)
    assert result.kinds().count("open") == 2
    assert result.stream(0) == [(HEADER + b"start-ok") * 2]
    assert result.stream(1) == [b"starttune" * 2]
    assert not result.findings


def _is(event: object, name: str, side: int) -> bool:
    return (event.connection_id, event.kind, event.direction) == (name, "data", side)  # type: ignore[attr-defined]


def holed(client: int, server: int, says: bytes = HEADER) -> Talk:
    """A conversation that lost so many bytes of each side before a segment that is a begin."""
    made = talk((1000, 9000))
    made.sent[0] += client
    made.sent[1] += server
    made.client(says)
    made.client(b"more")
    made.server(b"thanks")
    return made


@pytest.mark.parametrize("says", [HEADER, HELLO], ids=["header", "hello"])
@pytest.mark.parametrize(("client", "server"), [(100_000, 0), (0, 100_000), (2047, 2047), (0, 0)])
def test_a_body_that_carries_a_begin_behind_a_hole(client: int, server: int, says: bytes) -> None:
    result = alike_in_any_batches(holed(client, server, says).packets)
    assert result.kinds().count("open") == 1
    assert b"".join(p for p in result.stream(0) if isinstance(p, bytes)).endswith(says + b"more")


@pytest.mark.parametrize(
    "octets",
    [
        b"start-ok",
        HELLO[:5] + b"\x00\x00\x00\x00\x00\x00\x00\x01" + HELLO[13:],  # an encrypted handshake
        HELLO[:5] + b"\x02" + HELLO[6:],  # what a server says
        HELLO[:8] + b"\xfd" + HELLO[9:],  # a length that is not the record's
        b"\x17" + HELLO[1:],
        HELLO[:10],
        HEADER + b"\x01",
    ],
)
@pytest.mark.parametrize("lost", [5000, 1 << 20, 1 << 29])
def test_a_hole_of_both_sides_stays_a_hole(octets: bytes, lost: int) -> None:
    """However many bytes are lost of both, only what can be nothing else begins anew."""
    result = alike_in_any_batches(holed(lost, lost, octets).packets)
    assert result.kinds().count("open") == 1
    assert lost in result.stream(0)


def test_a_header_that_is_sent_again() -> None:
    made = talk((1000, 9000))
    made.client(HEADER, at=0, ack=0)
    made.client(b"more")
    assert alike_in_any_batches(made.packets).kinds().count("open") == 1
    made.goodbye()
    made.client(HEADER, at=0, ack=0)
    assert alike_in_any_batches(made.packets).kinds().count("open") == 1


def test_bytes_after_the_end_that_are_no_header() -> None:
    made = talk((1000, 9000), "fin")
    made.client(b"late", at=5000)
    made.client(HEADER, at=2000, flags=ACK | FIN)
    assert alike_in_any_batches(made.packets).kinds().count("open") == 1
