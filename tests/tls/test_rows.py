"""TLS taken off: the rows are those of the same bytes in clear."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from tests.tcp.wire import Talk
from tests.tls import talk as tls

pytest.importorskip("cryptography")

TABLES = ("frames", "messages", "connections", "channels")

SUITES = (
    ("1.3", None),
    ("1.2", "ECDHE-RSA-AES128-GCM-SHA256"),
    ("1.2", "ECDHE-RSA-AES256-GCM-SHA384"),
    ("1.2", "ECDHE-RSA-CHACHA20-POLY1305"),
    ("1.2", "ECDHE-RSA-AES256-SHA384"),
    ("1.2", "ECDHE-RSA-AES128-SHA256"),
    ("1.2", "AES128-SHA"),
    ("1.2", "AES256-SHA256"),
    ("1.2", "AES128-CCM"),
    ("1.2", "AES256-CCM8"),
    ("1.2", "AES128-GCM-SHA256"),
    ("1.1", "AES256-SHA"),
    ("1.0", "AES128-SHA"),
    ("1.2", "CAMELLIA128-SHA"),
    ("1.2", "ECDHE-RSA-CAMELLIA256-SHA384"),
    ("1.2", "NULL-SHA256"),
)


def spoken(
    version: str, ciphers: str | None, keylog: Path | None, **more: int
) -> tuple[Talk, Talk]:
    """A conversation through TLS and in clear."""
    ports = (40000, 5671)
    secret = Talk(ports=ports).hands()
    channel = tls.Channel(tls.Ends(version, ciphers, keylog), secret, **more).handshake()
    said = tls.conversation()
    for side, octets in said:
        channel.send(side, octets)
    channel.close()
    return secret.goodbye(), tls.in_clear(Talk(ports=ports).hands(), said).goodbye()


def same(encrypted: Path, clear: Path, **options: object) -> None:
    """Both captures give the same rows."""
    ours = tls.rows(encrypted, *TABLES, **options)
    theirs = tls.rows(clear, *TABLES)
    assert ours["frames"]
    for table in TABLES:
        assert ours[table] == theirs[table], table


@pytest.mark.parametrize(("version", "ciphers"), SUITES)
def test_rows_are_those_in_clear(version: str, ciphers: str | None, tmp_path: Path) -> None:
    keylog = tmp_path / "keys.txt"
    secret, clear = spoken(version, ciphers, keylog)
    paths = [
        tls.write(tmp_path / f"{at}.pcap", one.packets) for at, one in enumerate((secret, clear))
    ]
    same(*paths, tls_keylog=keylog)


@pytest.mark.parametrize("segment", [1, 7, 100, 60000])
def test_records_in_any_segments(segment: int, tmp_path: Path) -> None:
    keylog = tmp_path / "keys.txt"
    secret, clear = spoken("1.3", None, keylog, segment=segment)
    paths = [
        tls.write(tmp_path / f"{at}.pcap", one.packets) for at, one in enumerate((secret, clear))
    ]
    same(*paths, tls_keylog=keylog)


class Pieces(tls.Channel):
    """A channel on whose wire handshake messages in clear are cut into records of `size` bytes."""

    size = 1
    sealed = False, False

    def deliver(self, side: int) -> None:
        octets = self.outgoing[side].read()
        self.incoming[1 - side].write(octets)
        messages, at = b"", 0
        while octets[at : at + 1] == b"\x16" and not self.sealed[side]:
            end = at + 5 + int.from_bytes(octets[at + 3 : at + 5], "big")
            messages += octets[at + 5 : end]
            at = end
        if octets[at:]:  # a change of the cipher: what follows is encrypted
            self.sealed = (True, self.sealed[1]) if side == 0 else (self.sealed[0], True)
        cut = (messages[at : at + self.size] for at in range(0, len(messages), self.size))
        records = (struct.pack(">BHH", 22, 0x303, len(one)) + one for one in cut)
        self.talk.put(side, b"".join(records) + octets[at:])


@pytest.mark.parametrize("size", [1, 5, 300])
@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_messages_in_any_records(version: str, size: int, tmp_path: Path) -> None:
    keylog = tmp_path / "keys.txt"
    secret = Talk(ports=(40000, 5671)).hands()
    channel = Pieces(tls.Ends(version, None, keylog), secret)
    channel.size = size
    said = tls.conversation()
    channel.handshake()
    for side, octets in said:
        channel.send(side, octets)
    channel.close()
    clear = tls.in_clear(Talk(ports=(40000, 5671)).hands(), said)
    paths = [
        tls.write(tmp_path / f"{at}.pcap", one.goodbye().packets)
        for at, one in enumerate((secret, clear))
    ]
    same(*paths, tls_keylog=keylog)
    assert len(secret.packets[3].octets) > 5 * (200 // size)  # the client's first message
