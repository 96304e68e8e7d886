"""A plugin of pytest: the fixture `wire` records the AMQP traffic of a test and asserts on it.

Clients connect to `wire.host` and `wire.port`, where a proxy hands their bytes on to the broker and
writes them down as packets. So whatever can be asked of a capture can be asked of a test, and
nobody needs the right to capture. TLS is handed on as it is, and not read.
"""

from __future__ import annotations

import io
import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from amqpsniff import Capture, Frame, Message
    from amqpsniff.analysis.selection import Filters
    from amqpsniff.analysis.trace import TracedMessage

BROKER = "amqp_broker"
"""Setting of pytest: `address:port` of the broker."""

MAX_LINES = 60
"""Lines of the conversation that a failure shows, the last ones."""

LINK_RAW = 101
SYN, ACK, PUSH, FIN = 2, 16, 8, 1
MAX_READ = 32_768
_WINDOW = 65_535
_SEQUENCE = (1 << 32) - 1


class Recording:
    """Connections written down as packets; any thread may write."""

    def __init__(self) -> None:
        from amqpsniff.capture.pcapng_writer import PcapngWriter
        from amqpsniff.tcp.packet_writer import PacketRewriter

        self._lock = threading.Lock()
        self._file = io.BytesIO()
        self._writer = PcapngWriter(self._file)
        self._interface = self._writer.interface(LINK_RAW, 0, "proxy")
        self._segments = PacketRewriter(None)
        self._next: dict[tuple[Any, Any], int] = {}
        self._last_ns = 0
        self._connections = 0

    def open(self, client: Any, server: Any) -> None:
        """A client connected."""
        with self._lock:
            self._connections += 1
            self._next[client, server] = self._connections * 1_000_003 & _SEQUENCE
            self._next[server, client] = self._connections * 7_000_003 & _SEQUENCE
            self._put(client, server, SYN, b"")
            self._put(server, client, SYN | ACK, b"")
            self._put(client, server, ACK, b"")

    def data(self, source: Any, target: Any, octets: bytes) -> None:
        """One side sent bytes."""
        with self._lock:
            self._put(source, target, ACK | PUSH, octets)

    def end(self, source: Any, target: Any) -> None:
        """One side sends no more."""
        with self._lock:
            self._put(source, target, ACK | FIN, b"")

    def octets(self) -> bytes:
        """The capture so far."""
        with self._lock:
            return self._file.getvalue()

    def _put(self, source: Any, target: Any, flags: int, octets: bytes) -> None:
        seq = self._next[source, target]
        ack = self._next[target, source] if flags & ACK else 0
        packet = self._segments.segment(seq, ack, flags, _WINDOW, octets, 0, (source, target))
        self._last_ns = max(time.time_ns(), self._last_ns + 1)
        self._writer.packet(self._interface, self._last_ns, packet, len(packet))
        count = len(octets) + bool(flags & (SYN | FIN))
        self._next[source, target] = seq + count & _SEQUENCE


class Proxy:
    """Hands connections on to a broker, and writes them down."""

    def __init__(self, host: str, port: int, recording: Recording) -> None:
        self._broker = host, port
        self._recording = recording
        self._server = socket.create_server(("127.0.0.1", 0))
        self.host, self.port = self._server.getsockname()[:2]
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, name="wire", daemon=True).start()

    def close(self) -> None:
        """Take no more connections, and end those that are open."""
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        for one in self._open:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            try:
                broker = socket.create_connection(self._broker, timeout=10)
            except OSError:
                client.close()
                continue
            broker.settimeout(None)
            self._open += [client, broker]
            ends = _end(client.getpeername()), _end(client.getsockname())
            self._recording.open(*ends)
            for source, target, way in ((client, broker, ends), (broker, client, ends[::-1])):
                threading.Thread(
                    target=self._hand_on, args=(source, target, way), name="wire", daemon=True
                ).start()

    def _hand_on(self, source: socket.socket, target: socket.socket, way: Any) -> None:
        """Hand the bytes of one side on; they are written down before the other side has them."""
        sender, receiver = way
        with suppress(OSError):
            while octets := source.recv(MAX_READ):
                self._recording.data(sender, receiver, octets)
                target.sendall(octets)
        self._recording.end(sender, receiver)
        with suppress(OSError):
            target.shutdown(socket.SHUT_WR)


