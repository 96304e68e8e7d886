"""Traffic that is not AMQP gives no rows, on whatever port it is."""

from pathlib import Path

import pytest

from tests.conftest import SHARED
from tests.decode.feeding import Feeder, Talk, run_file

NEGATIVE = SHARED / "captures" / "public" / "negative"


@pytest.mark.parametrize("path", sorted(NEGATIVE.glob("*")), ids=lambda path: path.name)
def test_captures(path: Path) -> None:
    done = run_file(path)
    assert done.count == 0
    assert done.messages() == []
    assert done.errors == []


OCTETS = {
    "http": b"GET /api/overview HTTP/1.1\r\nHost: broker\r\n\r\n" * 50,
    "stomp": b"CONNECT\naccept-version:1.2\nhost:/\n\n\0\n" * 50,
    "zeros": bytes(5000),
    "ends": b"\xce" * 5000,
    "ones": b"\x01" * 5000,
    "text": b"The protocol is AMQP. " * 200,
    "counting": bytes(range(256)) * 20,
}


@pytest.mark.parametrize("name", OCTETS)
@pytest.mark.parametrize("syn_seen", [True, False])
@pytest.mark.parametrize("direction", [0, 1])
def test_octets(name: str, syn_seen: bool, direction: int) -> None:
    """Neither at the begin of a conversation nor in its middle, on a port of no AMQP server."""
    talk = Talk(syn_seen, b="10.0.0.2:9999", ports=(40000, 9999))
    done = Feeder(talk).data(direction, OCTETS[name]).finish()
    assert done.count == 0
    assert done.messages() == []
    assert done.errors == []
