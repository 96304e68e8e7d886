"""What rules remember is bounded, and what they fold is told apart by capture."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from amqpsniff.decode import non_amqp
from amqpsniff.decode.state import Connection
from amqpsniff.findings import FindingLog
from amqpsniff.findings.log import MAX_PLACES
from amqpsniff.session.entities import Session
from amqpsniff.session.rules.context import RuleContext
from amqpsniff.session.rules.shared_state import MAX_KEPT, remembered, report_once


def _context(capture: str = "a.pcap", number: int = 1, tracker: Any = None) -> RuleContext:
    ends = {"a": "10.0.0.1:1", "b": "10.0.0.2:2", "ports": (1, 2), "syn_seen": True}
    peer = Connection(SimpleNamespace(connection_id=f"{capture}{number}", **ends))
    tracker = tracker or SimpleNamespace(log=FindingLog(), shared={})
    return RuleContext(tracker, Session(peer, capture, number), None, number, number)


def test_the_oldest_is_forgotten() -> None:
    context = _context()
    for key in range(MAX_KEPT + 10):
        remembered(context, "name", key, list).append(key)
    assert len(context.shared["name"]) == MAX_KEPT
    assert remembered(context, "name", 10, list) == [10]
    assert remembered(context, "name", 0, list) == []


def test_one_finding_for_all_captures() -> None:
    first = _context()
    for capture, number in (("a.pcap", 1), ("a.pcap", 2), ("b.pcap", 3)):
        context = _context(capture, number, first.tracker)
        report_once(context, "connection-unnamed", "key", lambda: "detail")
    found = first.tracker.log.take()
    assert [(row.capture, row.count, row.last_packet_number) for row in found] == [("a.pcap", 3, 3)]


def test_without_a_place_nothing_is_put_into_words() -> None:
    first, worded = _context(), []
    for number in range(1, MAX_PLACES + 4):
        context = _context(number=number, tracker=first.tracker)
        report_once(context, "connection-unnamed", number, lambda: worded.append(1) or "detail")
    *placed, rest, _ = first.tracker.log.take()
    assert len(worded) == len(placed) == MAX_PLACES
    assert (rest.count, rest.packet_number) == (3, MAX_PLACES + 1)
    assert rest.last_packet_number == MAX_PLACES + 3


def test_silent_clients_are_so_many() -> None:
    found = FindingLog()
    seen = non_amqp.NonAmqpReporter(found, {5672})
    for number in range(non_amqp.MAX_CLIENTS + 5):
        conversation = SimpleNamespace(
            a=f"10.0.{number >> 8}.{number & 255}:1",
            b="10.9.9.9:5672",
            connection_id=str(number),
            syn_seen=True,
            ended="fin",
            ended_by=0,
            packets=(3, 3),
            octets=(0, 0),
            gaps=(0, 0),
            cut_bytes=(0, 0),
            first_packet_number=1,
            start_ns=1,
            ports=(1, 5672),
            starts=(1, 1),
            tls=None,
        )
        seen.ended(
            SimpleNamespace(
                conversation=conversation, is_amqp=False, client_direction=-1, capture="a.pcap"
            )
        )
    assert len(found.take()) == non_amqp.MAX_CLIENTS
