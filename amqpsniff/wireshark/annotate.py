"""A capture with the findings and outcomes of its packets as packet comments.

Findings are at the first packet and the last one that they name. A message has its outcome, and the
packet of the outcome names its messages; a delivery names its publish, a reply its request, a
synchronous request its reply. Packets keep their numbers.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import IO, Any

from amqpsniff.errors import OutputError, UsageError
from amqpsniff.tables.values import values
from amqpsniff.units import count, duration
from amqpsniff.wire_text import harmless, word
from amqpsniff.wireshark.copying import PacketCopier

MAX_PER_PACKET = 20
"""Comments of a packet: a large packet may hold a hundred small messages."""

MAX_SETTLED = 5
"""Messages that are named where their outcome was decided."""

_MESSAGES = (
    "packet_number", "method", "exchange", "routing_key", "queue", "message_id", "outcome",
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
        written_bytes: Bytes written.
    """

    packets: int = 0
    commented: int = 0
    written_bytes: int = 0


def annotate(capture: Any, sink: IO[bytes]) -> Iterator[Annotated]:
    """Write a capture with comments as pcapng to a binary file.

    Gives the progress, always the same object, from time to time and at the end. Raises UsageError
    for several captures, whose packets could not keep their numbers, and for one that can be read
    only once; OutputError where the temporary folder has no room for the comments.
    """
    if len(capture.names) != 1:
        raise UsageError("annotate writes one capture; put several together with cut first")
    capture.check_read_again("annotate")
    done = Annotated()
    comments = _Comments()
    for table, batch in capture.tables(*_COLUMNS, encoded=True, columns=_COLUMNS):
        comments.add(table, batch)
        yield done
    with capture.packets() as packets:
        comments_by_packet = comments.by_packet()
        number, texts = next(comments_by_packet, _NO_MORE)
        copier = PacketCopier(packets, sink)
        batch = None
        for batch in packets:
            copier.begin(batch)
            for row in range(batch.begin, batch.end):
                while number < batch.number[row]:
                    number, texts = next(comments_by_packet, _NO_MORE)
                packet_texts = texts if number == batch.number[row] else []
                done.commented += bool(packet_texts)
                copier.write(batch, row, packet_texts, numbered=True)
            done.packets, done.written_bytes = copier.packets, copier.octets
            yield done
        copier.finish(batch, counts=True)
    done.written_bytes = copier.octets
    yield done


def said_of_finding(severity: str, code: str, title: str, detail: str | None) -> str:
    """The comment for a finding."""
    return f"{severity} {code}: {title}" + (f" ({harmless(detail)})" if detail else "")


_NO_MORE: tuple[float, list[str]] = (float("inf"), [])
_OUTCOMES = ("confirmed", "rejected", "acked", "requeued", "discarded", "returned")

Comment = tuple[int, int, str]
"""(packet number, place among the comments of the packet, text). The place is 0 for findings, 1 for
messages and replies; above are `_OUTCOMES`, with the number of a packet as text."""


