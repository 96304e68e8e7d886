"""Cases of TLS: what shows a finding of it, and what nearly does."""

from __future__ import annotations

import contextlib
import ssl
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

from tests.findings.cases import NS, Case, file_of, kept, sent
from tests.tcp import wire

_CHOSEN = ("1.2", "AES128-GCM-SHA256")


@cache
def _encrypted(*chosen: str) -> tuple[list[wire.Packet], bytes]:
    """Packets of a TLS conversation, and its key log."""
    from tests.tls import talk as tls

    with tempfile.TemporaryDirectory() as folder:
        keylog = Path(folder) / "keys"
        talk = wire.Talk(ports=(40000, 5671)).hands()
        channel = tls.Channel(tls.Ends(*(chosen or _CHOSEN), keylog), talk).handshake()
        for side, octets in tls.conversation()[:8]:
            channel.send(side, octets)
        channel.close()
        return talk.goodbye().packets, keylog.read_bytes()


def _opened(packets: list[wire.Packet], keys: bytes = b"") -> Case:
    """A file of packets, read with the lines of a key log."""

    def codes() -> set[str]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "keys"
            path.write_bytes(keys)
            return kept(file_of(packets), tls_keylog=path).codes()

    return Case([*sent(packets).steps, *keys], codes)


def _tls(
    change: Callable[[list[wire.Packet]], list[wire.Packet]] | None = None,
    keys: Callable[[bytes], bytes] = bytes,
) -> Callable[[], Case]:
    def make() -> Case:
        packets, log = _encrypted()
        return _opened(change(list(packets)) if change else packets, keys(log))

    return make


def _flip(octets: bytes, place: int) -> bytes:
    changed = bytearray(octets)
    changed[place] ^= 1
    return bytes(changed)


def _other_key(keys: bytes) -> bytes:
    """A key log whose last secret ends in another digit."""
    return keys[:-2] + (b"0" if keys[-2:-1] != b"0" else b"1") + keys[-1:]


def _other_name(keys: bytes) -> bytes:
    """A key log whose lines are of another conversation, by a digit of its random number."""
    place = keys.index(b"CLIENT_RANDOM ") + len(b"CLIENT_RANDOM ")
    return keys[:place] + (b"0" if keys[place : place + 1] != b"0" else b"1") + keys[place + 1 :]


def _damaged_record(packets: list[wire.Packet]) -> list[wire.Packet]:
    """The last packet but some with bytes of the client, with its last byte another."""
    place = [n for n, one in enumerate(packets) if len(one.octets) > 140][-2]
    packets[place] = packets[place]._replace(octets=_flip(packets[place].octets, -1))
    return packets


def _version(packets: list[wire.Packet], version: bytes) -> list[wire.Packet]:
    """The broker's first message with another version: it is 11 bytes after the headers."""
    place = next(n for n, one in enumerate(packets[3:], 3) if one.octets[20:22] == b"\x16\x27"
                 and len(one.octets) > 60)  # fmt: skip
    octets = packets[place].octets
    octets = octets[:49] + version + octets[51:]
    packets[place] = packets[place]._replace(octets=octets)
    return packets


def _starting(seconds: int) -> Callable[[list[wire.Packet]], list[wire.Packet]]:
    """The same at another time; the certificate's last day is 2035-01-01."""

    def move(packets: list[wire.Packet]) -> list[wire.Packet]:
        late = seconds * NS - packets[0].ts_ns
        return [one._replace(ts_ns=one.ts_ns + late) for one in packets]

    return move


@cache
def _distrusted() -> list[wire.Packet]:
    """A client that ends the handshake because it does not know the certificate."""
    from tests.tls import talk as tls

    ends = tls.Ends(*_CHOSEN, None)
    ends.client.verify_mode = ssl.CERT_REQUIRED
    talk = wire.Talk(ports=(40000, 5671)).hands()
    channel = tls.Channel(ends, talk)
    try:
        channel.handshake()
    except ssl.SSLError:
        channel.deliver(0)
    return talk.goodbye().packets


@cache
def _refused_flight() -> list[tuple[int, bytes]]:
    """What both sides of a handshake in TLS 1.3 send until the client refuses the certificate."""
    from tests.tls import talk as tls

    ends = tls.Ends("1.3", None, None)
    ends.client.verify_mode = ssl.CERT_REQUIRED
    talk = wire.Talk(ports=(40000, 5671)).hands()
    with contextlib.suppress(ssl.SSLError):
        tls.Channel(ends, talk).handshake()
    return [(int(one.octets[12:16] != b"\x0a\0\0\1"), one.octets[40:])
            for one in talk.packets if len(one.octets) > 40]  # fmt: skip


def _encrypted_alert(size: int) -> Callable[[], Case]:
    """The client's only encrypted record has this size."""

    def make() -> Case:
        talk = wire.Talk(ports=(40000, 5671)).hands()
        for side, octets in _refused_flight():
            talk.put(side, octets)
        talk.client(b"\x17\3\3\0" + bytes([size]) + bytes(size))
        talk.client(flags=wire.RST | wire.ACK)
        return _opened(talk.packets)

    return make


def _ended_early(by_client: bool) -> Callable[[], Case]:
    """A side ends TCP after the server's messages of the handshake."""

    def make() -> Case:
        talk = wire.Talk(ports=(40000, 5671)).hands()
        for side, octets in _refused_flight():
            talk.put(side, octets)
        (talk.client if by_client else talk.server)(flags=wire.RST | wire.ACK)
        return _opened(talk.packets)

    return make


def _alert(description: int) -> Callable[[], Case]:
    """The alert that ends the handshake says this."""

    def make() -> Case:
        packets = list(_distrusted())
        place = next(n for n, one in enumerate(packets) if one.octets[40:41] == b"\x15")
        octets = packets[place].octets
        packets[place] = packets[place]._replace(octets=octets[:46] + bytes([description]))
        return _opened(packets)

    return make


def _unanswered(ends: bool) -> Callable[[], Case]:
    def make() -> Case:
        hello = _encrypted()[0][3].octets[40:]
        talk = wire.Talk(ports=(40000, 5671)).hands()
        talk.client(hello)
        if ends:
            talk.client(flags=wire.RST | wire.ACK)
        return _opened(talk.packets)

    return make
