"""A capture with what was found out about its packets, as packet comments.

Findings stand at the first packet and the last one that they name. A message says what became of
it, the packet that decided so says of which messages; a delivery names its publish, a reply its
request, a synchronous request its reply. Packets keep their numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, Any

from amqpsniff.errors import UsageError
from amqpsniff.tables.values import values
from amqpsniff.units import count, duration
from amqpsniff.wire_text import harmless, word
from amqpsniff.wireshark.copying import PacketCopier

MAX_COMMENTS = 1_000_000
"""Packets with comments on messages and replies, some 300 bytes each; findings are always told."""

MAX_PER_PACKET = 20
"""Comments of a packet: a large packet may hold a hundred small messages."""

MAX_SETTLED = 5
"""Messages that are named where their outcome was decided."""

_MESSAGES = (
    "packet_number", "method", "exchange", "routing_key", "message_id", "outcome",
    "outcome_packet_number", "outcome_ns", "connection_id", "published_packet_number",
    "published_connection_id", "published_ns", "link_confidence", "request_packet_number",
    "request_connection_id", "request_ns", "reply_late",
)  # fmt: skip
_FRAMES = ("packet_number", "method", "response_packet_number", "response_ns")
_FINDINGS = (
    "packet_number", "severity", "code", "title", "detail", "count", "last_packet_number",
    "cause_code", "cause_packet_number",
)  # fmt: skip
_COLUMNS = {"findings": _FINDINGS, "frames": _FRAMES, "messages": _MESSAGES}


@dataclass
class Annotated:
    """The result of writing.

    Attributes:
        packets: Packets written.
        commented: Those of them that have a new comment.
        octets: Bytes written.
        left_out: True if there were more messages than comments are remembered for.
    """

    packets: int = 0
    commented: int = 0
    octets: int = 0
    left_out: bool = False


def annotate(capture: Any, sink: IO[bytes]) -> Iterator[Annotated]:
    """Write a capture with comments as pcapng to a binary file.

    Gives what was done so far, the same object, now and then and at the end. Raises UsageError for
    more than one capture, whose packets could not keep their numbers, and for one that can be read
    only once.
    """
    if len(capture.names) != 1:
        raise UsageError("annotate writes one capture; put several together with cut first")
    if capture.once:
        raise UsageError(f"annotate reads a capture twice; save {capture.once[0]} to a file first")
    done = Annotated()
    comments = _Comments()
    for table, batch in capture.tables(*_COLUMNS, encoded=True, columns=_COLUMNS):
        comments.add(table, batch)
        yield done
    done.left_out = comments.left_out
    with capture.packets() as packets:
        copier = PacketCopier(packets, sink)
        batch = None
        for batch in packets:
            copier.begin(batch)
            for row in range(batch.begin, batch.end):
                said = comments.of(batch.number[row])
                done.commented += bool(said)
                copier.write(batch, row, said, numbered=True)
            done.packets, done.octets = copier.packets, copier.octets
            yield done
        copier.finish(batch, counts=True)
    done.octets = copier.octets
    yield done


def said_of_finding(severity: str, code: str, title: str, detail: str | None) -> str:
    """The comment for a finding."""
    return f"{severity} {code}: {title}" + (f" ({harmless(detail)})" if detail else "")


class _Comments:
    """Comments by packet; findings stand before what is said of messages."""

    def __init__(self) -> None:
        self.left_out = False
        self._of_findings: dict[int, list[str]] = {}
        self._others: dict[int, list[str]] = {}
        self._settled: dict[tuple[int, str], list[int]] = {}
        self._more: dict[int, int] = {}

    def add(self, table: str, batch: Any) -> None:
        """Take a batch of one of the tables."""
        rows = zip(*(values(batch, name) for name in _COLUMNS[table]), strict=True)
        take: Callable[..., None] = getattr(self, f"_{table}")
        for row in rows:
            take(*row)

    def of(self, number: int) -> list[str]:
        """The comments of a packet."""
        said = [*self._of_findings.get(number, ()), *self._others.get(number, ())]
        for outcome in ("confirmed", "rejected", "acked", "requeued", "discarded", "returned"):
            if numbers := self._settled.get((number, outcome)):
                named = ", ".join(map(str, numbers[1:]))
                more = numbers[0] - len(numbers) + 1
                rest = f" and {count(more)} more" if more else ""
                said.append(f"{outcome}: what was sent in packet {named}{rest}")
        more = self._more.get(number, 0) + max(len(said) - MAX_PER_PACKET, 0)
        return [*said[:MAX_PER_PACKET], *([f"and {count(more)} more"] if more else ())]

    def _findings(
        self, number: int | None, severity: str, code: str, title: str, detail: str | None,
        times: int, last: int | None, cause: str | None, cause_number: int | None,
    ) -> None:  # fmt: skip
        if number is None:
            return
        text = said_of_finding(severity, code, title, detail)
        if cause is not None:
            text += f"; because of {cause}" + (f" in packet {cause_number}" if cause_number else "")
        again = times > 1 and last not in (None, number)
        if again:
            text += f"; {count(times)} times, the last in packet {last}"
        self._of_findings.setdefault(number, []).append(text)
        if again and last is not None:
            text = f"{severity} {code}: the last of {count(times)}, the first in packet {number}"
            self._of_findings.setdefault(last, []).append(text)

    def _frames(self, number: int, method: str, reply: int | None, reply_ns: int | None) -> None:
        if reply is not None:
            self._say(number, f"{method}: answered in packet {reply} after {duration(reply_ns)}")
            self._say(reply, f"answers {method} in packet {number}")

    def _messages(
        self, number: int, method: str, exchange: str | None, routing_key: str | None,
        message_id: str | None, outcome: str | None, decided: int | None, decided_ns: int | None,
        connection: str, published: int | None, publisher: str | None, published_ns: int | None,
        confidence: str | None, request: int | None, requester: str | None,
        request_ns: int | None, late: bool | None,
    ) -> None:  # fmt: skip
        named = f"{method} {word(exchange or '(default)')} {word(routing_key or '')}".strip()
        named += f" message {word(message_id)}" if message_id else ""
        said = []
        if outcome is not None:
            at = "" if decided is None else f" in packet {decided} after {duration(decided_ns)}"
            said.append(f"{outcome}{at}")
        if published is not None:
            where = "" if publisher == connection else f" of connection {(publisher or '')[:8]}"
            sure = "" if confidence == "exact" else f" ({confidence})"
            after = f", {duration(published_ns)} before"
            said.append(f"published in packet {published}{where}{after}{sure}")
        if request is not None:
            where = "" if requester == connection else f" of connection {(requester or '')[:8]}"
            reply = "late reply" if late else "reply"
            after = f", {duration(request_ns)} before"
            said.append(f"{reply} to the request in packet {request}{where}{after}")
        if said:
            self._say(number, f"{named}: {'; '.join(said)}")
        if outcome is not None and decided not in (None, number):
            key = (decided or 0, outcome)
            if key not in self._settled and self._full():
                return
            numbers = self._settled.setdefault(key, [0])
            numbers[0] += 1
            if len(numbers) <= MAX_SETTLED:
                numbers.append(number)

    def _say(self, number: int, text: str) -> None:
        if number not in self._others and self._full():
            return
        said = self._others.setdefault(number, [])
        if len(said) < MAX_PER_PACKET:
            said.append(text)
        else:
            self._more[number] = self._more.get(number, 0) + 1

    def _full(self) -> bool:
        if len(self._others) + len(self._settled) < MAX_COMMENTS:
            return False
        self.left_out = True
        return True
