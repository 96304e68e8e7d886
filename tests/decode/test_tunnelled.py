"""What a client says to a SOCKS or HTTP proxy first is skipped; rows are those of AMQP alone."""

from __future__ import annotations

import pytest

from amqpsniff.decode.preamble import (
    MAX_REQUEST_BYTES,
    preamble_bytes,
    request_bytes,
    safe_request,
)
from amqpsniff.sanitize.frames import safe_proxy_header
from tests.conftest import SAMPLES
from tests.decode.feeding import CLIENT, SERVER, Feeder, Row, Talk, streams_of

REQUESTS = {
    "socks 4": (b"\4\1\x16\x28\x0a\0\0\7user\0", b"\0\x5a" + bytes(6)),
    "socks 4a": (b"\4\1\x16\x28\0\0\0\7\0secret.host\0", b"\0\x5a" + bytes(6)),
    "socks 5": (b"\5\1\0\5\1\0\3\x0bsecret.host\x16\x28", b"\5\0\5\0\0\1" + bytes(6)),
    "socks 5 ipv4": (b"\5\3\0\1\2\5\1\0\1\x0a\0\0\7\x16\x28", b"\5\0\5\0\0\1" + bytes(6)),
    "socks 5 ipv6": (b"\5\1\0\5\1\0\4" + bytes(16) + b"\x16\x28", b"\5\0\5\0\0\1" + bytes(6)),
    "socks 5 password": (
        b"\5\2\0\2\1\x06secret\x07secret!\5\1\0\1\x0a\0\0\7\x16\x28",
        b"\5\2\1\0\5\0\0\1" + bytes(6),
    ),
    "http": (
        b"CONNECT secret.host:5672 HTTP/1.1\r\nProxy-Authorization: Basic secret=\r\n\r\n",
        b"HTTP/1.1 200 Connection established\r\n\r\n",
    ),
}


def rows(pieces: list[tuple[int, bytes]]) -> tuple[list[Row], list[str]]:
    """Frames by what they are, and errors."""
    feeder = Feeder(Talk(ports=(40000, 1080)))
    for direction, octets in pieces:
        feeder.data(direction, octets)
    done = feeder.finish()
    errors = [finding.code for finding in done.errors]
    return done.frames(), errors


@pytest.mark.parametrize("step", [1, 7, 10_000])
@pytest.mark.parametrize("name", REQUESTS)
def test_rows_are_those_of_amqp_alone(name: str, step: int) -> None:
    asked, answered = REQUESTS[name]
    client, server = (stream.octets[:3000] for stream in streams_of(SAMPLES / "bunny.pcapng")[:2])
    whole, errors = rows([(CLIENT, client), (SERVER, server)])
    said = asked + client
    pieces = [(CLIENT, said[at : at + step]) for at in range(0, len(said), step)]
    pieces += [(SERVER, answered), (SERVER, server)]
    frames, found = rows(pieces)
    moved = {"client": len(asked), "server": len(answered)}
    assert len(frames) == len(whole) > 20
    assert {row["sender"] for row in frames} == {"client", "server"}
    key = "stream_offset"
    expected = [row | {key: row[key] + moved[row["sender"]]} for row in whole]
    order = ("sender", key)
    assert sorted(frames, key=lambda row: [row[one] for one in order]) == sorted(
        expected, key=lambda row: [row[one] for one in order]
    )
    assert found == errors


@pytest.mark.parametrize("name", REQUESTS)
def test_lengths(name: str) -> None:
    """Bytes that begin one ask for more until there are enough, and what follows is not of it."""
    octets, _ = REQUESTS[name]
    for cut in range(1, len(octets)):
        assert cut < request_bytes(octets[:cut]) <= len(octets)
    assert request_bytes(octets) == request_bytes(octets + b"AMQP\0\0\x09\1") == len(octets)


@pytest.mark.parametrize("name", REQUESTS)
def test_nothing_of_it_leaves_a_sanitized_capture(name: str) -> None:
    octets, _ = REQUESTS[name]
    safe = safe_proxy_header(octets)
    assert safe == safe_request(octets)
    assert len(safe) == len(octets) == request_bytes(safe)
    assert b"secret" not in safe
    assert b"user" not in safe
    assert b"\x0a\0\0\7" not in safe


@pytest.mark.parametrize(
    "octets",
    [
        b"\5\0\5\1\0\1aaaabb",
        b"\5\1\0\6\1\0\1aaaabb",
        b"\5\1\0\5\2\0\1aaaabb",
        b"\5\1\0\5\1\0\2aaaabb",
        b"\4\2\x16\x28\x0a\0\0\7\0",
        b"\4\1\x16\x28\x0a\0\0\7" + b"u" * 300,
        b"CONNECT\nlogin:guest\n\n\0",
        b"CONNECT " + b"a" * MAX_REQUEST_BYTES,
        b"GET / HTTP/1.1\r\n\r\n",
        b"AMQP\0\0\x09\1",
    ],
)
def test_what_is_none(octets: bytes) -> None:
    assert request_bytes(octets) == 0
    _, errors = rows([(CLIENT, octets), (SERVER, streams_of(SAMPLES / "bunny.pcapng")[1].octets)])
    assert ("not-amqp" in errors) == (octets[:4] != b"AMQP")


@pytest.mark.parametrize("octets", [b"CONNECT a:5672 HTTP/1.1\r\nX: ", b"\4\1\x16\x28\x0a\0\0\7"])
def test_what_is_long_is_looked_at_once(octets: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its end is searched for in all bytes that are there, not in one more each time."""
    asked = []

    def counted(octets: bytes, opened: bool) -> int:
        asked.append(octets)
        return preamble_bytes(octets, opened)

    monkeypatch.setattr("amqpsniff.decode.framer.preamble_bytes", counted)
    Feeder(Talk()).data(CLIENT, octets + b"a" * 200).finish()
    assert len(asked) == 1


def test_only_at_the_begin_of_a_connection() -> None:
    """In mid-stream bytes that look like a request are bytes like any other."""
    asked, _ = REQUESTS["socks 5"]
    client = streams_of(SAMPLES / "bunny.pcapng")[0].octets[8:]
    done = Feeder(Talk(False)).data(CLIENT, asked[:-2] + b"\0\0" + client).finish()
    assert done.count > 5
