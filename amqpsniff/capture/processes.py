"""Processes of connections, as ptcpdump writes them into packet comments.

A packet has a comment for its process (`PID`, `Cmd`, `Args`), one for the container and one for the
pod, each a few lines of `name: value`. Lines count only at their place in the comment: arguments
and labels after them hold anything, secrets too, and are not read.

ptcpdump names the process that sends a packet, or that receives it if the sender runs elsewhere.
Its flags for the direction are those of an interface, which between containers are the other way
round. So a process is known to be the client's or the broker's only if both are named.

Source: https://github.com/mozillazg/ptcpdump, internal/writer/pcapng.go and bpf/ptcpdump.c.
"""

from __future__ import annotations

from collections import OrderedDict
from functools import lru_cache
from typing import Any, NamedTuple

from amqpsniff.capture.packets import PacketBatch
from amqpsniff.capture.pcapng_interface import OPT_COMMENT, section_of
from amqpsniff.packet_numbers import NUMBER_BITS, NUMBER_MASK

MAX_KNOWN = 4_096
"""Comments whose meaning is remembered: a capture has few processes, and each stands at thousands
of packets."""

MAX_CONNECTIONS = 100_000
"""Connections of which processes are remembered, in some 40 MB: those of TCP that are not AMQP are
among them; beyond, the oldest are forgotten."""

MAX_TEXT = 255
"""Characters of a name: those of Kubernetes have at most 253, few paths are longer."""

DATA = 1
"""The kind of an event of TCP that has bytes, as in `amqpsniff.tcp.stream`."""


class Process(NamedTuple):
    """The process that comments of a packet name; missing fields are None.

    Attributes:
        pid: Its number.
        process: The path of its program.
        container: Name of its container, the id of one without a name.
        pod: Namespace and name of its pod.
    """

    pid: int | None = None
    process: str | None = None
    container: str | None = None
    pod: str | None = None

    def may_be(self, other: Process) -> bool:
        """True if no field shows that this is another process."""
        pairs = zip(self, other, strict=True)
        return all(first is None or second is None or first == second for first, second in pairs)


_PROCESS = Process._fields
COLUMNS = (*_PROCESS, *(f"server_{name}" for name in _PROCESS))
"""Columns of `connections`: the process on the captured machine, the client's where both ends ran
there, and then the broker's."""


class ProcessReader:
    """Finds the processes of connections: `read` a batch of packets, then `note` its TCP events."""

    def __init__(self) -> None:
        self._capture = ""
        self._by_packet: dict[int, Process] = {}
        self._by_connection: OrderedDict[str, dict[str, Process]] = OrderedDict()

    def read(self, batch: PacketBatch, capture: Any) -> None:
        """Read the comments of a batch's packets; `capture` is the file that they are of."""
        self._capture = batch.capture
        self._by_packet = {}
        sections = getattr(capture, "sections", ())
        if not sections:
            return
        for row in range(batch.begin, batch.end):
            number, start = batch.number[row], batch.start[row]
            section = section_of(sections, number)
            options = section.packet_options(batch.octets, start, batch.captured[row])
            comments = tuple(value for code, value in options if code == OPT_COMMENT)
            process = _process(comments) if comments else None
            if process is not None:
                self._by_packet[number] = process

    def note(self, events: Any) -> None:
        """Give conversations the processes of their packets, from the events of the batch."""
        if not self._by_packet:
            return
        for kind, half, number in zip(events.kind, events.half, events.number, strict=True):
            process = self._by_packet.get(number & NUMBER_MASK)
            if kind != DATA or process is None:
                continue
            if events.captures[number >> NUMBER_BITS] == self._capture:
                conversation = events.conversations[half >> 1]
                sender = conversation.b if half & 1 else conversation.a
                self._note(conversation.connection_id, sender, process)

    def fill(self, row: dict[str, Any]) -> None:
        """Put the columns into the row of a connection that ended; null without a process."""
        by_sender = self._by_connection.pop(row["connection_id"], {})
        client = by_sender.pop(row["client"], None)
        processes = [process for process in (client, *by_sender.values()) if process is not None]
        if len(processes) == 2 and processes[0].may_be(processes[1]):
            processes = [min(processes, key=_nulls)]
        if len(processes) == 2 and row["client"] is None:
            processes = []
        cells = [value for process in (*processes, Process(), Process())[:2] for value in process]
        row.update(zip(COLUMNS, cells, strict=True))

    def _note(self, connection_id: str, sender: str, process: Process) -> None:
        """Keep a process: the first one of a sender, with all of its fields."""
        senders = self._by_connection.setdefault(connection_id, {})
        earlier = senders.get(sender)
        if earlier is None or (earlier.may_be(process) and _nulls(process) < _nulls(earlier)):
            senders[sender] = process
        if len(self._by_connection) > MAX_CONNECTIONS:
            self._by_connection.popitem(last=False)


def _nulls(process: Process) -> int:
    return process.count(None)


@lru_cache(MAX_KNOWN)
def _process(comments: tuple[bytes, ...]) -> Process | None:
    """The process in the comments of a packet; None for other comments."""
    process = Process()
    for comment in comments:
        lines = comment.decode("utf-8", "replace").split("\n")
        if (pid := _value(lines, 0, "PID")) and pid.isdecimal() and len(pid) < 11:
            program = _value(lines, 1, "Cmd") or _value(lines, 1, "Command")
            process = process._replace(pid=int(pid), process=program)
        elif lines[0].startswith("ContainerName:"):
            name = _value(lines, 0, "ContainerName") or _value(lines, 1, "ContainerId")
            process = process._replace(container=name)
        elif name := _value(lines, 0, "PodName"):
            namespace = _value(lines, 1, "PodNamespace")
            process = process._replace(pod=f"{namespace}/{name}" if namespace else name)
    return process if any(process) else None


def _value(lines: list[str], at: int, name: str) -> str | None:
    """The value of a line that has to have this name; None for an empty one."""
    if at >= len(lines) or not lines[at].startswith(f"{name}:"):
        return None
    return lines[at][len(name) + 1 :].strip()[:MAX_TEXT] or None
