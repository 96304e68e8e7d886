"""Decrypted TLS is written as plain TCP: rows are those that the keys gave, and no key is left."""

from __future__ import annotations

import io
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import amqpsniff
from amqpsniff.options import Options
from amqpsniff.sanitize import SanitizeOptions, sanitize
from tests.conftest import SAMPLES
from tests.sanitize.safe import bytes_of, rows, secrets
from tests.tcp.wire import Packet, Talk
from tests.thorough import some
from tests.tls import talk as tls

pytest.importorskip("cryptography")

CAPTURES = Path(__file__).parent.parent / "captures"
AMQP10 = CAPTURES / "amqp10"
TABLES = ("frames", "messages", "channels", "connections")
GONE = ("tls_version", "tls_cipher")
"""Columns of a connection that has no TLS any more."""

OPENED: dict[str, tuple[Path, dict[str, Any]]] = {
    "1.3": (SAMPLES / "tls13.pcap", {"tls_keylog": SAMPLES / "tls13.keys"}),
    "secrets inside": (SAMPLES / "tls12.pcapng", {}),
    "private key": (SAMPLES / "tls12_rsa.pcap", {"tls_key": [SAMPLES / "tls12_rsa.key"]}),
    "AMQP 1.0": (AMQP10 / "tls.pcap", {"tls_keylog": AMQP10 / "tls.keys"}),
    **{
        name: (CAPTURES / f"{name}.pcap", {"tls_keylog": CAPTURES / f"{name}.keys"})
        for name in ("tls12", "tls12_cbc", "tls12_rsacbc", "tls12_chacha")
    },
}


def made(path: Path, keys: dict[str, Any], safe: Path, **chosen: Any) -> Path:
    """The safe capture of what keys open."""
    decoding = Options(tls_keylog=keys.get("tls_keylog"), tls_keys=tuple(keys.get("tls_key", ())))
    safe.write_bytes(bytes_of(path, SanitizeOptions(**chosen), decoding)[0])
    return safe


def alike(path: Path, keys: dict[str, Any], safe: Path, *but: str) -> None:
    """The tables of a capture and of the safe one are the same, but that there is no TLS."""
    for table in TABLES:
        before, after = rows(path, table, **keys), rows(safe, table)
        assert before
        for row in (*before, *after):
            for name in (*GONE, *but):
                row.pop(name, None)
        assert after == before, table


@pytest.mark.parametrize("name", OPENED)
def test_rows_are_those_that_the_keys_gave(name: str, tmp_path: Path) -> None:
    path, keys = OPENED[name]
    safe = made(path, keys, tmp_path / "safe.pcapng")
    alike(path, keys, safe)
    said = repr(
        [
            amqpsniff.open(safe, bodies=True, show_secrets=True).table(table).to_pylist()
            for table in TABLES
        ]
    ).encode()
    for secret in secrets(path, **keys):
        assert secret not in said, secret
    assert not list(amqpsniff.open(safe).passes.encrypted)
    assert made(safe, {}, tmp_path / "twice.pcapng").read_bytes() == safe.read_bytes()


@pytest.mark.parametrize("name", [name for name in OPENED if "tls_keylog" in OPENED[name][1]])
def test_no_key_is_left(name: str, tmp_path: Path) -> None:
    path, keys = OPENED[name]
    octets = made(path, keys, tmp_path / "safe.pcapng").read_bytes().lower()
    for line in Path(keys["tls_keylog"]).read_bytes().lower().split(b"\n"):
        if line and not line.startswith(b"#"):
            secret = line.split()[-1]
            assert secret not in octets
            assert bytes.fromhex(secret.decode()) not in octets


@pytest.mark.tshark
@pytest.mark.skipif(shutil.which("tshark") is None, reason="no tshark")
@pytest.mark.parametrize("name", some(sorted(OPENED.keys() - {"AMQP 1.0"})))  # has no methods
def test_tshark_reads_it(name: str, tmp_path: Path) -> None:
    path, keys = OPENED[name]
    safe = made(path, keys, tmp_path / "safe.pcapng")
    program = ["tshark", "-r", str(safe), "-d", "tcp.port==1-65535,amqp"]
    fields = ["-Y", "amqp.method.method", "-T", "fields", "-e", "frame.number"]
    seen = subprocess.run([*program, *fields], capture_output=True, text=True, check=True).stdout
    ours = rows(path, "frames", **keys)
    methods = {row["packet_number"] for row in ours if row["method"]}
    assert {int(line) for line in seen.split()} == methods
    malformed = [*program, "-Y", "_ws.malformed"]
    assert not subprocess.run(malformed, capture_output=True, text=True, check=True).stdout


def test_bodies_that_are_kept(tmp_path: Path) -> None:
    path, keys = OPENED["1.3"]
    safe = made(path, keys, tmp_path / "safe.pcapng", keep_bodies=True)
    capture = amqpsniff.open(path, bodies=True, **keys), amqpsniff.open(safe, bodies=True)
    bodies = [each.table("messages").column("body").to_pylist() for each in capture]
    assert bodies[0] == bodies[1]
    assert any(bodies[0])


