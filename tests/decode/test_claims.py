"""Claims say what every byte is that was understood, and lie where it is in its stream."""

from __future__ import annotations

from collections import defaultdict

import pytest

from amqpsniff.capture import open_capture
from amqpsniff.decode import claims
from amqpsniff.decode.claims import Claim
from amqpsniff.decode.decoder import Decoder
from amqpsniff.findings import FindingLog
from amqpsniff.options import Options
from amqpsniff.pipeline import Pipeline
from amqpsniff.plan import Plan
from amqpsniff.spec import METHODS
from tests import encoder
from tests.conftest import SAMPLES
from tests.decode.feeding import Talk, streams_of

WHOLE = ["aiopika_rpc.pcap", "blocked.pcap", "bunny.pcapng", "kombu.pcap.gz", "node.pcap",
         "php_churn.pcap", "pika_mix.pcap"]  # fmt: skip
HEADER_BYTES = 7


def claims_of(name: str) -> list[Claim]:
    """All claims about a sample."""
    pipeline = Pipeline(None, Plan((), claims=True))
    found = []
    with open_capture(SAMPLES / name) as capture:
        for batch in capture:
            pipeline.feed(batch)
            found += pipeline.decoder.take_claims()
    pipeline.finish()
    return [*found, *pipeline.decoder.take_claims()]


@pytest.mark.parametrize("name", WHOLE)
def test_every_byte_of_a_whole_stream(name: str) -> None:
    """Claims and bodies follow each other from the first byte to the last."""
    by_stream: dict[tuple[int, int], list[Claim]] = defaultdict(list)
    for claim in claims_of(name):
        by_stream[claim.conversation, claim.direction].append(claim)
    streams = streams_of(SAMPLES / name)
    spoken = [stream for stream in streams if stream.octets]
    assert len(spoken) == len(by_stream)
    for stream, key in zip(spoken, sorted(by_stream), strict=True):
        at = 0
        for claim in by_stream[key]:
            assert claim.offset == at
            at = claim.offset + len(_bytes(claim, stream.octets))
        assert at == len(stream.octets)


def _bytes(claim: Claim, stream: bytes) -> bytes:
    """The bytes of a claim, compared with those of its stream."""
    if claim.kind == claims.END:
        octets = b"\xce"
    elif claim.kind >= claims.PROTOCOL_HEADER:
        octets = claim.payload
    else:
        octets = encoder.frame(claim.kind, claim.channel, claim.payload)[:HEADER_BYTES]
        octets = octets[:3] + claim.size.to_bytes(4, "big")
        begin = claim.offset + HEADER_BYTES
        body = stream[begin : begin + claim.size]
        octets += body if claim.kind == claims.BODY else claim.payload
    assert stream[claim.offset : claim.offset + len(octets)] == octets
    return octets


def decoded(*octets: bytes, midstream: bool = False) -> list[Claim]:
    """Claims about what a client sends, in these pieces; None for a hole of ten bytes."""
    decoder = Decoder(FindingLog(), Plan(claims=True), Options())
    decoder.open(0, Talk(syn_seen=not midstream, serial=5))
    for piece in octets:
        decoder.data(0, 0, piece)
    decoder.close(0)
    found: list[Claim] = decoder.take_claims()
    assert all((each.conversation, each.direction) == (5, 0) for each in found)
    return found


OPENING = encoder.PROTOCOL_HEADERS["0-9-1"]
HEARTBEAT = encoder.frame(8, 0, b"")


def kinds(found: list[Claim]) -> list[tuple[int, int]]:
    return [(claim.kind, claim.offset) for claim in found]


def test_a_frame_in_pieces() -> None:
    octets = OPENING + encoder.frame(3, 1, b"body") + HEARTBEAT
    whole = decoded(octets)
    assert kinds(whole) == [
        (claims.PROTOCOL_HEADER, 0), (claims.BODY, 8), (claims.END, 19), (claims.HEARTBEAT, 20),
        (claims.END, 27),
    ]  # fmt: skip
    assert decoded(*(octets[at : at + 1] for at in range(len(octets)))) == whole


def test_a_wrong_end_is_not_claimed() -> None:
    octets = OPENING + encoder.frame(8, 0, b"", end=0) + HEARTBEAT * 4
    assert (claims.END, 15) not in kinds(decoded(octets))


def test_what_is_behind_the_last_frame() -> None:
    (_, _, _, rest) = decoded(OPENING + HEARTBEAT + encoder.frame(1, 1, b"never whole")[:12])
    assert (rest.kind, rest.offset, rest.payload) == (
        claims.UNFINISHED, 16, encoder.frame(1, 1, b"never whole")[:12],
    )  # fmt: skip


def test_a_proxy() -> None:
    header = b"PROXY TCP4 192.0.2.1 192.0.2.2 40000 5672\r\n"
    found = decoded(header + OPENING)
    assert kinds(found) == [(claims.PROXY, 0), (claims.PROTOCOL_HEADER, len(header))]
    assert found[0].payload == header


def test_what_is_not_understood_is_not_claimed() -> None:
    assert decoded(b"GET / HTTP/1.1\r\n\r\n") == []
    found = decoded(b"the rest of a body" * 3 + b"\xce" + HEARTBEAT * 6, midstream=True)
    assert min(claim.offset for claim in found) >= 54


@pytest.mark.parametrize("exact", [True, False])
def test_methods(exact: bool) -> None:
    (ack,) = (m for m in METHODS if m.name == "basic.ack" and "0-9-1" in m.dialects)
    payload = encoder.method_payload(ack, {"delivery_tag": 5, "multiple": False})
    payload += b"" if exact else b"more"
    found = decoded(OPENING + encoder.frame(1, 3, payload))
    assert found[1] == Claim(5, 0, claims.METHOD, 8, 3, len(payload), payload, ack.index, exact)
    unknown = decoded(OPENING + encoder.frame(1, 3, b"\0\x63\0\x0a"))[1]
    assert (unknown.method, unknown.exact) == (-1, False)


def test_nobody_asked() -> None:
    decoder = Decoder(FindingLog(), Plan(), Options())
    assert decoder.take_claims() is decoder.take_claims() is None
