"""Conversations with a broker's port that say nothing, or nothing that can be read."""

from __future__ import annotations

from typing import Any

from amqpsniff.findings import Finding, FindingLog

MOST_CLIENTS = 10_000
"""Clients remembered, each with one finding; those beyond are not reported."""

PROTOCOL_HEADER_OCTETS = 8

_TLS = b"\x16\x03"
"""What TLS begins with: a handshake record, version 3."""


class Bystanders:
    """Reports conversations that were not AMQP, one finding for each client, server and kind."""

    def __init__(self, log: FindingLog) -> None:
        self._log = log
        self._first: dict[tuple[str | None, ...], Finding] = {}

    def ended(self, conversation: Any, first_octets: bytes, capture: str | None) -> None:
        """A conversation with a port of brokers is over, and was not AMQP."""
        if first_octets.startswith(_TLS):
            detail = "the payload is TLS, and nothing of it can be read"
            self._say("capture-inconclusive", detail, conversation, capture)
        elif _is_silent(conversation):
            octets = conversation.octets[0]
            said = f"after {octets} octets" if octets else "without a word"
            detail = f"the client connected and left {said}"
            self._say("connection-silent", detail, conversation, capture)

    def _say(self, code: str, detail: str, conversation: Any, capture: str | None) -> None:
        client, server = conversation.a, conversation.b
        host = (client or "").rpartition(":")[0]
        key = (code, capture, host, server)
        number = conversation.first_packet_number or None
        finding = Finding(
            code,
            detail,
            capture=capture,
            packet_number=number,
            ts_ns=conversation.start_ns if conversation.start_ns > 0 else None,
            connection_id=conversation.connection_id,
            client=client,
            server=server,
        )
        first = self._first.get(key)
        if first is not None:
            finding.connection_id = first.connection_id
            finding.last_packet_number = number
        elif len(self._first) < MOST_CLIENTS:
            self._first[key] = finding
        else:
            return
        self._log.add(finding)


def _is_silent(conversation: Any) -> bool:
    """Whether both sides met, and the client ended less than a protocol header."""
    return bool(
        conversation.syn_seen
        and conversation.ended is not None
        and conversation.packets[0] > 1  # more than a SYN that was refused
        and conversation.packets[1]
        and conversation.octets[0] < PROTOCOL_HEADER_OCTETS
        and not conversation.octets[1]
        and not sum(conversation.gaps)
        and not sum(conversation.cut_octets)
    )
