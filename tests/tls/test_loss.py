"""Lost packets, snap lengths, captures that begin late: what can be read is, in its place."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path

import pytest

import amqpsniff
from tests.tcp.wire import Packet, Talk
from tests.tls import talk as tls

pytest.importorskip("cryptography")

Key = tuple[str, int, str, str | None, str | None]

SUITES = (("1.3", None), ("1.2", "AES128-GCM-SHA256"), ("1.2", "ECDHE-RSA-CHACHA20-POLY1305"))
CBC = (("1.2", "AES128-SHA"), ("1.2", "ECDHE-RSA-AES256-SHA384"))


def frames(path: Path, **options: object) -> dict[Key, int]:
    """Frames by what does not depend on when they were captured → packet number."""
    rows = amqpsniff.open(path, **options).table("frames").to_pylist()  # type: ignore[arg-type]
    return {
        (row["sender"], row["stream_offset"], row["frame_type"], row["method"], row["arguments"]):
        row["packet_number"]
        for row in rows
    }  # fmt: skip


def encrypted(version: str, ciphers: str | None, keylog: Path, segment: int = 1400) -> list[Packet]:
    """Packets of a conversation, its handshake first."""
    talk = Talk(ports=(40000, 5671)).hands()
    channel = tls.Channel(tls.Ends(version, ciphers, keylog), talk, segment=segment).handshake()
    for side, octets in tls.conversation():
        channel.send(side, octets)
    channel.close()
    return talk.goodbye().packets


@pytest.mark.parametrize(("version", "ciphers"), [*SUITES, *CBC])
def test_what_follows_a_hole_is_read(version: str, ciphers: str | None, tmp_path: Path) -> None:
    keylog = tmp_path / "keys"
    packets = encrypted(version, ciphers, keylog)
    whole = frames(tls.write(tmp_path / "whole.pcap", packets), tls_keylog=keylog)
    for lost in (range(30, 31), range(60, 63), range(100, 104), range(41, 60)):
        kept = [one for at, one in enumerate(packets) if at not in lost]
        path = tls.write(tmp_path / "holes.pcap", kept)
        found = frames(path, tls_keylog=keylog)
        missing = len(whole) - len(found)
        assert missing <= 4 * len(lost) + 4
        if (version, ciphers) in SUITES:  # lengths of plaintext follow from those of ciphertext
            assert found.keys() <= whole.keys()
        assert max(found.values()) == max(whole.values()) - len(lost)


@pytest.mark.parametrize(("version", "ciphers"), SUITES)
def test_snap_length(version: str, ciphers: str | None, tmp_path: Path) -> None:
    """Bytes of a record that were captured are read although its check was cut off."""
    keylog = tmp_path / "keys"
    packets = encrypted(version, ciphers, keylog)
    whole = frames(tls.write(tmp_path / "whole.pcap", packets), tls_keylog=keylog)
    cut = [one.cut(300) if len(one.octets) > 300 else one for one in packets]
    found = frames(tls.write(tmp_path / "cut.pcap", cut), tls_keylog=keylog)
    assert len(found) >= len(whole) - 3
    methods = [Counter(key[3] for key in some) for some in (whole, found)]
    assert sum((methods[0] - methods[1]).values()) <= 3
    if (
        version != "1.3"
    ):  # of the handshake so much is missing that the stream's offsets are not known
        bodies = [key for key in whole if key[2] == "body"]
        assert set(bodies) <= found.keys()


def test_lost_server_hello(tmp_path: Path) -> None:
    """Without it nothing opens, and the reason is said."""
    keylog = tmp_path / "keys"
    packets = [one for at, one in enumerate(encrypted("1.3", None, keylog)) if at not in (4, 5)]
    capture = amqpsniff.open(tls.write(tmp_path / "x.pcap", packets), tls_keylog=keylog)
    findings = capture.table("findings").to_pylist()
    (row,) = (row for row in findings if row["code"] == "tls-unreadable")
    assert "missing from the capture" in row["detail"]


def test_capture_that_begins_late(tmp_path: Path) -> None:
    keylog = tmp_path / "keys"
    packets = encrypted("1.2", "AES128-GCM-SHA256", keylog)[60:]
    capture = amqpsniff.open(tls.write(tmp_path / "x.pcap", packets), tls_keylog=keylog)
    findings = capture.table("findings").to_pylist()
    (row,) = (row for row in findings if row["code"] == "tls-unreadable")
    assert "its handshake is not in the capture" in row["detail"]


def test_records_astray_do_not_nest(tmp_path: Path) -> None:
    """A segment in which every record stands behind a byte that belongs to none."""
    keylog = tmp_path / "keys"
    talk = Talk(ports=(40000, 5671)).hands()
    channel = tls.Channel(tls.Ends("1.3", None, keylog), talk).handshake()
    for side, octets in tls.conversation()[:20]:
        channel.send(side, octets)
    octets = b""
    for _ in range(2500):
        channel.sides[0].write(b"x")
        octets += b"\0" + channel.outgoing[0].read()
    talk.client(octets)
    path = tls.write(tmp_path / "astray.pcap", talk.goodbye().packets)
    found: list[int] = []

    def read() -> None:
        rows = amqpsniff.open(path, tls_keylog=keylog).table("connections").to_pylist()
        found.extend(row["client_bytes"] for row in rows)

    before = threading.stack_size(512 * 1024)
    try:
        thread = threading.Thread(target=read)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert found == [sum(len(o) for side, o in tls.conversation()[:20] if side == 0) + 2500]
