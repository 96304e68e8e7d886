"""A live run as an iterator of rows, for programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from amqpsniff.arguments import several
from amqpsniff.errors import UsageError
from amqpsniff.live.event_loop import Steps
from amqpsniff.live.watch import SETTLE_SECONDS, PacketSource, Watch
from amqpsniff.objects import Finding, Frame, Message, rows
from amqpsniff.options import File, Files, Options

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from amqpsniff.analysis.selection import Filters, RowFilter

OBJECTS: dict[str, Any] = {"frames": Frame, "messages": Message, "findings": Finding}
"""Classes of the rows, by table; those of other tables are dictionaries."""


def watch(
    interface: str | Iterable[str] | None = None,
    *,
    table: str = "messages",
    capture: str | Iterable[str] | None = None,
    seconds: float | None = None,
    packets: int | None = None,
    ports: int | Iterable[int] = (),
    settle_seconds: float | None = SETTLE_SECONDS,
    bodies: bool = False,
    body_sha256: bool = False,
    show_secrets: bool = False,
    tls_keylog: File | None = None,
    tls_key: Files = (),
    packs: Files = (),
    limit: int | None = None,
    **part: Unpack[Filters],
) -> Iterator[Any]:
    """Rows of a table while the traffic goes on, each once, when its reply or outcome is known.

    Packets are captured on `interface`, one or several, or on `any`; or they come from a `capture`
    that is still written: a file, several of a rotation, a pipe, `-`. The run ends after `seconds`,
    after so many `packets`, when a pipe ends, or when the iterator is closed. Raises UsageError for
    an interface that is not there, CaptureError where this process may not capture.

    >>> import amqpsniff
    >>> rows = amqpsniff.watch(capture="samples/pika_mix.pcap", packets=568, queue="orders.*")
    >>> next(rows).method
    'basic.deliver'

    Args:
        interface: Where packets are captured; this needs the capability CAP_NET_RAW.
        table: Whose rows: `frames`, `messages`, `connections`, `channels`, `links`, `findings`.
        capture: What is followed instead of an interface.
        seconds: How long.
        packets: How many.
        ports: Only packets of these ports; empty for any.
        settle_seconds: How long a row waits; None for as long as it takes.
        bodies, body_sha256, show_secrets, tls_keylog, tls_key, packs: As in `amqpsniff.open`.
        limit: Rows after which to stop; `part` chooses them, as in `Capture.frames`.
    """
    from amqpsniff.analysis.selection import RowFilter, selection
    from amqpsniff.tables.schema import schema_of

    options = Options.of(
        ports=ports,
        bodies=bodies,
        body_sha256=body_sha256,
        show_secrets=show_secrets,
        tls_keylog=tls_keylog,
        tls_keylog_later=True,
        tls_key=tls_key,
        packs=packs,
    )
    run: Watch | None = None

    def started() -> int | None:
        return None if run is None else run.pipeline.totals.first_ns

    row_filter = RowFilter(selection(part, limit), table, started)
    source = _source(interface, capture, options.ports)
    all_names = schema_of(table, everything=True).names if table == "messages" else None
    run = Watch(
        source,
        options,
        (table,),
        packets=packets,
        settle_seconds=settle_seconds,
        columns={table: row_filter.needed(all_names)},
    )
    return _objects(run, row_filter, seconds)


def _source(
    interface: str | Iterable[str] | None,
    capture: str | Iterable[str] | None,
    ports: Iterable[int],
) -> PacketSource:
    if (interface is None) == (capture is None):
        raise UsageError("watch takes an interface, as `any`, or a capture that is being written")
    if capture is not None:
        from amqpsniff.capture.tail import follow

        return follow(list(several("capture", capture, str)))
    from amqpsniff.capture.filter import ports_expression
    from amqpsniff.capture.live_capture import InterfaceCapture

    names = list(several("interface", interface or (), str))
    return InterfaceCapture(names, ports_expression(list(ports)))


def _objects(run: Watch, row_filter: RowFilter, seconds: float | None) -> Iterator[Any]:
    try:
        for batch in _batches(run, seconds):
            chosen = row_filter.of(batch)
            kind = OBJECTS.get(row_filter.table)
            yield from rows(kind, [chosen]) if kind is not None else chosen.to_pylist()
            if row_filter.done:
                return
    finally:
        run.close()


def _batches(run: Watch, seconds: float | None) -> Iterator[Any]:
    """Batches of rows as they are settled, those that still wait at the end of the run."""
    for _ in Steps(run, seconds):
        for _, batch in run.rows():
            yield batch
    for _, batch in run.finish():
        yield batch
