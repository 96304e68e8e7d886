"""Keys: where they come from, that they fit, and what is said when they do not."""

from __future__ import annotations

import ssl
import struct
import sys
from pathlib import Path

import pytest

import amqpsniff
from amqpsniff.errors import UsageError
from amqpsniff.options import Options
from amqpsniff.pipeline import Pipeline
from amqpsniff.tcp import Reassembler
from amqpsniff.tls import TlsStage
from amqpsniff.tls import secrets as module
from amqpsniff.tls.derive import next_secret, traffic_keys
from amqpsniff.tls.secrets import KEY_LOG, Secrets
from amqpsniff.tls.suites import SUITES
from tests.tcp.wire import Packet, Talk, batch
from tests.tls import talk as tls
from tests.tls.talk import PORTS, findings, frames, packets_of

pytest.importorskip("cryptography")


def test_no_keys(tmp_path: Path) -> None:
    path = tls.write(tmp_path / "x.pcap", packets_of("1.2", "AES128-GCM-SHA256", None))
    (row,) = findings(path)
    assert row["code"] == "tls-unreadable"
    assert row["severity"] == "warning"
    assert row["detail"] == (
        "AMQP by its ALPN, amqp; no keys were given; TLS 1.2, TLS_RSA_WITH_AES_128_GCM_SHA256, "
        f"server name {tls.HOST}, certificate {tls.HOST}, ALPN amqp"
    )
    capture = amqpsniff.open(path)
    capture.table("connections")
    (one,) = capture.passes.encrypted
    assert one["certificate"] == {
        "names": [tls.HOST],
        "issuer": "Test broker",
        "expires": "2035-01-01",
    }
    assert (one["client"], one["server"]) == ("10.0.0.1:40000", "10.0.0.2:5671")
    assert capture.totals.sealed == 1


def test_keys_of_others(tmp_path: Path) -> None:
    keylog = tmp_path / "keys"
    packets_of("1.3", None, keylog)
    path = tls.write(tmp_path / "x.pcap", packets_of("1.3", None, None))
    (row,) = findings(path, tls_keylog=keylog)
    assert row["code"] == "tls-unreadable"
    assert "the key log does not have its keys" in row["detail"]


def test_keys_of_one_side(tmp_path: Path) -> None:
    keylog = tmp_path / "keys"
    path = tls.write(tmp_path / "x.pcap", packets_of("1.3", None, keylog))
    lines = keylog.read_text().splitlines(keepends=True)
    keylog.write_text("".join(line for line in lines if line.startswith("SERVER")))
    (row,) = findings(path, tls_keylog=keylog)
    assert "the key log does not have CLIENT_TRAFFIC_SECRET_0 of it" in row["detail"]


@pytest.mark.parametrize(("version", "ciphers"), [("1.3", None), ("1.2", "AES128-SHA")])
def test_keys_that_do_not_fit(version: str, ciphers: str | None, tmp_path: Path) -> None:
    keylog = tmp_path / "keys"
    path = tls.write(tmp_path / "x.pcap", packets_of(version, ciphers, keylog))
    assert frames(path, tls_keylog=keylog)
    lines = [line.split() for line in keylog.read_text().splitlines() if line[0] != "#"]
    keylog.write_text("".join(f"{a} {b} {c[::-1]}\n" for a, b, c in lines))
    (row,) = findings(path, tls_keylog=keylog)
    assert row["code"] == "tls-keys-wrong"
    assert not frames(path, tls_keylog=keylog)


