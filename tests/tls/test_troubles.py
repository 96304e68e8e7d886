"""What is said of TLS that is wrong, weak or not answered."""

from __future__ import annotations

import re
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest

import amqpsniff
from amqpsniff.findings import KINDS
from tests.tcp.wire import Packet, Talk
from tests.tls import talk as tls
from tests.tls.talk import PORTS, findings, frames, packets_of

pytest.importorskip("cryptography")


def alerted(change: Callable[[tls.Ends], None], version: str = "1.2") -> list[Packet]:
    ends = tls.Ends(version, None, None)
    change(ends)
    talk = Talk(ports=PORTS).hands()
    channel = tls.Channel(ends, talk)
    with pytest.raises(ssl.SSLError):
        channel.handshake()
    for side in (0, 1):
        channel.deliver(side)
    return talk.goodbye().packets


def test_alerts(tmp_path: Path) -> None:
    def distrust(ends: tls.Ends) -> None:
        ends.client.verify_mode = ssl.CERT_REQUIRED

    def old(ends: tls.Ends) -> None:
        ends.client.minimum_version = ssl.TLSVersion.TLSv1_3
        ends.client.maximum_version = ssl.TLSVersion.TLSv1_3

    for change, side, word in ((distrust, "client", "unknown_ca"), (old, "server", "protocol_v")):
        path = tls.write(tmp_path / "x.pcap", alerted(change))
        (row,) = findings(path)
        assert (row["code"], row["severity"]) == ("tls-alert", "error")
        assert row["detail"].startswith(f"the {side} sent {word}")
    assert "; TLS 1.3 offered, server name" in row["detail"]
    capture = amqpsniff.open(path)
    capture.table("connections")
    (one,) = capture.passes.encrypted
    assert (one["version"], one["cipher"], one["version_offered"]) == (None, None, "TLS 1.3")
    assert "TLS_AES_256_GCM_SHA384" in one["ciphers_offered"]
    assert not any(name.startswith("0x") for name in one["ciphers_offered"])


def test_what_to_do_about_each_alert() -> None:
    kind = KINDS["tls-alert"]
    named = re.findall(r"\w+_\w+", kind.evidence)
    assert "certificate_expired" in named
    assert [one for one in named if one not in kind.advice] == []


def test_weaknesses(tmp_path: Path) -> None:
    keylog = tmp_path / "keys"
    old = tls.write(tmp_path / "x.pcap", packets_of("1.1", "AES128-SHA", keylog))
    (row,) = findings(old, "tls-outdated", tls_keylog=keylog)
    assert row["detail"].startswith("TLS 1.1, ")
    new = tls.write(tmp_path / "y.pcap", packets_of("1.2", "AES128-SHA", keylog))
    assert not findings(new, "tls-outdated", "tls-certificate-expired", tls_keylog=keylog)
    late = [
        one._replace(ts_ns=one.ts_ns + 400_000_000_000_000_000)
        for one in packets_of("1.2", "AES128-SHA", keylog)
    ]
    (row,) = findings(tls.write(tmp_path / "z.pcap", late), "tls-certificate-expired")
    assert row["detail"] == f"the certificate of {tls.HOST} expired on 2035-01-01"


def test_encrypted_connections_are_not_said_to_be_in_clear(tmp_path: Path) -> None:
    keylog = tmp_path / "keys"
    path = tls.write(tmp_path / "x.pcap", packets_of("1.3", None, keylog))
    codes = {row["code"] for row in findings(path, tls_keylog=keylog)}
    assert not codes & {"connection-unencrypted", "credentials-in-clear", "tls-unreadable"}
    assert "credentials-in-clear" in {
        row["code"] for row in findings(tls.SAMPLES / "pika_mix.pcap")
    }


def test_handshakes_without_an_answer(tmp_path: Path) -> None:
    hello = packets_of("1.3", None, None)[3].octets[40:]
    talk = Talk(ports=PORTS).hands()
    talk.client(hello)
    still = list(talk.packets)
    (row,) = findings(tls.write(tmp_path / "x.pcap", talk.goodbye().packets))
    assert row["code"] == "tls-handshake-unanswered"
    assert not findings(tls.write(tmp_path / "y.pcap", still))


@pytest.mark.parametrize("lost", [0, 2, 3])
def test_tls_to_a_listener_without_it(tmp_path: Path, lost: int) -> None:
    """Also where the SYN, its answer and the ACK were not captured."""
    hello = packets_of("1.3", None, None)[3].octets[40:]
    talk = Talk(ports=(40000, 5672)).hands()
    talk.client(hello[:100])
    talk.client(hello[100:])
    talk.server(b"AMQP\0\0\x09\x01")
    path = tls.write(tmp_path / "x.pcap", talk.goodbye().packets[lost:])
    codes = {row["code"]: row["detail"] for row in findings(path)}
    assert lost or "TLS" in codes["not-amqp"]
    assert not any(code.startswith("tls") for code in codes)


