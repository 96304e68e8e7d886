"""The engine without files: packets or octets in, rows out.

For those who have packets already (a capture library, a test, another program's buffers) or the
octets of connections (a proxy, a decrypting tap). Rows gather until `take`.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from amqpsniff.capture.packets import NO_TIME, PacketBatch
from amqpsniff.errors import UsageError
from amqpsniff.findings import Finding as FindingRow
from amqpsniff.pipeline import Options, Pipeline, Totals

if TYPE_CHECKING:
    from amqpsniff.objects import Finding, Frame, Message

LINKTYPE_ETHERNET = 1
"""Ethernet, in https://www.tcpdump.org/linktypes.html."""

_DIRECTIONS = {"client": 0, "server": 1}

Key = str | tuple[str, str]


def connection_id_of(key: Key) -> str:
    """The 16 hex digits that stand in `connection_id` for a key of `Engine.feed_octets`."""
    name = key if isinstance(key, str) else "\n".join(key)
    return blake2b(name.encode(errors="surrogatepass"), digest_size=8).hexdigest()


class _Stream:
    """What the decoder wants to know of a conversation, for octets that came without packets."""

    def __init__(self, key: Key) -> None:
        self.connection_id = connection_id_of(key)
        ends: tuple[str | None, str | None] = (None, None) if isinstance(key, str) else key
        self.a, self.b = ends
        self.ports = (0, 0)
        self.syn_seen = True
        self.first_packet_number: int | None = None
        self.start_ns = NO_TIME
        self.gaps = self.lost_octets = self.retransmissions = (0, 0)


class Engine:
    """Decodes packets, or octets of connections, that the caller has.

    The options are those of `amqpsniff.open`. `capture` is what the rows say they come from. An
    engine takes packets or octets, not both. Raises UsageError for a call that makes no sense;
    what is wrong with the octets is a finding.
    """

    def __init__(
        self,
        *,
        capture: str = "-",
        ports: Iterable[int] = (),
        dialect: str | None = None,
        table_dialect: str = "rabbitmq",
        bodies: bool = False,
        body_sha256: bool = False,
        show_secrets: bool = False,
    ) -> None:
        self.capture = capture
        self.options = Options(
            ports=frozenset(ports),
            dialect=dialect,
            table_dialect=table_dialect,
            bodies=bodies,
            body_sha256=body_sha256,
            show_secrets=show_secrets,
        )
        self._pipeline = Pipeline(self.options)
        self._number = 0
        self._slots: dict[Key, int] = {}
        self._octets: bool | None = None
        self._finished = False
        self._taken: dict[str, list[Any]] = {}
        self._findings: list[FindingRow] = []

    @property
    def totals(self) -> Totals:
        """Counts so far."""
        return self._pipeline.totals

    def feed_packet(
        self, octets: bytes, ts_ns: int | None = None, link_type: int = LINKTYPE_ETHERNET
    ) -> None:
        """Decode the next packet; packets are numbered from 1.

        `octets` begin with the header that `link_type` (a LINKTYPE_ value) says, `ts_ns` is
        nanoseconds since the epoch, null when it is not known.
        """
        self._begin(octets=False)
        columns = (
            self._number,
            NO_TIME if ts_ns is None else ts_ns,
            0,
            len(octets),
            len(octets),
            link_type,
        )
        rows = (array("q", [value]) for value in columns)
        self._pipeline.feed(PacketBatch(self.capture, bytes(octets), 0, 1, *rows))
        self._gather()

    def feed_octets(
        self, connection_key: Key, direction: str, octets: bytes, ts_ns: int | None = None
    ) -> None:
        """Decode the next octets that the `client` or the `server` of a connection sent.

        The key is any string, or a pair of the client's and the server's `address:port`, which
        then stand in the rows; `connection_id_of` gives its `connection_id`. A call counts as a
        packet: `packet_number` is the number of the call.
        """
        slot, way, time = self._place(connection_key, direction, ts_ns)
        self._pipeline.decoder.data(slot, way, bytes(octets), self._number, time)
        self._gather()

    def gap(
        self, connection_key: Key, direction: str, missing: int, ts_ns: int | None = None
    ) -> None:
        """Say that the next `missing` octets of one direction are lost."""
        if missing < 0:
            raise UsageError(f"a gap of {missing} octets; it must not be negative")
        slot, way, time = self._place(connection_key, direction, ts_ns)
        self._pipeline.decoder.gap(slot, way, missing, self._number, time)
        self._gather()

    def finish(self) -> None:
        """There is no more: end every connection. `take` once more afterwards."""
        if not self._finished:
            self._finished = True
            self._pipeline.finish()
            self._gather(always=True)

    def take(self, table: str) -> Any:
        """The rows of one table since its last `take`, as a `pyarrow.RecordBatch`."""
        import pyarrow as pa

        from amqpsniff.tables.batches import Maker

        maker = Maker(table)
        self._gather(always=True)
        if table == "findings":
            findings, self._findings = self._findings, []
            return maker.make(findings)
        batches = self._taken.pop(table, [])
        whole = pa.Table.from_batches(batches, maker.schema).combine_chunks().to_batches()
        return whole[0] if whole else pa.RecordBatch.from_pylist([], maker.schema)

    def frames(self) -> Iterator[Frame]:
        """Frames since they were last taken, as objects."""
        from amqpsniff.objects import Frame, rows

        return rows(Frame, [self.take("frames")])

    def messages(self) -> Iterator[Message]:
        """Messages since they were last taken, as objects."""
        from amqpsniff.objects import Message, rows

        return rows(Message, [self.take("messages")])

    def findings(self) -> Iterator[Finding]:
        """Findings since they were last taken, as objects."""
        from amqpsniff.objects import Finding, rows

        return rows(Finding, [self.take("findings")])

    def _begin(self, *, octets: bool) -> None:
        if self._finished:
            raise UsageError("this engine is finished; make a new one")
        if self._octets not in (None, octets):
            raise UsageError("an engine takes packets or octets of connections, not both")
        self._octets = octets
        self._number += 1

    def _place(self, key: Key, direction: str, ts_ns: int | None) -> tuple[int, int, int]:
        """Slot, direction and time for the decoder."""
        way = _DIRECTIONS.get(direction)
        if way is None:
            raise UsageError(f"no direction `{direction}`; it is client or server")
        self._begin(octets=True)
        decoder = self._pipeline.decoder
        decoder.use_capture(self.capture)
        slot = self._slots.get(key)
        if slot is None:
            slot = self._slots[key] = len(self._slots)
            decoder.open(slot, _Stream(key))
        return slot, way, NO_TIME if ts_ns is None else ts_ns

    def _gather(self, *, always: bool = False) -> None:
        """Turn rows into batches, when there are enough of them or they are asked for."""
        if not (always or self._pipeline.ready):
            return
        from amqpsniff.tables.batches import Maker

        taken = self._pipeline.take()
        for table in ("frames", "messages"):
            batch = Maker(table).make(taken)
            if batch.num_rows:
                self._taken.setdefault(table, []).append(batch)
        self._findings += self._pipeline.findings()
