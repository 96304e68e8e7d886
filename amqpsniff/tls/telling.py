"""What is told of a TLS conversation: its facts as a row, and what is wrong with it.

Whether a conversation that does not open is AMQP cannot be seen; `suspicion` says what speaks for
it: the protocol that was agreed on (ALPN), the usual port, or a port that was asked for. Against it
speaks another protocol in the ALPN, or the port of another protocol; nothing else does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from .conversation import TlsConversation
from .hello import TLS_1_2
from .opening import KEYS_MISFIT, OPENED
from .suites import VERSIONS, suite_of

AMQPS_PORT = 5671
"""The registered port of AMQP over TLS."""

OTHER_PROTOCOLS = {
    443: "HTTPS", 465: "SMTP", 563: "NNTP", 636: "LDAP", 853: "DNS", 990: "FTP", 993: "IMAP",
    995: "POP3", 1433: "SQL Server", 2376: "Docker", 2379: "etcd", 2380: "etcd", 3269: "LDAP",
    3306: "MySQL", 3389: "RDP", 5061: "SIP", 5223: "XMPP", 5349: "STUN", 5432: "PostgreSQL",
    5551: "RabbitMQ streams", 6379: "Redis", 6380: "Redis", 6443: "Kubernetes", 6514: "syslog",
    8443: "HTTPS", 8883: "MQTT", 9042: "Cassandra", 9092: "Kafka", 9093: "Kafka", 9094: "Kafka",
    9200: "Elasticsearch", 9443: "HTTPS", 10250: "Kubernetes", 15671: "RabbitMQ management",
    15691: "RabbitMQ metrics", 25672: "RabbitMQ nodes", 27017: "MongoDB", 61614: "STOMP",
}  # fmt: skip
"""Ports on which TLS carries another protocol, unless AMQP is expected there."""

NAMES_SHOWN = 3
"""Names of a certificate that are shown."""

MAX_OFFERED = 128
"""Cipher suites of a ClientHello that are told: openssl's whole list has 90."""


class Trouble(NamedTuple):
    """Something wrong with a conversation: the finding's code, its detail, and the packet."""

    code: str
    detail: str
    number: int | None = None
    ts_ns: int | None = None


def suspicion(tls: TlsConversation, port: int, ports: Collection[int]) -> str:
    """Why a conversation may be AMQP, in words; empty when nothing speaks for it."""
    hello = tls.handshake.client
    offered = hello.protocols if hello is not None else ()
    names = [name for name in (tls.handshake.protocol, *offered) if name.startswith("amqp")]
    if names:
        return f"AMQP by its ALPN, {names[0]}"
    if tls.octets[0] or tls.octets[1]:
        return ""
    if port == AMQPS_PORT:
        return f"perhaps AMQP: port {AMQPS_PORT} is the one of AMQP over TLS"
    return f"perhaps AMQP: port {port}" if port in ports else ""


def _undecided(tls: TlsConversation, port: int) -> str:
    """Why a conversation that nothing speaks for may be AMQP still; empty when it is not."""
    hello = tls.handshake.client
    offered = hello.protocols if hello is not None else ()
    if tls.octets[0] or tls.octets[1] or tls.handshake.protocol or offered:
        return ""
    if port in OTHER_PROTOCOLS:
        return ""
    return f"perhaps AMQP: neither port {port} nor the ALPN names another protocol"


def facts(tls: TlsConversation, conversation: Any) -> dict[str, Any]:
    """What is known of a conversation; None where it is not."""
    told = tls.handshake
    client = tls.client_of(conversation)
    packets, octets = conversation.packets, conversation.octets
    ends = (conversation.a, conversation.b)
    hello, certificate, named = told.client, told.certificate, columns(tls)
    offered = hello.protocols if hello is not None else ()
    return {
        "connection_id": conversation.connection_id,
        "client": ends[client],
        "server": ends[1 - client],
        "first_packet_number": conversation.first_packet_number,
        "last_packet_number": conversation.last_packet_number,
        "start_ns": conversation.start_ns if conversation.start_ns > 0 else None,
        "end_ns": conversation.end_ns if conversation.end_ns > 0 else None,
        "version": named["tls_version"],
        "version_offered": version_offered(tls) or None,
        "cipher": named["tls_cipher"],
        "ciphers_offered": ciphers_offered(tls),
        "server_name": named["tls_server_name"],
        "protocols_offered": list(offered),
        "protocol": told.protocol or None,
        "resumed": told.resumed if told.server is not None else None,
        "certificate": None if certificate is None else _certificate(certificate),
        "client_certificate": (
            None if told.client_certificate is None else _certificate(told.client_certificate)
        ),
        "alerts": [
            {
                "sender": "client" if alert.direction == client else "server",
                "description": alert.description,
                "packet_number": alert.number,
            }
            for alert in tls.alerts
        ],
        "client_packets": packets[client],
        "server_packets": packets[1 - client],
        "client_octets": octets[client],
        "server_octets": octets[1 - client],
        "ended": conversation.ended,
        "opened": tls.state == OPENED,
        "why": tls.why or None,
    }


