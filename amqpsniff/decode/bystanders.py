"""Conversations with a broker that say nothing, or are encrypted: what is to be said of them."""

from __future__ import annotations

from typing import Any

from amqpsniff.columns import NUMBER_BITS, NUMBER_MASK
from amqpsniff.findings import Finding, FindingLog
from amqpsniff.findings.records import order_of_end
from amqpsniff.spec import PROTOCOL_HEADER_OCTETS

MOST_CLIENTS = 10_000
"""Clients remembered, each with one finding; those beyond are not reported."""


class Bystanders:
    """Reports conversations that are not read, one finding for each client, server and kind."""

    def __init__(self, log: FindingLog) -> None:
        self._log = log
        self._first: dict[tuple[str | None, ...], Finding] = {}

    def ended(self, conversation: Any, capture: str | None) -> None:
        """A conversation with a port of brokers is over, and was not AMQP."""
        if _is_silent(conversation):
            octets = conversation.octets[0]
            said = f"after {octets} octets" if octets else "without a word"
            detail = f"the client connected and left {said}"
            self._say("connection-silent", detail, conversation, capture)

    def encrypted(self, connection: Any, ports: frozenset[int], places: list[str]) -> None:
        """A TLS conversation is over, whether it could be read or not.

        `ports` are those of brokers, `places` the captures that numbers of packets speak of.
        """
        conversation = connection.conversation
        tls = conversation.tls
        client = tls.client_of(conversation)
        for code, detail, at, ts_ns in tls.troubles(conversation, ports, connection.is_amqp):
            number, capture = at, connection.capture
            if at is not None and at >> NUMBER_BITS < len(places):
                number, capture = at & NUMBER_MASK, places[at >> NUMBER_BITS]
            self._say(code, detail, conversation, capture, client, number, ts_ns)

    def _say(
        self,
        code: str,
        detail: str,
        conversation: Any,
        capture: str | None,
        side: int = 0,
        number: int | None = None,
        ts_ns: int | None = None,
    ) -> None:
        ends = (conversation.a, conversation.b)
        client, server = ends[side], ends[1 - side]
        host = (client or "").rpartition(":")[0]
        key = (code, capture, host, server)
        records = self._log.recorded
        if number is None:
            number, ts_ns = conversation.first_packet_number or None, conversation.start_ns
        finding = Finding(
            code,
            detail,
            capture=capture,
            packet_number=number,
            ts_ns=ts_ns if ts_ns is not None and ts_ns > 0 else None,
            connection_id=conversation.connection_id,
            client=client,
            server=server,
        )
        if records is not None:
            place = (capture, number, finding.ts_ns, finding.connection_id, client, server)
            records.seen(order_of_end(conversation, capture), key, lambda: detail, place)
            return
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
