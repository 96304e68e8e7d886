"""Facts of a capture's connections by which a disagreement about their frames is judged."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import Any

from amqpsniff.capture import CaptureSet
from amqpsniff.passes import Passes
from amqpsniff.pipeline import Pipeline, run
from amqpsniff.plan import Plan
from amqpsniff.spec import DIALECTS, protocol_of

_AMQP_1_0 = ("1.0", "1.0 TLS", "1.0 SASL")

Ends = frozenset[str]
"""The two ends of a connection as `address:port`."""


class Traffic:
    """Connections of a capture by their ends.

    Attributes:
        ports: Ports of the servers.
        tls_ports: Those of them that are spoken to over TLS.
        cut: Connections with segments that the snap length cut.
        lossy: Those with missing bytes.
        renumbered: Those whose endpoints another one used before, without a SYN in the capture, and
            those with a SYN that TCP ignored.
        undecoded: Those that speak an AMQP that we do not decode.
        amqp_1_0: Those that speak AMQP 1.0.
        websockets: Those that do so over WebSocket; by serial number: `unwrapped`.
        malformed: Those of 1.0 in which tshark called a transfer malformed so far.
        found: Those with findings of the decoder, by the code of the finding.
        inside: Those that the capture joined inside a frame of either direction.
    """

    def __init__(self) -> None:
        self.ports: set[int] = set()
        self.tls_ports: set[int] = set()
        self.cut: set[Ends] = set()
        self.lossy: set[Ends] = set()
        self.renumbered: set[Ends] = set()
        self.undecoded: set[Ends] = set()
        self.amqp_1_0: set[Ends] = set()
        self.websockets: set[Ends] = set()
        self.unwrapped: set[int] = set()
        self.malformed: set[Ends] = set()
        self.found: dict[str, set[Ends]] = defaultdict(set)
        self.inside: set[Ends] = set()

    @classmethod
    def of(cls, capture: Passes) -> Traffic:
        """Read a capture once; raises CaptureError when it cannot be read."""
        traffic = cls()
        pipeline = Pipeline(capture.options, Plan((), on_connection_end=traffic.add))
        pipeline.websocket.unwrapped = traffic.unwrapped
        with CaptureSet(capture.names, reader=capture.options.reader) as packets:
            deque(run(packets, pipeline), 0)
        for finding in pipeline.findings():
            traffic.found[finding.code].add(frozenset((finding.client or "", finding.server or "")))
        if traffic.found["midstream"]:
            traffic._find_inside(capture)
        return traffic

    def _find_inside(self, capture: Passes) -> None:
        """Find the connections whose first frame is behind the rest of an uncaptured frame."""
        names = ("client", "server", "sender", "stream_offset")
        first: dict[tuple[Any, ...], int] = {}
        for _, batch in capture.tables("frames", columns={"frames": names}):
            for *direction, offset in zip(
                *(batch[name].to_pylist() for name in names), strict=True
            ):
                first.setdefault(tuple(direction), offset)
        begun_inside = {frozenset(half[:2]) for half, offset in first.items() if offset}
        self.inside = begun_inside & self.found["midstream"]

    def add(self, connection: Any) -> None:
        """Take a `decode.state.Connection` that ended."""
        conversation = connection.conversation
        ends = frozenset((conversation.a, conversation.b))
        ports = self.ports if conversation.tls is None else self.tls_ports
        ports.add(int(connection.name()[2].rpartition(":")[2]))
        if any(conversation.cut_bytes):
            self.cut.add(ends)
        if any(conversation.gaps):
            self.lossy.add(ends)
        if conversation.serial in self.unwrapped:
            self.websockets.add(ends)
        reused = conversation.incarnation > 0 and not conversation.syn_seen
        if reused or conversation.syn_ignored:
            self.renumbered.add(ends)
        requested = (
            protocol_of(connection.requested_protocol)
            if connection.requested_protocol is not None
            else None
        )
        if requested is not None and requested.protocol in _AMQP_1_0:
            self.amqp_1_0.add(ends)
        elif requested is not None and requested.protocol not in DIALECTS:
            self.undecoded.add(ends)