def test_without_keys_all_of_it_is_filler(tmp_path: Path) -> None:
    path, keys = OPENED["1.3"]
    safe = made(path, {}, tmp_path / "safe.pcapng")
    assert not rows(safe, "frames")
    assert not rows(safe, "frames", **keys)


VERSIONS = (
    ("1.3", None),
    ("1.2", "AES128-GCM-SHA256"),
    ("1.2", "AES256-CCM8"),
    ("1.2", "ECDHE-RSA-CHACHA20-POLY1305"),
    ("1.2", "ECDHE-RSA-AES256-SHA384"),
    ("1.2", "NULL-SHA256"),
    ("1.1", "AES128-SHA"),
    ("1.0", "AES256-SHA"),
)


def spoken(version: str, ciphers: str | None, keylog: Path) -> list[Packet]:
    """Packets of a conversation, its handshake first."""
    talk = Talk(ports=(40000, 5671)).hands()
    channel = tls.Channel(tls.Ends(version, ciphers, keylog), talk).handshake()
    for side, octets in tls.conversation():
        channel.send(side, octets)
    channel.close()
    return talk.goodbye().packets


@pytest.mark.parametrize(("version", "ciphers"), VERSIONS)
def test_versions_and_ciphers(version: str, ciphers: str | None, tmp_path: Path) -> None:
    keylog = tmp_path / "keys"
    path = tls.write(tmp_path / "x.pcap", spoken(version, ciphers, keylog))
    keys = {"tls_keylog": keylog}
    alike(path, keys, made(path, keys, tmp_path / "safe.pcapng"))


@pytest.mark.parametrize(("version", "ciphers"), some(VERSIONS))
def test_losses_stay(version: str, ciphers: str | None, tmp_path: Path) -> None:
    """What is read behind holes and of records with holes is read of the safe capture too."""
    keylog = tmp_path / "keys"
    packets = spoken(version, ciphers, keylog)
    keys = {"tls_keylog": keylog}
    for lost in (range(30, 31), range(60, 63), range(41, 60)):
        kept = [one for at, one in enumerate(packets) if at not in lost]
        path = tls.write(tmp_path / "holes.pcap", kept)
        safe = made(path, keys, tmp_path / "safe.pcapng")
        alike(path, keys, safe, "lost_bytes")  # without those of records around
    cut = [one.cut(300) if len(one.octets) > 300 else one for one in packets]
    path = tls.write(tmp_path / "cut.pcap", cut)
    safe = made(path, keys, tmp_path / "safe.pcapng")
    alike(path, keys, safe, "lost_bytes", "gaps")  # the end of a cut record is a hole


def test_sanitize_needs_a_file_of_keys_that_is_there() -> None:
    from amqpsniff.errors import UsageError

    with pytest.raises(UsageError, match="key log cannot be read"):
        list(sanitize(OPENED["1.3"][0], io.BytesIO(), None, Options(tls_keylog="gone.keys")))


def test_proxy_header_before_tls(tmp_path: Path) -> None:
    """A proxy's header stands before the decrypted bytes, with other addresses."""
    keylog = tmp_path / "keys"
    talk = Talk(ports=(40000, 5671)).hands()
    talk.client(b"PROXY TCP4 192.0.2.7 198.51.100.1 56324 5671\r\n")
    channel = tls.Channel(tls.Ends("1.3", None, keylog), talk).handshake()
    for side, octets in tls.conversation():
        channel.send(side, octets)
    channel.close()
    path = tls.write(tmp_path / "x.pcap", talk.goodbye().packets)
    keys = {"tls_keylog": keylog}
    safe = made(path, keys, tmp_path / "safe.pcapng")
    alike(path, keys, safe, "client_bytes")  # of TLS those inside are counted
    assert b"PROXY TCP4 000.0.0.0 " in safe.read_bytes()
    assert b"192.0.2.7" not in safe.read_bytes()


def test_addresses_and_foreign_packets(tmp_path: Path) -> None:
    path, keys = OPENED["1.3"]
    safe = made(path, keys, tmp_path / "safe.pcapng", addresses=True, drop_foreign=True)
    clients = amqpsniff.open(safe).table("connections").column("client").to_pylist()
    before = amqpsniff.open(path, **keys).table("connections").column("client").to_pylist()
    assert len(clients) == len(before)
    assert not set(clients) & set(before)
    assert len(rows(safe, "frames")) == len(rows(path, "frames", **keys))


@pytest.mark.parametrize("first", ["TLS", "plain"])
def test_ports_that_are_used_again(first: str, tmp_path: Path) -> None:
    """A connection without TLS between the same ends stays what it is."""
    keylog = tmp_path / "keys"
    encrypted = spoken("1.3", None, keylog)
    talk = Talk((5000, 70000), ports=(40000, 5671)).hands()
    for side, octets in tls.conversation():
        talk.put(side, octets)
    plain = talk.goodbye().packets
    packets = [*encrypted, *plain] if first == "TLS" else [*plain, *encrypted]
    timed = [one._replace(ts_ns=packets[0].ts_ns + at * 1000) for at, one in enumerate(packets)]
    path = tls.write(tmp_path / "x.pcap", timed)
    keys = {"tls_keylog": keylog}
    assert len(rows(path, "connections", **keys)) == 2
    alike(path, keys, made(path, keys, tmp_path / "safe.pcapng"))
