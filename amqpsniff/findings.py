"""Findings: what is worth a person's attention, as rows.

`KINDS` is the catalogue: one row per code with its severity, title and advice. A stage that sees
something calls `FindingLog.add` with a code and a place; the log keeps one finding per (code,
connection, channel) with a count, so that a million broken frames are one row and not a million.
"""

from dataclasses import dataclass
from typing import NamedTuple

SEVERITIES = ("info", "warning", "error")


class Kind(NamedTuple):
    """One row of the catalogue. `advice` says what to do; it may be empty."""

    code: str
    severity: str
    title: str
    advice: str


_ROWS = (
    # the capture
    Kind("capture-truncated", "warning", "The capture file is cut in the middle of a packet",
         "Everything before the cut was read; copy the file again if more was expected."),
    Kind("capture-damaged", "warning", "The capture file is damaged",
         "Everything before the damage was read; try pcapfix or editcap on the rest."),
    Kind("capture-unreadable", "error", "A capture could not be read",
         "Check the path and the format; editcap -F pcapng converts what tshark can read."),
    Kind("interface-dropped", "warning", "The capturing host dropped packets",
         "Capture with a larger buffer (tcpdump -B), a snap length or a narrower filter."),
    Kind("packets-cut", "info", "Packets were cut by the snap length",
         "Methods and sizes stay right where the cut fell into a body; capture with -s 0 for all."),
    # TCP
    Kind("tcp-gap", "warning", "Octets of a connection are missing from the capture",
         "Frames that lie in a hole are lost; see the interface's and the kernel's drop counters."),
    Kind("tcp-overlap-conflict", "warning", "A retransmission carries different octets",
         "The octets captured first were used; look for a broken middlebox or an injected packet."),
    Kind("tcp-buffer-limit", "warning", "Too many octets were waiting for a missing segment",
         "The hole was given up; frames in it are lost."),
    Kind("tcp-conversation-limit", "warning", "Too many conversations at once",
         "The least recently active ones were forgotten; narrow the capture with --port."),
    Kind("tcp-impossible-sequence", "warning", "A segment lies far outside the connection's window",
         "It was ignored; look for spoofed packets or a reused address and port."),
    Kind("midstream", "info", "The connection began before the capture",
         "Names, tuning and state agreed on before the first packet are unknown."),
    # protocol headers
    Kind("not-amqp", "error", "A client did not speak AMQP to an AMQP server",
         "Point the client at the right listener: TLS 5671, HTTP 15672, MQTT 1883, streams 5552."),
    Kind("protocol-header-unknown", "error", "A protocol header names an unknown version",
         "Compare with the versions the broker offers; it answers with its own header."),
    Kind("protocol-not-decoded", "warning", "The connection speaks a protocol not decoded here",
         "Only AMQP 0-8, 0-9 and 0-9-1 are decoded."),
    # frames
    Kind("frame-end-wrong", "error", "A frame does not end in the frame-end octet",
         "Framing was lost there; look for a client that writes from two threads."),
    Kind("frame-type-unknown", "error", "A frame has a type that no version defines",
         "RabbitMQ answers 501 FRAME_ERROR; look for a client that writes from two threads."),
    Kind("frame-type-unusual", "warning", "A frame has a type that no broker accepts today",
         "Types 4 to 7, 9 and 10 were defined for 0-8 and 0-9 only."),
    Kind("frame-too-large", "error", "A frame is larger than the negotiated frame-max",
         "The client must split bodies at frame-max minus 8 octets."),
    Kind("heartbeat-malformed", "error", "A heartbeat has a payload or a channel",
         "A heartbeat is an empty frame on channel 0."),
    Kind("resynchronized", "info", "Framing was found again after octets that could not be read",
         "The frames between are lost."),
    Kind("undecoded", "warning", "Octets of an AMQP connection could not be read as frames", ""),
    # methods
    Kind("method-unknown", "error", "A method has unknown class and method numbers",
         "RabbitMQ resets the connection on it; check for a client of another broker."),
    Kind("arguments-truncated", "error", "A method's arguments end before its last argument",
         "RabbitMQ answers 501; the client encodes the method wrongly."),
    Kind("arguments-trailing", "warning", "Octets are left over after a method's last argument",
         "Often another dialect of AMQP; the arguments before them were read."),
    Kind("arguments-cut", "info", "Arguments of methods were not captured whole",
         "Only what was captured is shown; capture with a larger snap length."),
    Kind("field-tag-unknown", "warning", "A field table uses an unknown tag",
         "The rest of that table is kept as octets; brokers drop the connection on such tags."),
    Kind("field-tag-unusual", "info", "A field table uses a tag that brokers do not accept",
         "RabbitMQ answers 541 or drops the connection; the client's library is at fault."),
    Kind("field-table-malformed", "error", "A field table does not decode exactly",
         "RabbitMQ answers 501 or 541; the client encodes the table wrongly."),
    Kind("field-table-too-deep", "error", "A field table is nested too deeply",
         "The inner tables are kept as octets."),
    Kind("field-name-duplicate", "warning", "A field table names a field twice",
         "Clients differ in which of the values they use."),
    Kind("text-not-utf8", "warning", "A short string is not valid UTF-8",
         "RabbitMQ answers 501; the client's encoding is wrong."),
    Kind("number-out-of-range", "warning", "A number does not fit a signed 64-bit column",
         "The column is null; the arguments show the number."),
    Kind("timestamp-milliseconds", "info", "A timestamp looks like milliseconds, not seconds",
         "AMQP timestamps are seconds since 1970; it was read as milliseconds."),
    # content
    Kind("content-unexpected-frame", "error", "A content frame came where none was expected",
         "RabbitMQ answers 505; look for two threads publishing on one channel."),
    Kind("content-interrupted", "error", "A method came before the content before it was complete",
         "RabbitMQ answers 505; look for two threads publishing on one channel."),
    Kind("content-body-longer", "error", "A body is longer than its content header declares",
         "The client's body size is wrong; the octets past it were not counted."),
    Kind("content-body-shorter", "error", "A body is shorter than its content header declares",
         "The client's body size is wrong, or two threads publish on one channel."),
    Kind("content-class-wrong", "error", "A content header has another class than its method", ""),
    Kind("content-weight", "error", "A content header has a weight other than zero",
         "RabbitMQ answers 505."),
    Kind("properties-malformed", "error", "Content properties do not decode exactly", ""),
    Kind("property-flags-undefined", "warning", "A content header sets undefined property flags",
         ""),
    Kind("body-limit", "warning", "A body is larger than this program keeps",
         "Its size is right, its octets are not kept."),
    Kind("channel-limit", "warning", "Too many contents were open at once", ""),
)  # fmt: skip