def columns(tls: TlsConversation) -> dict[str, str | None]:
    """The columns of the connections table."""
    told = tls.handshake
    return {
        "tls_version": version(tls) or None,
        "tls_cipher": told.suite.name if told.suite is not None else None,
        "tls_server_name": (told.client.server_name if told.client is not None else "") or None,
    }


def version(tls: TlsConversation) -> str:
    """The version agreed on; empty while the server has not chosen."""
    server = tls.handshake.server
    return "" if server is None else _version(server.version)


def version_offered(tls: TlsConversation) -> str:
    """The highest version that the client offers; empty without its first message."""
    client = tls.handshake.client
    return "" if client is None else _version(client.version)


def ciphers_offered(tls: TlsConversation) -> list[str]:
    """Names of the cipher suites that the client offers, in its order of preference."""
    client = tls.handshake.client
    return [] if client is None else [suite_of(one).name for one in client.suites[:MAX_OFFERED]]


def _version(number: int) -> str:
    return VERSIONS.get(number, f"version 0x{number:04x}")


def _certificate(certificate: Any) -> dict[str, Any]:
    return {
        "names": list(certificate.names),
        "issuer": certificate.issuer or None,
        "expires": certificate.expires or None,
    }


def troubles(
    tls: TlsConversation, conversation: Any, ports: Collection[int], is_amqp: bool
) -> Iterator[Trouble]:
    """What is wrong with a conversation that is AMQP, or may be."""
    port = conversation.ports[1 - tls.client_of(conversation)]
    why = suspicion(tls, port, ports)
    if not (is_amqp or why):
        why = _undecided(tls, port)
        if why and tls.why and not tls.alerts:
            yield _unread(tls, why)
        return
    yield from _alerts(tls, conversation)
    server = tls.handshake.server
    if tls.damaged is not None:
        direction, number, ts_ns = tls.damaged
        side = "client" if direction == tls.client_of(conversation) else "server"
        yield Trouble("tls-record-damaged", f"a record of the {side}; {_shown(tls)}", number, ts_ns)
    if server is not None:
        yield from _weaknesses(tls, conversation)
    if tls.state == OPENED or tls.alerts:
        return
    if server is None and not tls.why:
        if conversation.ended is not None and not any(conversation.gaps):
            yield Trouble("tls-handshake-unanswered", f"{_shown(tls)}; {_ended(conversation)}")
        return
    yield _unread(tls, "" if is_amqp else why)


def _unread(tls: TlsConversation, suspected: str) -> Trouble:
    code = "tls-keys-wrong" if tls.why == KEYS_MISFIT else "tls-unreadable"
    detail = f"{tls.why}; {_shown(tls)}"
    return Trouble(code, f"{suspected}; {detail}" if suspected else detail)


def _ended(conversation: Any) -> str:
    ends = {"fin": "the connection was closed", "rst": "the connection was reset"}
    return ends.get(conversation.ended, "the connection ended")


def _alerts(tls: TlsConversation, conversation: Any) -> Iterator[Trouble]:
    client = tls.client_of(conversation)
    for alert in tls.alerts:
        side = "client" if alert.direction == client else "server"
        detail = f"the {side} sent {alert.description}; {_shown(tls)}"
        yield Trouble("tls-alert", detail, alert.number, alert.ts_ns)


def _weaknesses(tls: TlsConversation, conversation: Any) -> Iterator[Trouble]:
    server, certificate = tls.handshake.server, tls.handshake.certificate
    assert server is not None
    if server.version < TLS_1_2:
        yield Trouble("tls-outdated", _shown(tls))
    if certificate is not None and certificate.expires and conversation.start_ns > 0:
        from datetime import datetime, timezone

        day = datetime.fromtimestamp(conversation.start_ns // 1_000_000_000, timezone.utc).date()
        if certificate.expires < day.isoformat():
            names = ", ".join(certificate.names[:NAMES_SHOWN])
            yield Trouble(
                "tls-certificate-expired",
                f"the certificate of {names} expired on {certificate.expires}",
            )


def _shown(tls: TlsConversation) -> str:
    """Version, cipher and names in one line."""
    told = tls.handshake
    offered = version_offered(tls)
    agreed = version(tls) or (f"{offered} offered" if offered else "")
    parts = [part for part in (agreed, told.suite.name if told.suite else "") if part]
    if told.client is not None and told.client.server_name:
        parts.append(f"server name {told.client.server_name}")
    if told.certificate is not None and told.certificate.names:
        parts.append(f"certificate {', '.join(told.certificate.names[:NAMES_SHOWN])}")
    if told.protocol:
        parts.append(f"ALPN {told.protocol}")
    return ", ".join(parts) or "no handshake was captured"