@contextmanager
def _room() -> Iterator[None]:
    """Raises OutputError where the temporary file cannot grow."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise OutputError(f"comments wait in the temporary folder: {error}") from None


def _messages_of(packet: str, number: int) -> str:
    """A packet, with the number of its messages if there are several."""
    return packet if number == 1 else f"{packet} ({count(number)} messages)"


class _Comments:
    """Comments by packet, in a temporary file until they are written."""

    def __init__(self) -> None:
        self._file = sqlite3.connect("")
        self._file.execute("create table comments (packet integer, place integer, text text)")

    def add(self, table: str, batch: Any) -> None:
        """Take a batch of one of the tables."""
        rows = zip(*(values(batch, name) for name in _COLUMNS[table]), strict=True)
        take: Callable[..., Iterable[Comment]] = getattr(self, f"_{table}")
        new_comments = (comment for row in rows for comment in take(*row))
        with _room():
            self._file.executemany("insert into comments values (?, ?, ?)", new_comments)

    def by_packet(self) -> Iterator[tuple[int, list[str]]]:
        """Packets that have comments, in order, each with its comments."""
        with _room():  # they are put in order at once
            rows = self._file.execute("select * from comments order by packet, place, rowid")
        for number, of_packet in groupby(rows, key=itemgetter(0)):
            chosen: list[str] = []
            left_out = 0
            for order, alike in groupby(of_packet, key=itemgetter(1)):
                texts = [text for _, _, text in alike]
                if order > 1:
                    packets = [_messages_of(*packet) for packet in Counter(texts).items()]
                    unnamed = len(packets) - MAX_SETTLED
                    listed = ", ".join(packets[:MAX_SETTLED])
                    listed += f" and {count(unnamed)} more" if unnamed > 0 else ""
                    texts = [f"{_OUTCOMES[order - 2]}: what was sent in packet {listed}"]
                left_out += max(len(chosen) + len(texts) - MAX_PER_PACKET, 0)
                chosen += texts[: MAX_PER_PACKET - len(chosen)]
            yield number, [*chosen, *([f"and {count(left_out)} more"] if left_out else ())]

    def _findings(
        self, number: int | None, severity: str, code: str, title: str, detail: str | None,
        times: int, last: int | None, cause: str | None, cause_number: int | None,
    ) -> Iterator[Comment]:  # fmt: skip
        if number is None:
            return
        text = said_of_finding(severity, code, title, detail)
        if cause is not None:
            text += f"; because of {cause}" + (f" in packet {cause_number}" if cause_number else "")
        is_repeated = times > 1 and last not in (None, number)
        if is_repeated:
            text += f"; {count(times)} times, the last in packet {last}"
        yield number, 0, text
        if is_repeated and last is not None:
            text = f"{severity} {code}: the last of {count(times)}, the first in packet {number}"
            yield last, 0, text

    def _frames(
        self, number: int, method: str, reply: int | None, reply_ns: int | None
    ) -> Iterator[Comment]:
        if reply is not None:
            yield number, 1, f"{method}: answered in packet {reply} after {duration(reply_ns)}"
            yield reply, 1, f"answers {method} in packet {number}"

    def _messages(
        self, number: int, method: str, exchange: str | None, routing_key: str | None,
        queue: str | None, message_id: str | None, outcome: str | None, decided: int | None,
        decided_ns: int | None, connection: str, published: int | None, publisher: str | None,
        published_ns: int | None, confidence: str | None, request: int | None,
        requester: str | None, request_ns: int | None, late: bool | None,
    ) -> Iterator[Comment]:  # fmt: skip
        label = f"{method} {word(exchange or '(default)')} {word(routing_key or '')}"
        if exchange is None and routing_key is None:  # what AMQP 1.0 delivers
            label = f"{method} {word(queue)}" if queue else method
        label += f" message {word(message_id)}" if message_id else ""
        parts = []
        if outcome is not None:
            at = "" if decided is None else f" in packet {decided} after {duration(decided_ns)}"
            parts.append(f"{outcome}{at}")
        if published is not None:
            connection_text = (
                "" if publisher == connection else f" of connection {(publisher or '')[:8]}"
            )
            sure = "" if confidence == "exact" else f" ({confidence})"
            after = f", {duration(published_ns)} before"
            parts.append(f"published in packet {published}{connection_text}{after}{sure}")
        if request is not None:
            connection_text = (
                "" if requester == connection else f" of connection {(requester or '')[:8]}"
            )
            reply = "late reply" if late else "reply"
            after = f", {duration(request_ns)} before"
            parts.append(f"{reply} to the request in packet {request}{connection_text}{after}")
        if parts:
            yield number, 1, f"{label}: {'; '.join(parts)}"
        if outcome in _OUTCOMES and decided not in (None, number):
            yield decided or 0, 2 + _OUTCOMES.index(outcome), str(number)
