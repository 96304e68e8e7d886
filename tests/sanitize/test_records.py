"""TLS in safe captures: handshakes without names and keys, filler for what is encrypted."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import amqpsniff
from amqpsniff.sanitize import SanitizeOptions
from amqpsniff.sanitize.records import RecordCleaner
from amqpsniff.sanitize.values import ValueCleaner
from amqpsniff.tls.records import RecordClaim
from tests.sanitize.safe import made, packets
from tests.tcp.wire import Talk
from tests.tls import talk as tls

pytest.importorskip("cryptography")


def spoken(version: str, folder: Path, segment: int = 1400, port: int = 5671) -> Path:
    """A capture of a connection over TLS, in which the client shows a certificate too."""
    import ssl

    ends = tls.Ends(version, None, None)
    found = tls.identity("rsa")
    ends.client.load_cert_chain(found.certificate, found.key)
    ends.server.load_verify_locations(found.certificate)
    ends.server.verify_mode = ssl.CERT_OPTIONAL
    talk = Talk(ports=(40000, port)).hands()
    channel = tls.Channel(ends, talk, segment=segment).handshake()
    for side, octets in tls.conversation()[:40]:
        channel.send(side, octets)
    channel.close()
    return tls.write(folder / "x.pcap", talk.goodbye().packets)


def told(path: Path) -> dict[str, object]:
    capture = amqpsniff.open(path)
    capture.table("connections")
    (row,) = capture.passes.encrypted
    return row


@pytest.mark.parametrize("version", ["1.2", "1.3"])
@pytest.mark.parametrize("segment", [7, 1400])
def test_handshakes_stay_without_names(version: str, segment: int, tmp_path: Path) -> None:
    path = spoken(version, tmp_path, segment)
    safe = made(path, tmp_path)
    before, after = told(path), told(safe)
    assert after["server_name"] == "x" * len(tls.HOST)
    if version == "1.2":
        names = ["x" * len(tls.HOST)]
        hidden = {"names": names, "issuer": "xxxxxxxxxxx", "expires": "2035-01-01"}
        assert after["certificate"] == after["client_certificate"] == hidden
        assert before["client_certificate"] == {
            "names": [tls.HOST], "issuer": "Test broker", "expires": "2035-01-01",
        }  # fmt: skip
    for name in ("capture", "server_name", "certificate", "client_certificate"):
        del before[name], after[name]
    assert after == before
    assert packets(safe) == packets(path)
    octets = safe.read_bytes()
    for hidden_bytes in (tls.HOST.encode(), b"Test broker", key_bytes()):
        assert hidden_bytes not in octets
    assert made(safe, tmp_path).read_bytes() == octets


def key_bytes() -> bytes:
    """The modulus in the certificate, as it stands there."""
    from cryptography import x509

    certificate = x509.load_pem_x509_certificate(tls.identity("rsa").certificate.read_bytes())
    number = certificate.public_key().public_numbers().n  # type: ignore[union-attr]
    return number.to_bytes(256, "big")[:16]


def test_names_become_pseudonyms(tmp_path: Path) -> None:
    safe = made(spoken("1.2", tmp_path), tmp_path, SanitizeOptions(names=True))
    row = told(safe)
    assert row["server_name"] == "nnnnn0.nnnnnn0"
    assert row["certificate"]["names"] == ["nnnnn0.nnnnnn0"]  # type: ignore[index]


def test_nothing_of_an_encrypted_record_stays(tmp_path: Path) -> None:
    path = spoken("1.3", tmp_path, segment=60000)
    safe = made(path, tmp_path)
    from amqpsniff.capture import open_capture
    from tests.capture import build

    pairs = zip(build.rows(open_capture(path)), build.rows(open_capture(safe)), strict=True)
    seen = 0
    for before, after in pairs:
        if before.octets[40:43] == b"\x17\x03\x03":
            seen += 1
            size = int.from_bytes(before.octets[43:45], "big")
            assert after.octets[40:45] == before.octets[40:45]
            assert after.octets[45 : 45 + size] == b"x" * size
    assert seen > 30


def test_what_may_be_amqp_is_not_foreign(tmp_path: Path) -> None:
    path = spoken("1.3", tmp_path, port=40443)  # its ALPN says amqp
    assert len(packets(made(path, tmp_path, SanitizeOptions(drop_foreign=True)))) > 40
    silent = tls.SAMPLES / "tls13.pcap"  # neither ALPN nor port
    assert not packets(made(silent, tmp_path, SanitizeOptions(drop_foreign=True)))


def test_secrets_of_a_capture_are_left_out(tmp_path: Path) -> None:
    path = tls.SAMPLES / "tls12.pcapng"
    own = [line for line in path.read_bytes().split(b"\n") if b"CLIENT_RANDOM" in line]
    safe = made(path, tmp_path)
    assert own
    for line in own:
        assert line.split()[-1] not in safe.read_bytes()


def test_lost_packets(tmp_path: Path) -> None:
    """What stands behind a hole is filler; before it all is as it was."""
    from tests.fuzz.fuzz_tls import packets as first_packets

    kept = [one for at, one in enumerate(first_packets(0)) if at != 30]
    lossy = tls.write(tmp_path / "y.pcap", kept)
    safe = made(lossy, tmp_path)
    assert packets(safe) == packets(lossy)
    assert made(safe, tmp_path).read_bytes() == safe.read_bytes()


@given(st.binary(max_size=400), st.integers(0, 400), st.integers(0, 255))
def test_handshakes_of_any_bytes(octets: bytes, place: int, value: int) -> None:
    """Any bytes, and hellos and certificates with bytes changed: as many come out."""
    cleaner = RecordCleaner(ValueCleaner(SanitizeOptions(names=True)))
    for message in (octets, *HELLOS):
        changed = bytearray(message)
        if changed:
            changed[place % len(changed)] = value
        made_of = cleaner.messages(bytes(changed))
        assert len(made_of) == len(changed)
        claim = RecordClaim(1, 0, 10, b"\x16\x03\x03\0\0", bytes(changed))
        spans = [*cleaner.clean(claim), *cleaner.finish()]
        assert [span[:3] for span in spans] == [(1, 0, 10)]
        assert spans[0][3] == claim.header + made_of


def _hellos() -> list[bytes]:
    """Handshake messages in clear of TLS 1.2."""
    ends = tls.Ends("1.2", None, None)
    talk = Talk().hands()
    tls.Channel(ends, talk, segment=60000).handshake()
    return [one.octets[45:] for one in talk.packets if one.octets[40:41] == b"\x16"][:2]


HELLOS = _hellos()