def test_private_key(tmp_path: Path) -> None:
    key = tls.identity("rsa").key
    path = tls.write(tmp_path / "x.pcap", packets_of("1.2", "AES128-GCM-SHA256", None))
    assert frames(path, tls_key=key)
    assert frames(path, tls_key=[key, key])
    other = tmp_path / "other.key"
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    other.write_bytes(
        rsa.generate_private_key(65537, 2048).private_bytes(
            serialization.Encoding.DER,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    (row,) = findings(path, tls_key=other)
    assert "not the one of the server's certificate" in row["detail"]
    secret = tls.write(tmp_path / "y.pcap", packets_of("1.2", "ECDHE-RSA-AES128-SHA", None))
    (row,) = findings(secret, tls_key=key)
    assert "a private key does not open TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA" in row["detail"]


def test_what_is_not_opened_is_named(tmp_path: Path) -> None:
    keylog = tmp_path / "keys"
    packets = packets_of("1.2", "ARIA256-GCM-SHA384", keylog)
    path = tls.write(tmp_path / "x.pcap", packets)
    (row,) = findings(path, "tls-unreadable", tls_keylog=keylog)
    said = "the cipher suite TLS_RSA_WITH_ARIA_256_GCM_SHA384 is not one that is opened"
    assert said in row["detail"]
    hello = next(at for at, one in enumerate(packets) if one.octets[40:41] == b"\x16" and at > 3)
    octets = bytearray(packets[hello].octets)
    octets[50] = 0  # the version in the ServerHello: 3.0
    packets[hello] = packets[hello]._replace(octets=bytes(octets))
    old = tls.write(tmp_path / "y.pcap", packets)
    (row,) = findings(old, "tls-unreadable", tls_keylog=keylog)
    assert "SSL 3.0 is not opened" in row["detail"]


def test_files_that_are_no_keys(tmp_path: Path) -> None:
    sample = tls.SAMPLES / "tls12_rsa.pcap"
    for options, said in (
        ({"tls_keylog": tmp_path / "none"}, "key log cannot be read: No such file"),
        ({"tls_key": tmp_path / "none"}, "private key cannot be read: No such file"),
        ({"tls_key": sample}, "not a private key"),
        ({"tls_key": tls.identity("ec").key}, "not an RSA key"),
    ):
        with pytest.raises(UsageError, match=said):
            amqpsniff.open(sample, **options).table("frames")  # type: ignore[arg-type]


@pytest.mark.parametrize("there", [False, True])
def test_without_the_package_that_decrypts(
    there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or with a version before the ciphers moved, as the package of an older system."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "cryptography"]:
        monkeypatch.delitem(sys.modules, name)
    (tmp_path / "cryptography/hazmat").mkdir(parents=True)
    for folder in ("cryptography", "cryptography/hazmat") if there else ():
        (tmp_path / folder / "__init__.py").touch()
    if there:
        monkeypatch.syspath_prepend(tmp_path)
    else:
        monkeypatch.setitem(sys.modules, "cryptography", None)
    sample = tls.SAMPLES / "tls12_rsa.pcap"
    with pytest.raises(UsageError, match=r"43 or later: .*pip install 'amqpsniff\[tls\]'"):
        amqpsniff.open(sample, tls_key=tls.identity("rsa").key).table("frames")
    (row,) = findings(tls.SAMPLES / "tls12.pcapng", "tls-unreadable")
    assert "pip install" in row["detail"]
    capture = amqpsniff.open(tls.SAMPLES / "tls12.pcapng")
    capture.table("frames")
    assert "pip install" in capture.passes.encrypted[0]["why"]


def run(packets: list[Packet], pipeline: Pipeline, size: int = 10**9) -> int:
    """Feed packets in batches; frames that came of them."""
    for first in range(0, len(packets), size):
        pipeline.feed(batch(packets[first : first + size], first + 1))
    pipeline.finish()
    return sum(taken[0].rows for taken in pipeline.rest())


def test_secrets_of_a_capture_come_late(tmp_path: Path) -> None:
    """As in a pcapng that is being written: the block may stand behind the handshake."""
    keylog = tmp_path / "keys"
    packets = packets_of("1.3", None, keylog)
    expected = run(packets, Pipeline(Options(tls_keylog=keylog)))
    pipeline = Pipeline(Options(tls_keylog=tmp_path / "none", tls_keylog_later=True))
    pipeline.feed(batch(packets[:40], 1))
    secrets = [(KEY_LOG, keylog.read_bytes()), (1, b"other")]
    for first in range(40, len(packets), 20):
        pipeline.feed(batch(packets[first : first + 20], first + 1), secrets)
    pipeline.finish()
    assert sum(taken[0].rows for taken in pipeline.rest()) == expected


@pytest.mark.parametrize("when", [5, 9, 30])
def test_key_log_that_grows(when: int, tmp_path: Path) -> None:
    keylog, growing = tmp_path / "keys", tmp_path / "growing"
    packets = packets_of("1.3", None, keylog)
    expected = run(packets, Pipeline(Options(tls_keylog=keylog)))
    growing.write_text("")
    pipeline = Pipeline(Options(tls_keylog=growing))
    for at, packet in enumerate(packets):
        if at == when:
            lines = keylog.read_text()
            with growing.open("a") as file:
                file.write(lines[: len(lines) // 2])  # a line that is being written
                file.flush()
                pipeline.feed(batch([packet], at + 1))
                file.write(lines[len(lines) // 2 :])
            continue
        pipeline.feed(batch([packet], at + 1))
    pipeline.finish()
    assert sum(taken[0].rows for taken in pipeline.rest()) == expected


def test_key_log_that_is_replaced_or_odd(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    line = b"CLIENT_RANDOM " + b"ab" * 32 + b" " + b"cd" * 48
    path.write_bytes(b"# comment\r\n" + line + b"\r\nnonsense\nCLIENT_RANDOM zz zz\n" + b"x" * 9000)
    found = Secrets(path)
    assert found.find(module.MASTER, b"\xab" * 32) == b"\xcd" * 48
    path.write_bytes(line.replace(b"ab", b"12"))
    assert found.refresh()
    assert not found.refresh()
    assert found.find(module.MASTER, b"\x12" * 32) == b"\xcd" * 48
    path.unlink()
    assert not found.refresh()


@pytest.mark.parametrize(
    ("octets", "why"),
    [
        (b"", "the key log does not have its keys"),
        (b"# written by a program\r\n\r\n", "the key log does not have its keys"),
        (b"-----BEGIN PRIVATE KEY-----\n", "the key log has no line that is a key"),
    ],
)
def test_a_file_that_is_no_key_log(octets: bytes, why: str, tmp_path: Path) -> None:
    path = tls.write(tmp_path / "x.pcap", packets_of("1.3", None, None))
    keylog = tmp_path / "keys"
    keylog.write_bytes(octets)
    capture = amqpsniff.open(path, tls_keylog=keylog)
    capture.table("connections")
    assert [one["why"] for one in capture.passes.encrypted] == [why]


def test_older_forms_of_lines(tmp_path: Path) -> None:
    """The master secret by session id opens a session that was resumed."""
    path = tmp_path / "keys"
    path.write_text(f"RSA Session-ID:{'ab' * 32} Master-Key:{'cd' * 48}\n")
    assert Secrets(path).session(b"\xab" * 32) == b"\xcd" * 48


def test_limits() -> None:
    found = Secrets(max_secrets=3, max_sessions=2)
    for at in range(5):
        found.add(KEY_LOG, b"CLIENT_RANDOM %064x %096x" % (at, at))
        found.remember(bytes((at,)), b"master")
    known = [at for at in range(5) if found.find(module.MASTER, at.to_bytes(32, "big"))]
    assert known == [2, 3, 4]
    assert [at for at in range(5) if found.session(bytes((at,)))] == [3, 4]


def test_records_that_wait_for_keys_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is kept is bounded for a connection and for all of them."""
    keylog, none = tmp_path / "keys", tmp_path / "none"
    none.write_text("")
    path = tls.write(tmp_path / "x.pcap", packets_of("1.3", None, keylog))
    for name, limit, said in (
        ("conversation.MAX_WAITING_BYTES", 3000, "the key log does not have its keys"),
        ("stage.MAX_HELD_BYTES", 2000, "too many conversations wait for keys"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(f"amqpsniff.tls.{name}", limit)
            capture = amqpsniff.open(path, tls_keylog=none)
            capture.table("frames")
            assert [one["why"] for one in capture.passes.encrypted] == [said]


def test_tries_after_a_hole_are_bounded() -> None:
    """A crafted hole costs no more than its share; then that direction is not read further."""
    from amqpsniff.tls.conversation import FIRST_TRIES, TlsConversation
    from amqpsniff.tls.protection import of_traffic_secret
    from amqpsniff.tls.records import DEAF

    tls_conversation = TlsConversation(Secrets(), None)  # type: ignore[arg-type]
    way = tls_conversation.directions[0]
    tls_conversation.handshake.suite = SUITES[0x1301]
    way.protection = of_traffic_secret(SUITES[0x1301], bytes(32))
    header, payload = b"\x17\x03\x03\0\x20", bytes(32)
    for _ in range(3):
        assert not tls_conversation.resume(way, header, payload, 30 * FIRST_TRIES, 1, 1)
    assert way.mode == DEAF


@pytest.mark.parametrize("tickets", [True, False])
def test_resumption(tickets: bool, tmp_path: Path) -> None:
    """The second session has no key exchange: its keys are those of the first."""
    ends = tls.Ends("1.2", "AES128-GCM-SHA256", None)
    if not tickets:
        for context in (ends.client, ends.server):
            context.options |= ssl.OP_NO_TICKET
    first, second = Talk(ports=PORTS).hands(), Talk(ports=(40001, 5671), isn=(5, 6)).hands()
    channel = tls.Channel(ends, first).handshake()
    for side, octets in tls.conversation():
        channel.send(side, octets)
    again = tls.Channel(ends, second, channel.sides[0].session).handshake()
    assert again.sides[0].session_reused
    for side, octets in tls.conversation():
        again.send(side, octets)
    path = tls.write(tmp_path / "x.pcap", first.packets + second.packets)
    capture = amqpsniff.open(path, tls_key=tls.identity("rsa").key)
    assert capture.table("connections").num_rows == 2
    assert [one["opened"] for one in capture.passes.encrypted] == [True, True]


class Sender:
    """A side that seals records of TLS 1.3 with AES-256 by itself."""

    def __init__(self, secret: bytes, sequence: int) -> None:
        self.secret = secret
        self.sequence = sequence

    def seal(self, octets: bytes, kind: int = 23) -> bytes:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        key, iv = traffic_keys(SUITES[0x1302], self.secret)
        nonce = int.from_bytes(iv, "big") ^ self.sequence
        header = b"\x17\x03\x03" + struct.pack(">H", len(octets) + 17)
        self.sequence += 1
        text = octets + bytes((kind,))
        return header + AESGCM(key).encrypt(nonce.to_bytes(12, "big"), text, header)

    def update(self) -> bytes:
        record = self.seal(b"\x18\0\0\1\0", 22)
        self.secret, self.sequence = next_secret("sha384", self.secret), 0
        return record


def test_key_update(tmp_path: Path) -> None:
    """Records after a KeyUpdate open with the keys that follow from those before."""
    keylog = tmp_path / "keys"
    said = tls.conversation()
    half = len(said) // 2
    talk = Talk(ports=PORTS).hands()
    channel = tls.Channel(tls.Ends("1.3", None, keylog), talk).handshake()
    for side, octets in said[:half]:
        channel.send(side, octets)
    hello = talk.packets[3].octets[40:]
    found = Secrets(keylog)
    senders = [
        Sender(found.find(label, hello[11:43]) or b"", sum(one[0] == at for one in said[:half]))
        for at, label in enumerate(module.TRAFFIC)
    ]
    senders[1].sequence += 2  # OpenSSL's tickets
    for at, (side, octets) in enumerate(said[half:]):
        if at % 20 == 3:
            talk.put(side, senders[side].update())
        talk.put(side, senders[side].seal(octets))
    path = tls.write(tmp_path / "x.pcap", talk.goodbye().packets)
    clear = tls.in_clear(Talk(ports=PORTS).hands(), said).goodbye()
    ours = tls.rows(path, "frames", tls_keylog=keylog)
    assert ours == tls.rows(tls.write(tmp_path / "y.pcap", clear.packets), "frames")
    # and when the KeyUpdate itself was lost
    for lost in (at for at, one in enumerate(talk.packets) if len(one.octets) == 40 + 5 + 22):
        kept = talk.packets[:lost] + talk.packets[lost + 1 :]
        holes = tls.rows(tls.write(tmp_path / "z.pcap", kept), "frames", tls_keylog=keylog)
        assert len(ours["frames"]) - len(holes["frames"]) <= 2


def test_bytes_of_a_batch_are_not_kept(tmp_path: Path) -> None:
    """A conversation that goes on holds nothing of the batches before, however many there were."""
    keylog = tmp_path / "keys"
    packets = packets_of("1.3", None, keylog)
    reassembler, stage = Reassembler(), TlsStage(Secrets(keylog), lambda _: 0)
    opened = stage.feed(reassembler.feed(batch(packets[:-3])))
    assert sum(len(octets) for octets in opened.extra) > 10_000
    (conversation,) = (one for one in opened.conversations if one is not None)
    assert conversation.tls.sink.extra == []
    assert not any(conversation.tls.sink.columns)


def test_secrets_in_comments_are_not_shown(tmp_path: Path) -> None:
    """Some paste their key log into the comment of a capture."""
    comment = f"keys: CLIENT_RANDOM {'ab' * 32} {'cd' * 48} of {'ef' * 32}"
    block = comment.encode()
    block += bytes(-len(block) % 4)
    length = 28 + 4 + len(block) + 4
    section = struct.pack("<IIIHHq", 0x0A0D0D0A, length, 0x1A2B3C4D, 1, 0, -1)
    section += struct.pack("<HH", 1, len(comment)) + block + bytes(4) + struct.pack("<I", length)
    (tmp_path / "commented.pcapng").write_bytes(section)
    for shown in (False, True):
        capture = amqpsniff.open(str(tmp_path / "commented.pcapng"), show_secrets=shown)
        list(capture.batches("frames"))
        said = comment if shown else f"keys: CLIENT_RANDOM [redacted] of {'ef' * 32}"
        assert capture.passes.comments == [said]
    assert module.without_secrets("RSA Session-ID:ab Master-Key:" + "01" * 24) == (
        "RSA Session-ID:ab Master-Key:[redacted]"
    )
