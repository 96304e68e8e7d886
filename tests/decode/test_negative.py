"""Traffic that is not AMQP gives no rows, on whatever port it is."""

import struct
from pathlib import Path

import pytest

from tests.conftest import SHARED
from tests.decode.feeding import Feeder, Talk, run_file
from tests.decode.script import method
from tests.decode.strangers import conversation
from tests.thorough import rounds

NEGATIVE = SHARED / "captures" / "public" / "negative"


@pytest.mark.parametrize("path", sorted(NEGATIVE.glob("*")), ids=lambda path: path.name)
def test_captures(path: Path) -> None:
    done = run_file(path)
    assert done.count == 0
    assert done.messages() == []
    assert done.errors == []


BYTES = {
    "http": b"GET /api/overview HTTP/1.1\r\nHost: broker\r\n\r\n" * 50,
    "stomp": b"CONNECT\naccept-version:1.2\nhost:/\n\n\0\n" * 50,
    "zeros": bytes(5000),
    "ends": b"\xce" * 5000,
    "ones": b"\x01" * 5000,
    "text": b"The protocol is AMQP. " * 200,
    "counting": bytes(range(256)) * 20,
}


@pytest.mark.parametrize("name", BYTES)
@pytest.mark.parametrize("syn_seen", [True, False])
@pytest.mark.parametrize("direction", [0, 1])
def test_bytes(name: str, syn_seen: bool, direction: int) -> None:
    """Neither at the begin of a conversation nor in its middle, on a port of no AMQP server."""
    talk = Talk(syn_seen, b="10.0.0.2:9999", ports=(40000, 9999))
    done = Feeder(talk).data(direction, BYTES[name]).finish()
    assert done.count == 0
    assert done.messages() == []
    assert done.errors == []


@pytest.mark.parametrize(("holes", "missing"), [(1, 60_000), (8, 500)])
@pytest.mark.parametrize("syn_seen", [True, False])
def test_other_protocols_with_holes(syn_seen: bool, holes: int, missing: int) -> None:
    """What a hole cut off of a record that looks like a frame proves nothing."""
    for seed in range(rounds(150)):
        feeder = Feeder(Talk(syn_seen))
        for direction, piece in conversation(seed, holes, missing):
            if isinstance(piece, int):
                feeder.gap(direction, piece)
            else:
                feeder.data(direction, piece)
        done = feeder.finish()
        ended, foreign, _ = feeder.decoder.take_ended()
        assert (ended, foreign, done.count, done.codes) == ([], 1, 0, []), seed


def test_packets_that_are_all_cut_are_amqp() -> None:
    """Methods of which only the beginning was captured, one a packet, from the third on."""
    feeder = Feeder(Talk(False))
    octets = method("basic.publish", 1, exchange=b"e" * 40, routing_key=b"k" * 40)
    for _ in range(6):
        feeder.data(0, octets[:14]).gap(0, len(octets) - 14)
    assert [row["method"] for row in feeder.finish().frames()] == ["basic.publish"] * 4


OPEN_1_0 = struct.pack(">IBBH", 19, 2, 0, 0) + b"\0\x53\x10\xc0\x06\x03\xa1\x01c@@"
FLOW_1_0 = struct.pack(">IBBH", 12, 2, 0, 1) + b"\0\x53\x13\x45"
TRANSFER_1_0 = struct.pack(">IBBH", 20, 2, 0, 1) + b"\0\x53\x14\xc0\x04\x03\x43\x43\x40abc"


@pytest.mark.parametrize("frame", [OPEN_1_0, FLOW_1_0, TRANSFER_1_0])
@pytest.mark.parametrize("direction", [0, 1])
def test_amqp_1_0_whose_header_is_missing(frame: bytes, direction: int) -> None:
    """Decoded like one whose header was captured; another size, and it is nobody's."""
    for begun in (True, False):
        feeder = Feeder(Talk(begun)).gap(direction, 8).data(direction, frame * 3)
        feeder.gap(1 - direction, 900).data(1 - direction, bytes(40))
        done = feeder.finish()
        assert done.count == 3
        ((peer, _),) = feeder.decoder.take_ended()[0]
        assert peer.dialect_name == "1.0"
    wrong = frame[:3] + bytes([frame[3] - 5 if frame is TRANSFER_1_0 else frame[3] + 1]) + frame[4:]
    feeder = Feeder().gap(direction, 8).data(direction, wrong * 3)
    assert feeder.finish().findings == []