KINDS: dict[str, Kind] = {kind.code: kind for kind in _ROWS}
"""The catalogue by code."""

MAX_FINDINGS = 100_000
"""Distinct findings kept; an attacker could otherwise make one per connection without end."""


@dataclass(slots=True)
class Finding:
    """One finding: where it was seen first, how often, and where last.

    Everything but `code`, `detail` and `count` may be None: not known, or not about a packet.
    """

    code: str
    detail: str
    capture: str | None = None
    packet_number: int | None = None
    ts_ns: int | None = None
    connection_id: str | None = None
    client: str | None = None
    server: str | None = None
    channel: int | None = None
    count: int = 1
    last_packet_number: int | None = None

    @property
    def kind(self) -> Kind:
        """The catalogue's row for this finding's code."""
        return KINDS[self.code]


class FindingLog:
    """Collects findings, folding those of one code, connection and channel into one.

    At most `MAX_FINDINGS` distinct ones are kept; `forgotten` counts the rest.
    """

    def __init__(self) -> None:
        self._findings: dict[tuple[object, ...], Finding] = {}
        self.forgotten = 0

    def add(self, finding: Finding) -> None:
        """Record one occurrence; a code that is not in the catalogue is a `KeyError`."""
        KINDS[finding.code]
        where = finding.connection_id or finding.capture
        key = (finding.code, where, finding.channel)
        known = self._findings.get(key)
        if known is not None:
            known.count += finding.count
            known.last_packet_number = finding.last_packet_number or finding.packet_number
        elif len(self._findings) < MAX_FINDINGS:
            if finding.last_packet_number is None:
                finding.last_packet_number = finding.packet_number
            self._findings[key] = finding
        else:
            self.forgotten += 1

    def take(self) -> list[Finding]:
        """All findings in the order first seen; the log is empty afterwards."""
        findings = list(self._findings.values())
        self._findings.clear()
        return findings
