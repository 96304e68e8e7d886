"""Findings of conversations with a broker that are silent, encrypted or not answered."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from amqpsniff.findings import Finding, FindingLog
from amqpsniff.findings.attempts import Attempts
from amqpsniff.findings.records import order_of_end
from amqpsniff.packet_numbers import NUMBER_BITS, NUMBER_MASK
from amqpsniff.spec import PROTOCOL_HEADER_BYTES
from amqpsniff.units import duration

MAX_CLIENTS = 10_000
"""Clients remembered, each with one finding; those beyond are not reported."""


class NonAmqpReporter:
    """Reports conversations that are not read, one finding for each client, server and kind.

    `ports` are those of brokers. `failed`: attempts to connect that failed, at any port.
    """

    def __init__(self, log: FindingLog, ports: Collection[int]) -> None:
        self.failed = 0
        self._log = log
        self._first: dict[tuple[str | None, ...], Finding] = {}
        self._attempts = Attempts() if log.recorded is None else log.recorded.attempts
        self._ports = frozenset(ports)
        self._attempts.ports |= self._ports
        self._foreseen: set[tuple[object, ...]] = set()

    def ended(self, connection: Any) -> None:
        """Any conversation is over, AMQP or not."""
        conversation, attempts = connection.conversation, self._attempts
        server = 1 if connection.client_direction < 0 else 1 - connection.client_direction
        port = conversation.ports[server]
        if connection.is_amqp:
            attempts.ports.add(port)
            attempts.served = True
            if conversation.syn_seen:
                attempts.established(conversation.b, conversation.start_ns)
            if not conversation.packets[server]:
                attempts.unheard((conversation.a, conversation.b)[server])
            if conversation.ended_by == server and conversation.ended is not None:
                end = (conversation.a, conversation.b)[server]
                attempts.ended(end, conversation, connection.last_capture or connection.capture)
        elif conversation.starts[1] is None and _is_failed(conversation):
            self.failed += 1
            key = attempts.failed(conversation, connection.capture)
            if key is not None and self._log.watched:
                self._count_further(attempts.known(key), conversation)
        elif conversation.syn_seen:
            attempts.served = attempts.served or port in self._ports
            attempts.established(conversation.b, conversation.start_ns)
            if conversation.tls is None and port in self._ports:
                self._silent(conversation, connection.capture)

    def finish(self) -> None:
        """End of all conversations: report the failed attempts to connect."""
        for key in self._foreseen:
            self._log.withdraw(key)
        if self._log.recorded is None:
            for finding in self._attempts.report():
                self._log.add(finding)

    def _count_further(self, finding: Finding, conversation: Any) -> None:
        """Report failing attempts provisionally; `finish` replaces these findings."""
        if self._log.foresee(finding):
            self._foreseen.add(finding.key)
        elif finding.key in self._foreseen:
            last = conversation.last_packet_number
            self._log.count_more(finding.code, finding.connection_id, None, None, 1, last)

    def _silent(self, conversation: Any, capture: str | None) -> None:
        if _is_silent(conversation):
            octets = conversation.octets[0]
            behavior = f"after {octets} bytes" if octets else "without a word"
            detail = f"the client connected and left {behavior}"
            if conversation.ended_by == 1:
                behavior = f"sent {octets} bytes" if octets else "said nothing"
                lasted = duration(max(0, conversation.ended_ns - conversation.start_ns))
                detail = f"the client connected and {behavior}; the server ended TCP after {lasted}"
            self._say("connection-silent", detail, conversation, capture)

    def encrypted(self, connection: Any, ports: frozenset[int], captures: list[str]) -> None:
        """A TLS conversation is over, whether it could be read or not.

        `ports` are those of brokers, `captures` the captures by their index in packet numbers.
        """
        conversation = connection.conversation
        tls = conversation.tls
        client = tls.client_of(conversation)
        if (
            connection.requested_protocol is not None
            and not tls.opened
            and tls.handshake.client is None
        ):
            self._plain(connection, captures)
            return
        for code, detail, at, ts_ns in tls.troubles(conversation, ports, connection.is_amqp):
            self._report_at(code, detail, connection, captures, client, at, ts_ns)

    def _plain(self, connection: Any, captures: list[str]) -> None:
        """A client sent a protocol header in clear, and the server answered with TLS."""
        conversation = connection.conversation
        answer, at, ts_ns = "TLS", None, None
        for alert in conversation.tls.alerts[:1]:
            answer, at, ts_ns = f"a TLS alert, {alert.description}", alert.number, alert.ts_ns
        detail = f"plain AMQP to a TLS port: the server answered with {answer}"
        self._report_at("server-not-amqp", detail, connection, captures, 0, at, ts_ns)

    def _report_at(
        self,
        code: str,
        detail: str,
        connection: Any,
        captures: list[str],
        side: int,
        at: int | None,
        ts_ns: int | None,
    ) -> None:
        """Report a finding at a packet number that includes the index of its capture."""
        number, capture = at, connection.capture
        if at is not None and at >> NUMBER_BITS < len(captures):
            number, capture = at & NUMBER_MASK, captures[at >> NUMBER_BITS]
        self._say(code, detail, connection.conversation, capture, side, number, ts_ns)

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
            location = (capture, number, finding.ts_ns, finding.connection_id, client, server)
            records.seen(order_of_end(conversation, capture), key, lambda: detail, location)
            return
        first = self._first.get(key)
        if first is not None:
            finding.connection_id = first.connection_id
            finding.last_packet_number = number
        elif len(self._first) < MAX_CLIENTS:
            self._first[key] = finding
        else:
            return
        self._log.add(finding)


def _is_silent(conversation: Any) -> bool:
    """True if both sides met, and the client ended less than a protocol header."""
    return _no_answer(conversation) and conversation.octets[0] < PROTOCOL_HEADER_BYTES


def is_unanswered(conversation: Any) -> bool:
    """True if the client sent only its protocol header, and the server nothing."""
    return _no_answer(conversation) and conversation.octets[0] >= PROTOCOL_HEADER_BYTES


def _is_failed(conversation: Any) -> bool:
    """True if a SYN was refused, or nothing came back."""
    refused = conversation.ended == "rst" and conversation.ended_by == 1
    return bool(
        conversation.syn_seen
        and not sum(conversation.octets)
        and not sum(conversation.gaps)
        and (refused or not conversation.packets[1])
    )


def _no_answer(conversation: Any) -> bool:
    """True if both sides met and it is over, and the server sent nothing."""
    return bool(
        conversation.ended is not None
        and conversation.syn_seen
        and conversation.packets[0] > 1  # more than a SYN that was refused
        and conversation.packets[1]
        and not conversation.octets[1]
        and not sum(conversation.gaps)
        and not sum(conversation.cut_bytes)
    )


def left_text(conversation: Any) -> str:
    """The side that ended a conversation without an answer, and the time until then, as text."""
    side = ("the client", "the server")[conversation.ended_by or 0]
    lasted = conversation.ended_ns - conversation.start_ns
    after = f" after {duration(lasted)}" if conversation.start_ns > 0 and lasted >= 0 else ""
    return f"{side} ended TCP{after} ({conversation.ended.upper()})"
