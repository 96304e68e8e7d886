# TLS conversations with any packets changed, dropped, cut or put in between raise nothing; events
# of a half-stream follow each other, name bytes that are there, and do not depend on batches.
"""Fuzz TLS: `python -m tests.fuzz.fuzz_tls [CORPUS…]` (atheris).

An input is a list of small instructions for the packets of a conversation over TLS 1.2 or 1.3 whose
keys are known, with raw bytes between them. Coverage guides it only through uncompiled modules.
"""

from functools import cache

from amqpsniff.capture import read
from amqpsniff.decode.preamble import header_bytes
from amqpsniff.tcp import Reassembler
from amqpsniff.tls import Secrets, TlsStage
from amqpsniff.tls.secrets import KEY_LOG
from tests.conftest import REPO, SAMPLES
from tests.fuzz.guided import fuzz
from tests.tcp.wire import Packet, batch

CONVERSATIONS = (
    (SAMPLES / "tls13.pcap", SAMPLES / "tls13.keys"),
    (REPO / "tests/captures/tls12.pcap", REPO / "tests/captures/tls12.keys"),
    (REPO / "tests/captures/tls12_cbc.pcap", REPO / "tests/captures/tls12_cbc.keys"),
)
MAX_PACKETS = 70
HEADERS = 14 + 20 + 32
"""Bytes of a packet before its payload."""


@cache
def packets(which: int) -> list[Packet]:
    """The first packets of a conversation."""
    found = []
    for rows in read([CONVERSATIONS[which][0]]):
        for row in range(rows.begin, rows.end):
            found.append(Packet(rows.packet(row), rows.ts_ns[row], None, rows.link_type[row]))
    return found[:MAX_PACKETS]


def changed(data: bytes) -> list[Packet]:
    """The packets of a conversation, changed as the instructions say."""
    found: list[Packet | None] = list(packets(data[0] % len(CONVERSATIONS)))
    at = 1
    while at + 4 <= len(data):
        what, which, place, value = data[at : at + 4]
        at += 4
        index = which % len(found)
        packet = found[index]
        if packet is None:
            continue
        octets = bytearray(packet.octets)
        if what & 3 == 0:
            found[index] = None
        elif what & 3 == 1:
            found[index] = packet.cut(HEADERS + place)
        elif what & 3 == 2 and len(octets) > HEADERS:
            octets[HEADERS + place % (len(octets) - HEADERS)] = value
            found[index] = packet._replace(octets=bytes(octets))
        else:
            octets[HEADERS : HEADERS + value] = data[at : at + value]
            at += value
            found[index] = packet._replace(octets=bytes(octets))
    return [one for one in found if one is not None]


def events(some: list[Packet], keys: bytes, size: int) -> list[tuple[object, ...]]:
    """What comes of packets, `size` a batch; bytes that follow each other are one."""
    secrets = Secrets()
    secrets.add(KEY_LOG, keys)
    stage, reassembler = TlsStage(secrets, header_bytes), Reassembler()
    ends: dict[tuple[str, int], int] = {}
    told: dict[tuple[str, int], list[object]] = {}
    batches = [batch(some[at : at + size], at + 1) for at in range(0, len(some), size)]
    for one in (*batches, None):
        if one is not None:
            output = stage.feed(reassembler.feed(one))
        else:
            output = stage.finish(reassembler.finish())
        for kind, talk, direction, offset, _, payload in output.events():
            if kind not in ("data", "gap"):
                continue
            key = (talk.connection_id, direction)
            length = len(payload) if isinstance(payload, bytes) else payload
            assert ends.get(key, offset) == offset
            assert length > 0
            ends[key] = offset + length
            told.setdefault(key, []).append(payload)
    joined = []
    for key, parts in sorted(told.items()):
        octets = b"".join(
            part if isinstance(part, bytes) else b"<%d>" % part  # type: ignore[str-bytes-safe]
            for part in parts
        )
        joined.append((*key, octets))
    return joined


def one_input(data: bytes) -> None:
    """The invariant holds for these instructions."""
    if not data:
        return
    keys = CONVERSATIONS[data[0] % len(CONVERSATIONS)][1].read_bytes()
    some = changed(data)
    if some:
        assert events(some, keys, 10**6) == events(some, keys, 7)


if __name__ == "__main__":
    fuzz(one_input)
