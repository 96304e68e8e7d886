"""TLS conversations by OpenSSL, in memory: what two sides sent in clear, sent through TLS.

`Channel` does a handshake between two contexts and turns bytes of either side into records; its
flights go into packets of `tests.tcp.wire.Talk`. `conversation` has the bytes of a sample's
connection, so that the rows of both can be compared.
"""

from __future__ import annotations

import contextlib
import datetime
import ssl
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

import amqpsniff
from tests.capture.build import NANOSECONDS, pcap_header, pcap_record
from tests.conftest import SAMPLES
from tests.tcp.wire import Packet, Talk

HOST = "broker.example"
NS = 1_000_000_000
SEGMENT = 1400
"""Bytes of a segment: less than a record may have."""

MINIMUM = {"1.0": 0x0301, "1.1": 0x0302, "1.2": 0x0303, "1.3": 0x0304}


class Identity(NamedTuple):
    """A certificate with its key, as files."""

    certificate: Path
    key: Path


@cache
def identity(kind: str) -> Identity:
    """A self-signed certificate of `HOST` with an `rsa` or `ec` key."""
    folder = Path(tempfile.mkdtemp(prefix="tls"))
    key: Any = (
        rsa.generate_private_key(65537, 2048)
        if kind == "rsa"
        else ec.generate_private_key(ec.SECP256R1())
    )
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "Test broker")])
    begin = datetime.datetime(2025, 1, 1, tzinfo=datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(begin)
        .not_valid_after(begin.replace(year=2035))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(HOST)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    found = Identity(folder / f"{kind}.pem", folder / f"{kind}.key")
    found.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    found.key.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return found


class Ends:
    """A client's and a server's context: a version, ciphers, and a key log they write to."""

    def __init__(
        self, version: str, ciphers: str | None, keylog: Path | None, kind: str = "rsa"
    ) -> None:
        found = identity(kind)
        self.client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.client.check_hostname = False
        self.client.verify_mode = ssl.CERT_NONE
        self.server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.server.load_cert_chain(found.certificate, found.key)
        for context in (self.client, self.server):
            if version in ("1.0", "1.1"):
                context.set_ciphers("ALL:@SECLEVEL=0")
            context.minimum_version = context.maximum_version = ssl.TLSVersion(MINIMUM[version])
            if ciphers is not None:
                context.set_ciphers(f"{ciphers}:@SECLEVEL=0")
            context.set_alpn_protocols(["amqp"])
        if keylog is not None:
            self.client.keylog_filename = str(keylog)


class Channel:
    """One connection between two ends: `handshake`, then `send`; segments go to `talk`."""

    def __init__(
        self, ends: Ends, talk: Talk, session: ssl.SSLSession | None = None, segment: int = SEGMENT
    ) -> None:
        self.talk = talk
        self.segment = segment
        pairs = [(ssl.MemoryBIO(), ssl.MemoryBIO()) for _ in range(2)]
        self.incoming = [pair[0] for pair in pairs]
        self.outgoing = [pair[1] for pair in pairs]
        client = ends.client.wrap_bio(*pairs[0], server_hostname=HOST, session=session)
        server = ends.server.wrap_bio(*pairs[1], server_side=True)
        self.sides = (client, server)

    def handshake(self) -> Channel:
        done = [False, False]
        while not all(done):
            for side in (0, 1):
                try:
                    self.sides[side].do_handshake()
                    done[side] = True
                except ssl.SSLWantReadError:
                    pass
                self.deliver(side)
        return self

    def deliver(self, side: int) -> None:
        """Put what a side has written into segments and give it to the other."""
        octets = self.outgoing[side].read()
        self.incoming[1 - side].write(octets)
        for at in range(0, len(octets), self.segment):
            self.talk.put(side, octets[at : at + self.segment])

    def send(self, side: int, octets: bytes) -> None:
        """Send bytes as one record, or as many as they need."""
        self.sides[side].write(octets)
        self.deliver(side)
        left = len(octets)
        while left:
            left -= len(self.sides[1 - side].read(left))

    def close(self) -> None:
        """Both sides say that they are done."""
        for side in (0, 1):
            with contextlib.suppress(ssl.SSLWantReadError, ssl.SSLSyscallError):
                self.sides[side].unwrap()
            self.deliver(side)


@cache
def conversation(sample: str = "pika_mix.pcap", port: int | None = None) -> list[tuple[int, bytes]]:
    """(side, bytes) of the segments of a sample's connection with most of them."""
    from collections import defaultdict

    from amqpsniff.capture import read
    from amqpsniff.tcp import Reassembler

    stage = Reassembler()
    found: dict[str, list[tuple[int, bytes]]] = defaultdict(list)
    for packets in read([SAMPLES / sample]):
        for kind, talk, direction, _, _, payload in stage.feed(packets).events():
            if kind == "data" and isinstance(payload, bytes):
                found[talk.connection_id].append((direction, payload))
    return max(found.values(), key=len)


def in_clear(talk: Talk, said: list[tuple[int, bytes]]) -> Talk:
    """The packets of a conversation without TLS."""
    for side, octets in said:
        for at in range(0, len(octets), SEGMENT):
            talk.put(side, octets[at : at + SEGMENT])
    return talk


def write(path: Path, packets: list[Packet]) -> Path:
    """A pcap file of packets."""
    records = [
        pcap_record("<", one.ts_ns // NS, one.ts_ns % NS, one.octets, original=one.original)
        for one in packets
    ]
    header = pcap_header(magic=NANOSECONDS, link=packets[0].link_type)
    path.write_bytes(header + b"".join(records))
    return path


VARYING = (
    "capture", "packet_number", "last_packet_number", "ts_ns", "timestamp", "connection_id",
    "response_packet_number", "response_ns", "outcome_packet_number", "outcome_ns",
    "first_packet_number", "start_ns", "end_ns", "start", "end", "client_packets",
    "server_packets", "opened_packet_number", "closed_packet_number", "cause_packet_number",
    "owed", "tls_version", "tls_cipher", "tls_server_name",
)  # fmt: skip
"""Columns that say when and in which packet, which differ with and without TLS."""


def rows(path: Path, *tables: str, **options: Any) -> dict[str, list[dict[str, Any]]]:
    """Rows of tables without `VARYING` columns."""
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in tables}
    for table, batch in amqpsniff.open(path, body_sha256=True, **options).tables(*tables):
        found[table] += [
            {name: value for name, value in row.items() if name not in VARYING}
            for row in batch.to_pylist()
        ]
    return found


PORTS = (40000, 5671)
Row = dict[str, Any]


def packets_of(
    version: str,
    ciphers: str | None,
    keylog: Path | None,
    said: list[tuple[int, bytes]] | None = None,
) -> list[Packet]:
    """Packets of a conversation over TLS."""
    talk = Talk(ports=PORTS).hands()
    channel = Channel(Ends(version, ciphers, keylog), talk).handshake()
    for side, octets in said or conversation():
        channel.send(side, octets)
    channel.close()
    return talk.goodbye().packets


def sealed(version: str, port: int, protocols: list[str]) -> list[Packet]:
    """Packets of a conversation with a port whose keys nobody has, and what its ALPN offers."""
    ends = Ends(version, None, None)
    for context in (ends.client, ends.server):
        context.set_alpn_protocols(protocols)
    channel = Channel(ends, Talk(ports=(40000, port)).hands()).handshake()
    for side, octets in conversation():
        channel.send(side, octets)
    return channel.talk.goodbye().packets


def findings(path: Path, *codes: str, **options: Any) -> list[Row]:
    """Findings of a capture: those with these codes, or all."""
    rows = amqpsniff.open(path, **options).table("findings").to_pylist()
    return [row for row in rows if row["code"] in codes or not codes]


def frames(path: Path, **options: Any) -> int:
    """How many frames a capture has."""
    count: int = amqpsniff.open(path, **options).table("frames").num_rows
    return count
