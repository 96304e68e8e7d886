"""A plugin of pytest: the fixture `wire` records the AMQP traffic of a test and asserts on it.

Clients connect to `wire.host` and `wire.port`. Where this process may capture on the loopback
interface and the broker is there, that is the broker itself. Else it is a proxy that hands bytes on
to the broker and writes them down as packets. So a test can use every method
of a capture. TLS is handed on as it is, and not read.
"""

from __future__ import annotations

import io
import os
import select
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote, unquote, urlsplit

import pytest

from amqpsniff.errors import AmqpsniffError, UsageError
from amqpsniff.link_types import LINK_ETHERNET, LINK_RAW

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from amqpsniff import Capture, Frame, Message
    from amqpsniff.analysis.selection import Filters
    from amqpsniff.analysis.trace import TracedMessage

BROKER = "amqp_broker"
"""Setting of pytest: the broker, see `broker_address`."""

PORTS = {"amqp": 5672, "amqps": 5671}
"""Ports of brokers where none is named."""

RECORDER = "amqp_wire"
"""Setting of pytest: how traffic is recorded, one of `RECORDERS`."""

AUTO, CAPTURE, PROXY = RECORDERS = ("auto", "capture", "proxy")

MAX_LINES = 60
"""Lines of the conversation that a failure shows, the last ones."""

_WIRE = pytest.StashKey["Wire"]()
"""Key of the `Wire` in the stash of a test, a class, a module or the session."""

SYN, ACK, PUSH, FIN = 2, 16, 8, 1
MAX_READ = 32_768
_WINDOW = 65_535
_SEQUENCE = (1 << 32) - 1

LOOPBACK = "lo"
MARK_SECONDS = 5
"""Seconds that a packet may take from this process to itself."""
_ETHERNET_BYTES, _PROTOCOL, _UDP, _MARK_BYTES = 14, 23, 17, 8


class Recorder(Protocol):
    """Records traffic with a broker; clients connect to `host` and `port`."""

    host: str
    port: int
    trouble: str
    """Why the broker could not be reached when that was last tried; empty if it could."""

    def octets(self) -> bytes:
        """The capture so far, as pcapng."""

    def close(self) -> None:
        """Stop recording; the recorded traffic is kept."""


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
        """One side has sent its last byte."""
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
    """Hands connections on to a broker, and writes them down: a `Recorder`."""

    def __init__(self, host: str, port: int) -> None:
        self._broker = host, port
        self.trouble = ""
        self._recording = Recording()
        self.octets = self._recording.octets
        self._server = socket.create_server(("127.0.0.1", 0))
        self.host, self.port = self._server.getsockname()[:2]
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, name="wire", daemon=True).start()

    def close(self) -> None:
        """Refuse new connections, and end those that are open."""
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        for connection in self._open:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            try:
                broker = socket.create_connection(self._broker, timeout=10)
            except OSError as error:
                self.trouble = _unreached(*self._broker, error)
                client.close()
                continue
            self.trouble = ""
            broker.settimeout(None)
            self._open += [client, broker]
            ends = _end(client.getpeername()), _end(client.getsockname())
            self._recording.open(*ends)
            for source, target, addresses in ((client, broker, ends), (broker, client, ends[::-1])):
                threading.Thread(
                    target=self._forward, args=(source, target, addresses), name="wire", daemon=True
                ).start()

    def _forward(self, source: socket.socket, target: socket.socket, addresses: Any) -> None:
        """Hand the bytes of one side on; they are written down before the other side has them."""
        sender, receiver = addresses
        with suppress(OSError):
            while octets := source.recv(MAX_READ):
                self._recording.data(sender, receiver, octets)
                target.sendall(octets)
        self._recording.end(sender, receiver)
        with suppress(OSError):
            target.shutdown(socket.SHUT_WR)


