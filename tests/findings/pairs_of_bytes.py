"""Pairs for what captures, TCP, TLS, frames, arguments and contents show: a byte more or less."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from amqpsniff.decode.values import MAX_TABLE_DEPTH
from amqpsniff.limits import Limits
from amqpsniff.session import Memory
from amqpsniff.tcp import Limits as TcpLimits
from amqpsniff.tcp.limits import HELD_SEGMENT_BYTES
from tests import encoder
from tests.capture.build import enhanced, interface, section, statistics
from tests.encoder import Field
from tests.findings.cases import NS, Case, Pair, edited, file_of, kept, reassembled, sent
from tests.findings.pairs_of_tls import (
    _alert,
    _damaged_record,
    _encrypted_alert,
    _ended_early,
    _other_key,
    _other_name,
    _starting,
    _tls,
    _unanswered,
    _version,
)
from tests.session.script import Script
from tests.tcp import wire

HELLO = encoder.PROTOCOL_HEADERS["0-9-1"]
OPEN = "handshake\nC1: channel.open\nS1: channel.open-ok\n"
PUBLISH = "C1: basic.publish routing_key=k | body=5 "


def _frame(kind: int, channel: int, payload: str, end: int = encoder.FRAME_END) -> str:
    """A frame of the client, with the payload in hexadecimal."""
    return f"BYTES C {encoder.frame(kind, channel, bytes.fromhex(payload), end).hex()}\n"


def _method(class_id: int, method_id: int, arguments: str = "") -> str:
    return _frame(1, 1, f"{class_id:04x}{method_id:04x}{arguments}")


def _header(size: int = 5, rest: str = "0000", class_id: int = 60, weight: int = 0) -> str:
    return _frame(2, 1, f"{class_id:04x}{weight:04x}{size:016x}{rest}")


def _body(count: int) -> str:
    return _frame(3, 1, "78" * count)


_PUBLISHES = _method(60, 40, "0000" + "00" + "016b" + "00")
_ACKS = _method(60, 80, f"{1:016x}" + "00")
_ACK = _ACKS.split()[2]
_HEARTBEAT = "0800000000000000ce"[2:]


def _content(header: str = "", body: str = "") -> str:
    """A publish of which a frame may be another."""
    return OPEN + _PUBLISHES + (header or _header()) + (body or _body(5))


def _with_headers(fields: list[tuple[bytes, Field]]) -> str:
    """A publish with a table of headers."""
    return _content(_header(5, "2000" + encoder.table(fields).hex()))


def _deep(count: int) -> Field:
    field = Field("V", None)
    for _ in range(count):
        field = Field("F", [(b"a", field)])
    return field


# packets


def _talk(pieces: int = 3) -> list[wire.Packet]:
    """A client that says some packets to a broker, which acknowledges each."""
    talk = wire.Talk(step_ns=0).hands()
    talk.client(HELLO)
    for _ in range(pieces):
        talk.client(encoder.HEARTBEAT_FRAME)
        talk.server()
    return talk.goodbye().packets


def _packets(text: str) -> list[wire.Packet]:
    """The packets of a script, without those that open TCP."""
    talk = wire.Talk(step_ns=0)
    for packet in Script(text).packets:
        talk.put(0 if packet.sender == "client" else 1, packet.octets)
    return talk.packets


def _cut(left: int) -> Callable[[], Case]:
    """A capture whose last packet is a basic.ack that lacks so many bytes."""

    def make() -> Case:
        packets = _packets(OPEN + "C1: basic.ack delivery_tag=1")
        octets = packets[-1].octets
        return sent([*packets[:-1], packets[-1].cut(len(octets) - left)])

    return make


def _lost(lost: bool) -> Callable[[], Case]:
    packets = _talk()
    return lambda: sent(packets[:4] + packets[5 if lost else 4 :])


def _sent_again(octets: bytes) -> Callable[[], Case]:
    def make() -> Case:
        talk = wire.Talk().hands()
        talk.client(HELLO)
        talk.client(bytes(4), at=talk.sent[0])
        talk.wait(NS)
        talk.client(octets, at=len(HELLO))
        return sent(talk.packets)

    return make


def _held(octets: int) -> Callable[[], Case]:
    """Bytes behind a hole, in two segments, where 100 may wait."""

    def make() -> Case:
        talk = wire.Talk().hands()
        talk.client(bytes(50), at=4)
        talk.client(bytes(octets - 50), at=54)
        return reassembled(talk.packets, TcpLimits(held_bytes=100 + 2 * HELD_SEGMENT_BYTES))

    return make


def _conversations(count: int) -> Callable[[], Case]:
    """So many conversations where ten may be open; the last packet is of the last one."""

    def make() -> Case:
        packets = []
        for number in [*range(1, 11), count]:
            packets.append(wire.Talk(ports=(number, 5672)).client(b"x"))
        return reassembled(packets, TcpLimits(conversations=10))

    return make


def _far(more: int) -> Callable[[], Case]:
    def make() -> Case:
        talk = wire.Talk().hands()
        talk.client(HELLO)
        talk.client(b"far", at=len(HELLO) + TcpLimits().impossible_ahead_bytes + more)
        return sent(talk.packets)

    return make


def _beside(protocol: int) -> Callable[[], Case]:
    """A packet of another IP protocol beside a connection."""

    def make() -> Case:
        talk = wire.Talk().hands()
        talk.client(HELLO)
        octets = bytearray(talk.client().octets)
        octets[9] = protocol
        return sent([*talk.packets, wire.Packet(bytes(octets), talk.now)])

    return make


def _doubted(flags: int, isn: int, gone_on: bool) -> Callable[[], Case]:
    """A segment of the client that TCP does not take, and whether the client goes on."""

    def make() -> Case:
        talk = wire.Talk().hands()
        talk.client(HELLO)
        client, talk.isn[0] = talk.isn[0], isn
        talk.client(flags=flags, at=0)
        talk.isn[0] = client
        if gone_on:
            talk.client(b"more")
        return sent(talk.packets)

    return make


def _began(first: int) -> Callable[[], Case]:
    return lambda: sent(_packets(OPEN)[first:])


def _greeted(first: bytes, answer: bytes = b"", *, ended: bool = True) -> Callable[[], Case]:
    """What a client says first, what the broker answers, and the end."""

    def make() -> Case:
        talk = wire.Talk().hands()
        talk.client(first)
        if answer:
            talk.server(answer)
        if ended:
            talk.client(flags=wire.RST | wire.ACK, at=8)
        return sent(talk.packets)

    return make


def _refused(flags: int) -> Callable[[], Case]:
    """A SYN, and what comes back."""
    talk = wire.Talk()
    talk.client(flags=wire.SYN)
    talk.server(flags=flags)
    return lambda: sent(talk.packets)


def _ended_before(side: int) -> Callable[[], Case]:
    """A connection that the server ends, another that a side does, and an attempt a second later
    that is refused.
    """
    packets = []
    for place, ender in enumerate((1, side)):
        talk = wire.Talk(ports=(50000 + place, 5672)).hands()
        talk.client(HELLO)
        talk.server(HELLO)
        talk.put(ender, b"", flags=wire.RST | wire.ACK)
        packets += talk.packets
    late = wire.Talk(start_ns=wire.START_NS + 1_000_000_000)
    late.client(flags=wire.SYN)
    late.server(flags=wire.RST | wire.ACK)
    return lambda: sent([*packets, *late.packets])


def _unanswered_for(milliseconds: int) -> Callable[[], Case]:
    """A SYN, and the same again."""
    talk = wire.Talk(step_ns=0)
    talk.client(flags=wire.SYN)
    talk.wait(milliseconds * wire.MILLISECOND)
    talk.client(flags=wire.SYN)
    return lambda: sent(talk.packets)


def _half(answered: bool) -> Callable[[], Case]:
    """A connection of which nothing of the broker was captured, or one packet."""
    text = "midstream\n" + PUBLISH + "\nC1: basic.ack delivery_tag=1\n"
    return edited(text + ("S1: basic.qos-ok" if answered else ""))


# files


def _file(change: Callable[[bytearray], Any] | None = None, **options: Any) -> Callable[[], Case]:
    def make() -> Case:
        octets = bytearray(file_of(_talk()))
        if change is not None:
            change(octets)
        return kept(bytes(octets), **options)

    return make


def _truncate(octets: bytearray) -> None:
    octets.pop()


def _damage(octets: bytearray) -> None:
    octets[24 + 11] = 0x7F  # the captured length of the first record


def _set_back(seconds: int) -> Callable[[bytearray], Any]:
    """The first packet is so much later than it was: the clock was set back behind it."""

    def change(octets: bytearray) -> None:
        octets[24:28] = (int.from_bytes(octets[24:28], "little") + seconds).to_bytes(4, "little")

    return change


def _disordered(step_ns: int) -> Callable[[bytearray], Any]:
    """Every other of six packets is 1 ms before the one in front of it, the last so much."""

    def change(octets: bytearray) -> None:
        at, before = 24, 0
        for place in range(6):
            seconds, rest, size, _ = struct.unpack_from("<4I", octets, at)
            now = seconds * 10**9 + rest
            if place % 2:
                back_ns = step_ns if place == 5 else 1_000_000
                struct.pack_into("<2I", octets, at, *divmod(before - back_ns, 10**9))
            before = now
            at += 16 + size

    return change


def _second_file(first: int) -> Callable[[], Case]:
    octets = file_of(_talk())
    return lambda: kept(octets, bytes([first]) + octets[1:])


def _dropped(count: int) -> Callable[[], Case]:
    octets = section() + interface("<", link=wire.IPV4_LINK)
    octets += enhanced("<", 1, _talk()[0].octets) + statistics("<", 0, (5, count))
    return lambda: kept(octets)


# limits


def _published(count: int) -> str:
    return OPEN + "".join(
        f"C1: basic.publish routing_key=k | body=5 message_id=m{n}\n" for n in range(count)
    )


def _opened_contents(count: int) -> str:
    begun = (f"C{n}: channel.open\nS{n}: channel.open-ok\n" for n in range(1, 4))
    methods = (
        _frame(1, n, "003c0028" + "0000" + "00" + "016b" + "00") for n in range(1, count + 1)
    )
    return "handshake\n" + "".join((*begun, *methods))


def _names(count: int) -> str:
    return (
        OPEN
        + "".join(
            f"C1: queue.declare queue=q{n}\nS1: queue.declare-ok queue=q{n}\n" for n in range(count)
        )
        .rstrip()
        .rpartition("\n")[0]
    )


def _places(count: int) -> str:
    """The same fault on so many channels."""
    return "handshake\n" + "".join(f"C{n}: basic.qos\n" for n in range(1, count + 1))


_FEW_PUBLISHES = Limits(memory=Memory(publishes=3))

_TABLE = [(b"a", Field("I", 7)), (b"b", Field("I", 8))]
_TEXT = "C1: basic.publish routing_key=key | body=1"

PAIRS: dict[str, Pair] = {
    # captures
    "capture-truncated": Pair(_file(_truncate), _file()),
    "capture-damaged": Pair(_file(_damage), _file()),
    "clock-set-back": Pair(_file(_set_back(1)), _file(_set_back(0))),
    "packets-out-of-order": Pair(_file(_disordered(1_000_000)), _file(_disordered(999_999))),
    "capture-unreadable": Pair(_second_file(0), _second_file(0x4D)),
    "capture-through-tshark": Pair(_file(reader="tshark"), _file(reader="own")),
    "interface-dropped": Pair(_dropped(1), _dropped(0)),
    "packets-cut": Pair(_cut(1), _cut(0)),
    "tunnel-unreadable": Pair(_beside(50), _beside(51)),
    "capture-inconclusive": Pair(_half(False), _half(True)),
    "midstream": Pair(_began(1), _began(0)),
    "delivery-tag-gap": Pair(
        OPEN + "S1: basic.deliver delivery_tag=1\nS1: basic.deliver delivery_tag=3",
        OPEN + "S1: basic.deliver delivery_tag=1\nS1: basic.deliver delivery_tag=2",
    ),
    # TCP
    "tcp-gap": Pair(_lost(True), _lost(False)),
    "tcp-overlap-conflict": Pair(_sent_again(b"\0\0\0\1"), _sent_again(bytes(4))),
    "tcp-buffer-limit": Pair(_held(101), _held(100)),
    "tcp-conversation-limit": Pair(_conversations(11), _conversations(10)),
    "tcp-impossible-sequence": Pair(_far(1), _far(0)),
    "tcp-reset-ignored": Pair(
        _doubted(wire.RST, 500_000_000, True), _doubted(wire.RST, 500_000_000, False)
    ),
    "tcp-syn-ignored": Pair(
        _doubted(wire.SYN, 500_000_000, True), _doubted(wire.SYN, 500_000_000, False)
    ),
    # limits
    "body-limit": Pair(
        edited(OPEN + PUBLISH.replace("body=5", "body=41"), bodies=True),
        edited(OPEN + PUBLISH.replace("body=5", "body=40"), bodies=True),
        bounds=(("amqpsniff.decode.contents.MAX_BODY_BYTES", 40),),
    ),
    "channel-limit": Pair(
        _opened_contents(3),
        _opened_contents(2),
        bounds=(("amqpsniff.decode.contents.MAX_OPEN_CONTENTS", 1),),
    ),
    "number-out-of-range": Pair(_content(_header(1 << 63)), _content(_header((1 << 63) - 1))),
    "session-limit": Pair(
        edited(_published(4), limits=_FEW_PUBLISHES), edited(_published(3), limits=_FEW_PUBLISHES)
    ),
    "rules-limit": Pair(
        _names(3),
        _names(2) + "\nS1: queue.declare-ok queue=q1",
        bounds=(("amqpsniff.session.rules.shared_state.MAX_NAMES", 2),),
    ),
    "findings-limit": Pair(
        _places(4), _places(3), bounds=(("amqpsniff.findings.log.MAX_PLACES", 3),)
    ),
    # TLS
    "tls-unreadable": Pair(_tls(keys=_other_name), _tls()),
    "tls-keys-wrong": Pair(_tls(keys=_other_key), _tls()),
    "tls-record-damaged": Pair(_tls(_damaged_record), _tls()),
    "tls-alert": Pair(_alert(48), _alert(0)),
    "tls-alert-encrypted": Pair(_encrypted_alert(52), _encrypted_alert(53), 2),
    "tls-ended-early": Pair(_ended_early(True), _ended_early(False)),
    "tls-handshake-unanswered": Pair(_unanswered(True), _unanswered(False)),
    "tls-outdated": Pair(
        _tls(lambda packets: _version(packets, b"\3\2")),
        _tls(lambda packets: _version(packets, b"\3\3")),
    ),
    "tls-certificate-expired": Pair(_tls(_starting(2_051_308_800)), _tls(_starting(2_051_308_799))),
    # before a connection
    "broker-stopped": Pair(_ended_before(1), _ended_before(0)),
    "connect-refused": Pair(_refused(wire.RST | wire.ACK), _refused(wire.SYN | wire.ACK)),
    "connect-unanswered": Pair(_unanswered_for(500), _unanswered_for(499)),
    "server-not-amqp": Pair(_greeted(HELLO, b"HTTP/1.1"), _greeted(HELLO, HELLO)),
    "protocol-header-unanswered": Pair(_greeted(HELLO), _greeted(HELLO, ended=False)),
    "not-amqp": Pair(_greeted(HELLO, HELLO), _greeted(HELLO, HELLO, ended=False)),
    "protocol-version-refused": Pair(_greeted(HELLO, b"AMQP\0\0\x08\0"), _greeted(HELLO, HELLO)),
    "protocol-header-unknown": Pair(_greeted(b"AMQP\0\0\x09\x07"), _greeted(HELLO)),
    "protocol-not-decoded": Pair(_greeted(b"AMQP\2\1\0\0"), _greeted(HELLO)),
    "connection-silent": Pair(_greeted(HELLO[:7]), _greeted(HELLO)),
    # frames
    "frame-end-wrong": Pair(OPEN + f"BYTES C {_ACK[:-2]}cd", OPEN + _ACKS),
    "frame-type-unknown": Pair(OPEN + _frame(11, 1, ""), OPEN + _frame(10, 1, "")),
    "frame-type-unusual": Pair(OPEN + _frame(7, 0, ""), OPEN + _frame(8, 0, "")),
    "frame-too-large": Pair(
        OPEN + _PUBLISHES + _header(131073) + _body(131073),
        OPEN + _PUBLISHES + _header(131073) + _body(131072),
    ),
    "heartbeat-malformed": Pair(OPEN + _frame(8, 1, ""), OPEN + _frame(8, 0, "")),
    "method-unknown": Pair(OPEN + _method(90, 99), OPEN + _method(90, 10)),
    # arguments
    "arguments-truncated": Pair(
        OPEN + _method(60, 80, f"{1:016x}"), OPEN + _method(60, 80, f"{1:016x}00")
    ),
    "arguments-trailing": Pair(
        OPEN + _method(60, 80, f"{1:016x}0000"), OPEN + _method(60, 80, f"{1:016x}00")
    ),
    "arguments-cut": Pair(_cut(2), _cut(1)),
    "field-tag-unknown": Pair(
        edited(_with_headers(_TABLE), (b"\1aI", b"\1aZ")), _with_headers(_TABLE)
    ),
    "field-tag-unusual": Pair(
        edited(_with_headers([(b"a", Field("s", 7))]), (b"\1as", b"\1aU")),
        _with_headers([(b"a", Field("s", 7))]),
    ),
    "field-table-malformed": Pair(
        edited(_with_headers(_TABLE), (b"\1bI", b"\2bI")), _with_headers(_TABLE)
    ),
    "field-table-too-deep": Pair(
        _with_headers([(b"a", _deep(MAX_TABLE_DEPTH))]),
        _with_headers([(b"a", _deep(MAX_TABLE_DEPTH - 1))]),
    ),
    "field-name-duplicate": Pair(
        edited(_with_headers(_TABLE), (b"\1bI", b"\1aI")), _with_headers(_TABLE)
    ),
    "text-not-utf8": Pair(edited(OPEN + _TEXT, (b"key", b"k\xffy")), OPEN + _TEXT),
    "timestamp-milliseconds": Pair(
        OPEN + PUBLISH + f"timestamp={encoder.MILLISECONDS_FROM}",
        OPEN + PUBLISH + f"timestamp={encoder.MILLISECONDS_FROM - 1}",
    ),
    # contents
    "content-unexpected-frame": Pair(
        OPEN + _header() + _body(5), OPEN + _PUBLISHES + _header() + _body(5)
    ),
    "content-interrupted": Pair(
        OPEN + _PUBLISHES + "C1: basic.qos\n" + _header() + _body(5),
        OPEN + _PUBLISHES + "C2: channel.open\n" + _header() + _body(5),
    ),
    "content-body-longer": Pair(_content(body=_body(6)), _content(body=_body(5))),
    "content-body-shorter": Pair(
        _content(body=_body(4)) + "C1: basic.qos", _content(body=_body(5)) + "C1: basic.qos"
    ),
    "content-class-wrong": Pair(_content(_header(class_id=50)), _content()),
    "content-weight": Pair(_content(_header(weight=1)), _content()),
    "properties-malformed": Pair(_content(_header(rest="000000")), _content()),
    "property-flags-undefined": Pair(_content(_header(rest="0002")), _content()),
}
"""By code: bytes, packets and files."""
