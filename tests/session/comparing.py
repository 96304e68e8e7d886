"""Rows of a script from the reference and from the engine, and short text to write them in a test.

    messages:
        p1 publish number=1 confirmed ack1 3ms
        d1 deliver queue=q acked a1 1ms
    replies:
        open channel.open -> opened 1ms
    channels:
        1.1 opened=open closed=close mode=confirm published=1 confirmed=1 unconfirmed=1/0 …
    connections:
        a vhost=/ user=guest … closed_by=client close_code=200

Packets are named by their labels in the script, others as `#7`. Null and zero are left out;
`unsettled` and `unconfirmed` are max/end, left out when both are 0, `?` when they are null. Replies
are those of labelled packets, `-` for a request without one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.session.connecting import CHANNEL, CONNECTION
from tests.session.events import DEFINED, Row, Rows
from tests.session.reference import expected
from tests.session.script import MS, START_NS, Fed, Script, feed

_REQUESTS = {row.name for row in DEFINED.values() if row.synchronous}
FRAMES = ("packet_number", "sender", "channel", "method", "response_packet_number", "response_ns")
MESSAGES = (
    "packet_number channel method publish_number queue outcome outcome_packet_number outcome_ns"
).split()

CONFIRMING = """
    handshake
    [open] C1: channel.open
    S1: channel.open-ok
    C1: confirm.select
    S1: confirm.select-ok
"""
"""A channel whose publishes are confirmed."""

CONSUMING = """
    handshake
    [open] C1: channel.open
    S1: channel.open-ok
    C1: basic.consume queue=q consumer_tag=c
    S1: basic.consume-ok consumer_tag=c
"""
"""A consumer on a channel of its own."""

FIVE = """
    [d] S1: basic.deliver consumer_tag=c delivery_tag=1
    & S1: basic.deliver consumer_tag=c delivery_tag=2
    & S1: basic.deliver consumer_tag=c delivery_tag=3
    & S1: basic.deliver consumer_tag=c delivery_tag=4
    & S1: basic.deliver consumer_tag=c delivery_tag=5
"""
"""Five deliveries to it in one packet."""


def by_reference(script: Script) -> Rows:
    """What the reference expects."""
    return expected(script.events, frozenset(script.midstream))


def by_engine(script: Script) -> Rows:
    """What the engine says."""
    fed = feed(script)
    frames = [row for row in _taken(fed, "frames", FRAMES) if row["method"] is not None]
    messages = _taken(fed, "messages", MESSAGES)
    channels = _taken(fed, "channels", ["channel", "incarnation", *CHANNEL])
    connections = _taken(fed, "connections", ["midstream", "protocol", *CONNECTION])
    return Rows(frames, messages, channels, connections)


def _taken(fed: Fed, table: str, columns: Any) -> list[Row]:
    rows = []
    for taken in fed.engine.take(table).to_pylist():
        row = {"connection": fed.names[taken["client"]]}
        for column in columns:
            value = taken[column]
            if column.endswith("packet_number") and value is not None:
                value = fed.numbers[value]
            row[column] = value
        rows.append(row)
    return rows


ENGINES: dict[str, Callable[[Script], Rows]] = {
    "reference": by_reference,
    "tracker": by_engine,
}
"""Who is asked for the rows of a script."""


def same(one: Rows, other: Rows) -> None:
    """Both have the same rows, in any order; a midstream connection's dialect is not compared."""
    for row in (*one.connections, *other.connections):
        if row["midstream"]:
            row.pop("protocol", None)
    for table in Rows._fields:
        rows, others = (_sorted(getattr(each, table)) for each in (one, other))
        assert rows == others, table


def _sorted(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: [str(row[name]) for name in sorted(row)])


# short text


class Shown:
    """Rows of a script as short text, a list of lines for each block."""

    def __init__(self, script: Script, rows: Rows) -> None:
        self._labels = {number: label for label, number in script.labels.items()}
        self._times = {event.packet: event.ts_ns for event in script.events}
        self.blocks = {
            "messages": [self._message(row) for row in rows.messages],
            "replies": [line for row in rows.frames for line in self._reply(row)],
            "channels": [self._channel(row) for row in rows.channels],
            "connections": [self._connection(row) for row in rows.connections],
        }

    def _name(self, packet: int) -> str:
        return self._labels.get(packet, f"#{packet}")

    def _message(self, row: Row) -> str:
        words = [self._name(row["packet_number"]), row["method"].partition(".")[2]]
        if row["publish_number"] is not None:
            words.append(f"number={row['publish_number']}")
        if row["queue"] is not None:
            words.append(f"queue={row['queue']}")
        words.append(row["outcome"] or "-")
        if row["outcome_packet_number"] is not None:
            words += [self._name(row["outcome_packet_number"]), _ms(row["outcome_ns"])]
        return " ".join(words)

    def _reply(self, row: Row) -> list[str]:
        label = self._labels.get(row["packet_number"])
        answered = row["response_packet_number"]
        if label is None or (answered is None and row["method"] not in _REQUESTS):
            return []
        answer = "-" if answered is None else f"{self._name(answered)} {_ms(row['response_ns'])}"
        return [f"{label} {row['method']} -> {answer}"]

    def _channel(self, row: Row) -> str:
        place = f"{row['channel']}.{row['incarnation']}"
        words = [place if row["connection"] == "a" else f"{row['connection']}.{place}"]
        for name, column, time in (
            ("opened", "opened_packet_number", "start_ns"),
            ("closed", "closed_packet_number", "end_ns"),
        ):
            if row[column] is not None:
                words.append(f"{name}={self._name(row[column])}")
            if row[time] != self._times.get(row[column]):
                words.append(f"{time}={_ms((row[time] or 0) - START_NS)}")
        for name in CHANNEL[4:]:
            if name.endswith("_max"):
                most, end = row[name], row[name[:-3] + "end"]
                if most is None and end is None:
                    words.append(f"{name[:-4]}=?")
                elif most or end:
                    words.append(f"{name[:-4]}={most}/{end}")
            elif not name.endswith("_end") and row[name]:
                words.append(_pair(name, row[name]))
        return " ".join(words)

    def _connection(self, row: Row) -> str:
        words = [row["connection"]]
        if row["midstream"]:
            words.append("midstream")
        for name in CONNECTION:
            if name == "blocked_ns":
                if row[name] is None:
                    words.append("blocked=?")
                elif row[name]:
                    words.append(f"blocked={_ms(row[name])}")
            elif row[name]:
                words.append(_pair(name, row[name]))
        return " ".join(words)


def _ms(ns: int) -> str:
    return f"{ns // MS}ms" if ns % MS == 0 else f"{ns}ns"


def _pair(name: str, value: Any) -> str:
    text = str(value)
    return f"{name}='{text}'" if " " in text else f"{name}={text}"


def check(ask: Callable[[Script], Rows], script: str, expects: str) -> None:
    """The rows of a script are those written down; blocks that are not written are not compared."""
    made = Script(script)
    shown = Shown(made, ask(made)).blocks
    blocks: dict[str, list[str]] = {}
    name = ""
    for line in expects.splitlines():
        text = line.strip()
        if text.endswith(":"):
            name = text[:-1]
            blocks[name] = []
        elif text:
            blocks[name].append(text)
    assert blocks, "nothing is expected"
    for name, written in blocks.items():
        assert sorted(shown[name]) == sorted(written), name