class LoopbackCapture:
    """Captures packets of a broker's port on the loopback interface: a `Recorder`.

    A query covers all traffic so far, but the kernel delivers packets later. So the recorder sends
    a datagram to this process and waits until it is captured.

    Raises CaptureError or UsageError if this process may not capture, or if the broker's packets
    do not pass this interface.
    """

    def __init__(self, host: str, port: int) -> None:
        from amqpsniff.capture.live_capture import InterfaceCapture
        from amqpsniff.capture.pcapng_writer import PcapngWriter

        if not _is_loopback(host):
            raise UsageError(f"the broker {host} is not on the loopback interface")
        self.host, self.port = host, port
        self.trouble = ""
        self._marker = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._marker.bind(("127.0.0.1", 0))
        ports = f"tcp port {port} or udp port {self._marker.getsockname()[1]}"
        try:
            self._source = InterfaceCapture([LOOPBACK], ports)
        except BaseException:
            self._marker.close()
            raise
        self._changed = threading.Condition()
        self._marks = self._marked = 0
        self._file = io.BytesIO()
        self._writer = PcapngWriter(self._file)
        self._writer.interface(LINK_ETHERNET, 0, LOOPBACK)
        self._begin = self._file.tell()
        self._packets = 0
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="wire", daemon=True)
        self._thread.start()
        try:
            self._connect_once()
        except BaseException:
            self.close()
            raise

    def octets(self) -> bytes:
        """The capture so far."""
        from amqpsniff.capture.pcapng_writer import statistics_block

        self._catch_up()
        with self._changed:
            recorded, counted = self._file.getvalue(), self._source.statistics()
        return recorded + (statistics_block(0, counted) if counted.dropped_by_system else b"")

    def close(self) -> None:
        """Stop capturing."""
        if self._ended:
            return
        self._catch_up()
        self._ended = True
        self._thread.join()
        self._source.finish()
        self._source.close()
        self._marker.close()

    def _connect_once(self) -> None:
        """Connect to the broker once: packets may take another way, as those to a container."""
        from amqpsniff.errors import CaptureError

        try:
            socket.create_connection((self.host, self.port), timeout=MARK_SECONDS).close()
        except OSError as error:
            self.trouble = _unreached(self.host, self.port, error)
        self._catch_up()
        with self._changed:
            if not self._packets:
                raise CaptureError(f"packets to {self.host}:{self.port} are not seen on {LOOPBACK}")
            self._file.seek(self._begin)
            self._file.truncate()

    def _catch_up(self) -> None:
        """Wait until all packets that were sent before were captured."""
        if self._ended:
            return
        with self._changed:
            self._marks += 1
            mark = self._marks
        self._marker.sendto(mark.to_bytes(_MARK_BYTES), self._marker.getsockname())
        with self._changed:
            self._changed.wait_for(lambda: self._marked >= mark, MARK_SECONDS)

    def _run(self) -> None:
        while not self._ended:
            select.select([self._source.fileno()], [], [], 0.05)
            for batch, _ in self._source.take(1 << 62):
                with self._changed:
                    for row in range(batch.begin, batch.end):
                        self._take(batch.ts_ns[row], batch.packet(row), batch.original[row])
                    self._changed.notify_all()

    def _take(self, ts_ns: int, packet: bytes, original: int) -> None:
        is_mark = packet[_ETHERNET_BYTES] >> 4 == 4 and packet[_PROTOCOL] == _UDP
        if is_mark:
            self._marked = int.from_bytes(packet[-_MARK_BYTES:])
        else:
            self._packets += 1
            self._writer.packet(0, ts_ns, packet, original)