def test_tls_answered_with_something_else(tmp_path: Path) -> None:
    """By a server whose first bytes may be missing: an answer, whatever it says."""
    hello = packets_of("1.3", None, None)[3].octets[40:]
    talk = Talk(ports=PORTS).hands()
    talk.client(hello)
    talk.server(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    path = tls.write(tmp_path / "x.pcap", talk.goodbye().packets[3:])
    assert "tls-handshake-unanswered" not in {row["code"] for row in findings(path)}


def test_behind_a_proxy(tmp_path: Path) -> None:
    keylog = tmp_path / "keys"
    for header in (
        b"PROXY TCP4 192.0.2.1 192.0.2.2 40000 5671\r\n",
        b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c" + bytes(12),
    ):
        talk = Talk(ports=PORTS).hands()
        talk.client(header)
        channel = tls.Channel(tls.Ends("1.3", None, keylog), talk).handshake()
        for side, octets in tls.conversation():
            channel.send(side, octets)
        path = tls.write(tmp_path / "x.pcap", talk.goodbye().packets)
        ours = tls.rows(path, "frames", tls_keylog=keylog)["frames"]
        clear = Talk(ports=PORTS).hands()
        clear.client(header)
        tls.in_clear(clear, tls.conversation()).goodbye()
        assert ours == tls.rows(tls.write(tmp_path / "y.pcap", clear.packets), "frames")["frames"]


def test_what_cannot_be_read_on_another_port_may_be_amqp() -> None:
    path = tls.SAMPLES / "tls13.pcap"
    for options, said in (
        ({}, "perhaps AMQP: neither port 5701 nor the ALPN names another protocol; no keys"),
        ({"ports": [5701]}, "perhaps AMQP: port 5701; no keys"),
    ):
        (row,) = findings(path, **options)
        assert (row["code"], row["count"]) == ("tls-unreadable", 2)
        assert row["severity"] == "warning"
        assert row["detail"].startswith(said)


READ_OR_OTHER = {
    "any port": (5701, [], {}, True),
    "a registered port": (443, [], {}, False),
    "the management plugin": (15671, [], {}, False),
    "a port that was asked for": (443, [], {"ports": [443]}, True),
    "AMQP by its ALPN": (443, ["amqp"], {}, True),
    "another protocol by its ALPN": (5701, ["h2", "http/1.1"], {}, False),
    "the port of AMQP with another ALPN": (5671, ["h2"], {}, True),
}


@pytest.mark.parametrize("version", ["1.2", "1.3"])
@pytest.mark.parametrize("name", READ_OR_OTHER)
def test_which_conversations_may_be_amqp(name: str, version: str, tmp_path: Path) -> None:
    port, protocols, options, told = READ_OR_OTHER[name]
    path = tls.write(tmp_path / "x.pcap", tls.sealed(version, port, protocols))
    assert [row["code"] for row in findings(path, **options)] == ["tls-unreadable"] * told


def test_damaged_record(tmp_path: Path) -> None:
    keylog = tmp_path / "keys"
    packets = packets_of("1.3", None, keylog)
    whole = frames(tls.write(tmp_path / "x.pcap", packets), tls_keylog=keylog)
    octets = bytearray(packets[50].octets)
    octets[-1] ^= 1
    packets[50] = packets[50]._replace(octets=bytes(octets))
    path = tls.write(tmp_path / "y.pcap", packets)
    (row,) = findings(path, "tls-record-damaged", tls_keylog=keylog)
    assert row["packet_number"] == 51
    assert row["detail"].startswith("a record of the ")
    assert whole - frames(path, tls_keylog=keylog) <= 4


@pytest.mark.parametrize("version", ["1.2", "1.3"])
@pytest.mark.parametrize("ciphers", [None, "ECDHE-RSA-CHACHA20-POLY1305"])
@pytest.mark.parametrize("closed", [True, False])
def test_a_health_check_is_a_note(
    tmp_path: Path, version: str, ciphers: str | None, closed: bool
) -> None:
    """The client finished the handshake and had nothing to say; a protocol header is a word."""
    for octets, code in ((b"", "connection-silent"), (b"AMQP\0\0\x09\1", "tls-unreadable")):
        talk = Talk(ports=PORTS).hands()
        channel = tls.Channel(tls.Ends(version, ciphers, None), talk).handshake()
        if octets:
            channel.send(0, octets)
        if closed:
            channel.close()
        path = tls.write(tmp_path / "x.pcap", talk.goodbye().packets)
        found = amqpsniff.open(path).table("findings").to_pylist()
        assert [one["code"] for one in found] == [code]
