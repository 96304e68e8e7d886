"""Bounds of one run: how many rows wait, how much is remembered, each with its reason.

The defaults are for captures of any size in little memory. Those of a stage stand in its own room.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amqpsniff.session.limits import Limits as SessionLimits
    from amqpsniff.session.limits import Memory
    from amqpsniff.tcp.limits import Limits as TcpLimits


@dataclass(frozen=True)
class Limits:
    """Bounds of a pipeline and its stages.

    Attributes:
        rows_per_batch: Rows after which a batch is given out: enough that Arrow's cost per batch
            vanishes, and the packets of one turn add rows that still fit into the 32,768 that its
            columns have room for. With 32,768 they grew to twice that: 16 MB more where rows wait,
            at the same speed.
        names_per_batch: Connections and distinct texts after which a batch is given out, however
            few its rows: connections that ended stay in memory until then. With 16,384 `export` of
            findings of 65,536 connections took 7 MB more, and as long.
        bytes_per_batch: Bytes of text and bodies after which a batch is given out, however few its
            rows. With 32 MiB `export` of messages with large headers that are never confirmed took
            100 MB more: a batch is in memory several times, where it grows, waits and is written.
        encrypted: TLS conversations listed with their details, 1 kB each; others are only counted.
        packets: Packets that an `Engine` decodes together. One by one a packet costs ten times as
            much.
        packet_bytes: Bytes of those packets.
        piece_bytes: Bytes of a call of an `Engine` that are decoded at once: columns of a batch
            have 32-bit offsets.
        tcp: Bounds of reassembly; None for the defaults, as below.
        session: Bounds on the state of connections and channels.
        memory: Bounds on the messages remembered for links.
    """

    rows_per_batch: int = 24_576
    names_per_batch: int = 4_096
    bytes_per_batch: int = 4 * 1024 * 1024
    encrypted: int = 1_000
    packets: int = 512
    packet_bytes: int = 1 << 18
    piece_bytes: int = 1 << 20
    tcp: TcpLimits | None = None
    session: SessionLimits | None = None
    memory: Memory | None = None