class Wire:
    """The AMQP traffic of a test.

    Every query covers the traffic recorded so far.

    Attributes:
        host, port: Where clients connect.
        recorder: `capture` or `proxy`.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.host, self.port = recorder.host, recorder.port
        self.recorder = PROXY if isinstance(recorder, Proxy) else CAPTURE

    def url(self, user: str = "guest", password: str = "guest", vhost: str = "/") -> str:  # noqa: S107
        """An address for clients that take one; names in it are escaped, or were already."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        user, password, vhost = (quote(unquote(part), safe="") for part in (user, password, vhost))
        return f"amqp://{user}:{password}@{host}:{self.port}/{vhost}"

    def capture(self) -> Capture:
        """The traffic so far, as a capture."""
        import amqpsniff

        return amqpsniff.open(io.BytesIO(self._recorder.octets()))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the traffic so far as pcapng."""
        Path(path).write_bytes(self._recorder.octets())

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
        findings = [
            finding
            for finding in self.capture().findings(**part)
            if (finding.code in codes if codes else finding.severity == "error")
        ]
        if findings:
            text = "\n".join(
                f"{finding.severity} {finding.code} in packet {finding.packet_number}: "
                f"{finding.title} ({finding.detail})"
                for finding in findings
            )
            pytest.fail(text, pytrace=False)

    def journey(self, **wanted: Any) -> TracedMessage:
        """The way of one message, chosen as by `amqpsniff.Capture.trace`; fails without one."""
        __tracebackhide__ = True
        found = self.capture().trace(**wanted)
        if len(found) != 1:
            conditions = ", ".join(f"{name}={value!r}" for name, value in wanted.items())
            pytest.fail(f"{len(found)} messages with {conditions}, not one", pytrace=False)
        return found[0]

    def conversation(self) -> str:
        """The traffic so far, a line for each method, the last `MAX_LINES` of them.

        The last line says why the broker could not be reached, if so.
        """
        lines = list(map(_line, self.capture().timeline()))
        omitted = len(lines) - MAX_LINES
        lines = [f"({omitted} lines before)"] * (omitted > 0) + lines[-MAX_LINES:]
        return "\n".join([*lines, *filter(None, [self._recorder.trouble])])

    def close(self) -> None:
        """Stop recording; the recorded traffic is kept."""
        self._recorder.close()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Called by pytest."""
    parser.addini(BROKER, "AMQP broker of the fixture wire: host, host:port or amqp://host:port")
    parser.addini(RECORDER, "how the fixture wire records: auto, capture or proxy", default=AUTO)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Called by pytest: a test that fails, or a fixture of it, shows the conversation."""
    outcome: Any = yield
    report = outcome.get_result()
    if not report.failed:
        return
    for node in item.listchain():
        used = node.stash.get(_WIRE, None)
        if used is not None:
            title = f"AMQP on the wire, recorded by {used.recorder}"
            report.sections.append((title, used.conversation() or "nothing"))


def _recorded(request: pytest.FixtureRequest) -> Iterator[Wire]:
    """Records the AMQP traffic of clients that connect to `host` and `port` of the fixture.

    `wire` records a test; `class_wire`, `module_wire` and `session_wire` what their names say.

    The broker is that of the environment variable `AMQP_BROKER`, else of the setting `amqp_broker`,
    else `127.0.0.1:5672`. `AMQP_WIRE`, else the setting `amqp_wire`, says how traffic is recorded:
    `capture` on the loopback interface, by a `proxy`, or `auto`: captured where that is allowed.
    """
    address = broker_address(_setting(request, BROKER, "127.0.0.1"))
    wire = Wire(_recorder(_setting(request, RECORDER, AUTO), *address))
    request.node.stash[_WIRE] = wire
    yield wire
    wire.close()


wire = pytest.fixture(name="wire")(_recorded)
class_wire = pytest.fixture(scope="class", name="class_wire")(_recorded)
module_wire = pytest.fixture(scope="module", name="module_wire")(_recorded)
session_wire = pytest.fixture(scope="session", name="session_wire")(_recorded)


def _setting(request: pytest.FixtureRequest, name: str, otherwise: str) -> str:
    return os.environ.get(name.upper()) or str(request.config.getini(name) or otherwise)


def broker_address(text: str) -> tuple[str, int]:
    """Host and port of a broker: `host`, `host:port`, an IP address, or an address as clients take
    it, `amqp://...`; raises UsageError for any other."""
    with suppress(ValueError):
        return str(ip_address(text)), PORTS["amqp"]
    with suppress(ValueError):  # the port is not a number
        url = urlsplit(text if "//" in text else f"amqp://{text}")
        if url.hostname and url.scheme in PORTS and url.port != 0:
            return url.hostname, url.port or PORTS[url.scheme]
    raise UsageError(
        f"{BROKER} is {text!r}, no address; write localhost, localhost:5672, [::1]:5672 or "
        "amqp://localhost"
    )


def _recorder(mode: str, host: str, port: int) -> Recorder:
    """A recorder; with `auto`, packets of tests that run in parallel must not be captured."""
    if mode not in RECORDERS:
        raise UsageError(f"{RECORDER} is {mode!r}; it is one of {', '.join(RECORDERS)}")
    alone = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT") or 1) == 1
    if mode == CAPTURE or (mode == AUTO and alone):
        try:
            return LoopbackCapture(host, port)
        except AmqpsniffError:
            if mode == CAPTURE:
                raise
    return Proxy(host, port)


def _is_loopback(host: str) -> bool:
    """True if all addresses of a host are of the loopback interface."""
    with suppress(OSError):
        addresses = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        return all(ip_address(address[4][0]).is_loopback for address in addresses)
    return False


def _unreached(host: str, port: int, error: OSError) -> str:
    """The line about a broker that could not be reached."""
    named = f"the variable {BROKER.upper()} or the setting {BROKER} names another"
    return f"no broker at {host}:{port}: {error.strerror or error}; {named}"


def _end(address: tuple[Any, ...]) -> tuple[bytes, int]:
    return ip_address(address[0]).packed, int(address[1])


def _line(entry: Any) -> str:
    """A method of a conversation, and what became of it."""
    from amqpsniff.analysis.one_line import argument_parts, message_parts, outcome_text

    arrow = "←" if entry.sender == "server" else "→"
    text = f"{entry.packet_number:5} {entry.client} {arrow} {entry.channel} "
    text += entry.method or entry.frame_type
    if entry.message is not None:
        parts = list(message_parts(entry.message))
        outcome = outcome_text(entry.message)
    else:
        parts = list(argument_parts(entry.method or "", entry.arguments or {}))
        outcome = None
    words = [text, *(f"{part.fixed}{part.text}" for part in parts)]
    return " ".join([*words, *([f"[{outcome}]"] if outcome else [])])