class Wire:
    """The AMQP traffic of a test.

    Every question is answered from what was said until then.

    Attributes:
        host, port: Where clients connect.
    """

    def __init__(self, broker_host: str, broker_port: int) -> None:
        self._recording = Recording()
        self._proxy = Proxy(broker_host, broker_port, self._recording)
        self.host, self.port = self._proxy.host, self._proxy.port

    def url(self, user: str = "guest", password: str = "guest", vhost: str = "%2F") -> str:  # noqa: S107
        """An address for clients that take one."""
        return f"amqp://{user}:{password}@{self.host}:{self.port}/{vhost}"

    def capture(self) -> Capture:
        """The traffic so far, as a capture."""
        import amqpsniff

        return amqpsniff.open(io.BytesIO(self._recording.octets()))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write what was said so far as pcapng."""
        Path(path).write_bytes(self._recording.octets())

    def messages(self, **part: Unpack[Filters]) -> list[Message]:
        """Messages, chosen as by `amqpsniff.Capture.messages`."""
        return list(self.capture().messages(**part))

    def frames(self, **part: Unpack[Filters]) -> list[Frame]:
        """Frames, chosen as by `amqpsniff.Capture.frames`."""
        return list(self.capture().frames(**part))

    def no(self, *codes: str, **part: Unpack[Filters]) -> None:
        """Fail if there is a finding with one of these codes; without codes, any error."""
        __tracebackhide__ = True
        from amqpsniff.findings.catalogue import kind_of

        for code in codes:
            kind_of(code)
        found = [
            one
            for one in self.capture().findings(**part)
            if (one.code in codes if codes else one.severity == "error")
        ]
        if found:
            said = "\n".join(
                f"{one.severity} {one.code} in packet {one.packet_number}: {one.title} "
                f"({one.detail})"
                for one in found
            )
            pytest.fail(f"{said}\n\n{self.conversation()}", pytrace=False)

    def journey(self, **wanted: Any) -> TracedMessage:
        """The way of one message, chosen as by `amqpsniff.Capture.trace`; fails without one."""
        __tracebackhide__ = True
        found = self.capture().trace(**wanted)
        if len(found) != 1:
            named = ", ".join(f"{name}={value!r}" for name, value in wanted.items())
            pytest.fail(
                f"{len(found)} messages with {named}, not one\n\n{self.conversation()}",
                pytrace=False,
            )
        return found[0]

    def conversation(self) -> str:
        """The traffic so far, a line for each method, the last `MAX_LINES` of them."""
        lines = list(map(_line, self.capture().timeline()))
        left = len(lines) - MAX_LINES
        return "\n".join([f"({left} lines before)"] * (left > 0) + lines[-MAX_LINES:])

    def close(self) -> None:
        """End the proxy; what was said stays."""
        self._proxy.close()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Called by pytest."""
    parser.addini(BROKER, "address:port of the AMQP broker that the fixture wire hands on to")


@pytest.fixture
def wire(request: pytest.FixtureRequest) -> Iterator[Wire]:
    """Records the AMQP traffic of clients that connect to `wire.host` and `wire.port`.

    The broker is that of the environment variable `AMQP_BROKER`, else of the setting `amqp_broker`,
    else `127.0.0.1:5672`.
    """
    named = os.environ.get(BROKER.upper()) or request.config.getini(BROKER) or "127.0.0.1:5672"
    host, _, port = str(named).rpartition(":")
    one = Wire(host.strip("[]"), int(port))
    yield one
    one.close()


def _end(address: tuple[Any, ...]) -> tuple[bytes, int]:
    return ip_address(address[0]).packed, int(address[1])


def _line(entry: Any) -> str:
    """A method of a conversation, and what became of it."""
    from amqpsniff.analysis.one_line import argument_parts, message_parts, outcome_text

    way = "←" if entry.sender == "server" else "→"
    said = f"{entry.packet_number:5} {entry.client} {way} {entry.channel} "
    said += entry.method or entry.frame_type
    if entry.message is not None:
        parts = list(message_parts(entry.message))
        outcome = outcome_text(entry.message)
    else:
        parts = list(argument_parts(entry.method or "", json.loads(entry.arguments or "{}")))
        outcome = None
    words = [said, *(f"{part.fixed}{part.text}" for part in parts)]
    return " ".join([*words, *([f"[{outcome}]"] if outcome else [])])
