"""Live traffic as an interface in Wireshark's list: its external capture interface, extcap.

Wireshark runs a program of its extcap folder several times: to list its interfaces,
what link types and what options each has, and at last to write packets as pcapng into a FIFO. The
answers are sentences, which this module makes. Packets are held for a moment before they are
written, so that findings stand at their packets as comments; one that is made later stands at the
next packet and names its own.

Source: Wireshark Developer's Guide, section 8.2, Adding Capture Interfaces And Log Sources.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import IO, Any

from amqpsniff.capture.live_capture import ANY
from amqpsniff.capture.packets import PacketBatch
from amqpsniff.capture.pcapng_writer import PcapngWriter, comment_option
from amqpsniff.tables.values import values
from amqpsniff.wireshark.annotate import said_of_finding

INTERFACE = "amqpsniff"
"""The interface as Wireshark and `tshark -i` call it."""

HOLD_SECONDS = 0.25
"""Time that a packet waits for its findings: the rows of a live run are made every 0.1 s."""

_ETHERNET = 1
_FINDINGS = ("packet_number", "last_packet_number", "severity", "code", "title", "detail", "count")


def interfaces(version: str) -> str:
    """The sentences that name this program's version and the interface."""
    return (
        f"extcap {{version={version}}}\n"
        f"interface {{value={INTERFACE}}}{{display=AMQP, with findings as packet comments}}\n"
    )


def link_types() -> str:
    """The sentence for the link type; the written capture has the types of its packets itself."""
    return f"dlt {{number={_ETHERNET}}}{{name=EN10MB}}{{display=Ethernet}}\n"


def arguments(names: Iterable[str]) -> str:
    """The sentences for the options, which Wireshark shows as a dialog.

    `names` are those of the machine's network interfaces.
    """
    lines = [
        "arg {number=0}{call=--interface}{display=Network interface}{type=selector}",
        f"value {{arg=0}}{{value={ANY}}}{{display=all}}{{default=true}}",
        *(f"value {{arg=0}}{{value={name}}}{{display={name}}}" for name in names),
        (
            "arg {number=1}{call=--port}{display=Ports}{type=string}"
            "{tooltip=Only these ports: 5672 or 5672,5673. Any port where it is empty}"
        ),
        (
            "arg {number=2}{call=--tls-keylog}{display=TLS key log}{type=fileselect}"
            "{tooltip=A key log (SSLKEYLOGFILE) that opens TLS for the findings}"
        ),
    ]
    return "".join(f"{line}\n" for line in lines)


class CommentingWriter:
    """Writes the packets of a live run, with its findings as comments.

    Args:
        sink: Where pcapng is written.
        name_of: The name of an interface by the number that comes with a packet.
    """

    trouble: str | None = None
    """None for ever: a sink that breaks raises OSError instead."""

    def __init__(self, sink: IO[bytes], name_of: Callable[[int], str]) -> None:
        self._sink = sink
        self._name_of = name_of
        self._writer = PcapngWriter(sink)
        self._numbers: dict[tuple[int, int], int] = {}
        self._waiting: deque[tuple[float, int, int, int, bytes, int]] = deque()
        self._comments: dict[int, list[str]] = {}
        self._late: list[str] = []
        self._next = 1
        sink.flush()

    @property
    def octets(self) -> int:
        """Bytes written so far."""
        return self._writer.octets

    def write(self, batch: PacketBatch, interfaces: Sequence[int]) -> None:
        """Take the packets of a batch, with each one's interface."""
        now = time.monotonic()
        for at, row in enumerate(range(batch.begin, batch.end)):
            interface = self._number_of(interfaces[at], batch.link_type[row])
            octets, original = batch.packet(row), batch.original[row]
            self._waiting.append(
                (now, batch.number[row], interface, batch.ts_ns[row], octets, original)
            )

    def comment(self, findings: Any) -> None:
        """Take a batch of the findings table."""
        for row in zip(*(values(findings, name) for name in _FINDINGS), strict=True):
            number, last, severity, code, title, detail, times = row
            if number is None or not times:
                continue
            text = said_of_finding(severity, code, title, detail)
            if number >= self._next:
                self._comments.setdefault(number, []).append(text)
            elif times > 1 and last is not None and last >= self._next:
                repeats = f"{severity} {code}: {times} times, the first in packet {number}"
                self._comments.setdefault(last, []).append(repeats)
            else:
                self._late.append(f"packet {number}: {text}")

    def flush(self, *, everything: bool = False) -> None:
        """Write the packets that waited long enough."""
        due = time.monotonic() - HOLD_SECONDS
        while self._waiting and (everything or self._waiting[0][0] <= due):
            _, number, interface, ts_ns, octets, original = self._waiting.popleft()
            texts = [*self._comments.pop(number, ()), *self._late]
            self._late.clear()
            self._next = number + 1
            self._writer.packet(interface, ts_ns, octets, original, map(comment_option, texts))
        self._sink.flush()

    def close(self) -> None:
        """Write the packets that still wait."""
        self.flush(everything=True)

    def _number_of(self, interface: int, link_type: int) -> int:
        key = interface, link_type
        if key not in self._numbers:
            name = self._name_of(interface)
            self._numbers[key] = self._writer.interface(link_type, 0, name)
        return self._numbers[key]
