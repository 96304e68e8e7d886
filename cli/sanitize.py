"""`amqpsniff sanitize`: a capture that is safe to hand to a stranger."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from amqpsniff.errors import UsageError

from .options import INPUT, OUTPUT, TlsKey, TlsKeylog, spread

if TYPE_CHECKING:
    from amqpsniff.pipeline import Totals

STANDARD_OUTPUT = "-"
KEPT = "What is kept"
"""A panel of the help."""


@spread
def sanitize(
    capture: Annotated[
        str,
        typer.Argument(metavar="CAPTURE", help="A capture file.", show_default=False),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The pcapng file to write, which is replaced once all is written; - for standard "
            "output.",
            rich_help_panel=OUTPUT,
            show_default=False,
        ),
    ],
    names: Annotated[
        bool,
        typer.Option(
            "--names",
            help="Replace names by pseudonyms: exchanges, queues, routing keys, virtual hosts, "
            "users, consumer tags, message ids and the like.",
            rich_help_panel=KEPT,
        ),
    ] = False,
    addresses: Annotated[
        bool,
        typer.Option(
            "--addresses",
            help="Replace IP and MAC addresses and clients' ports by pseudonyms.",
            rich_help_panel=KEPT,
        ),
    ] = False,
    headers: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Headers whose values are replaced, with commas between. Default: all but those "
            "that brokers write.",
            rich_help_panel=KEPT,
            show_default=False,
        ),
    ] = None,
    keep_headers: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Headers whose values are kept, with commas between.",
            rich_help_panel=KEPT,
            show_default=False,
        ),
    ] = None,
    keep_bodies: Annotated[
        bool,
        typer.Option("--keep-bodies", help="Keep the bodies of messages.", rich_help_panel=KEPT),
    ] = False,
    drop_foreign: Annotated[
        bool,
        typer.Option(
            "--drop-foreign",
            help="Leave out packets of no AMQP connection, which are otherwise kept without their "
            "contents. Packets then have other numbers.",
            rich_help_panel=KEPT,
        ),
    ] = False,
    port: Annotated[
        list[int] | None,
        typer.Option(
            min=1,
            max=65535,
            metavar="N",
            help="Only conversations with this TCP port are AMQP; may be repeated. Default: any "
            "port, AMQP is told by its content.",
            rich_help_panel=INPUT,
            show_default=False,
        ),
    ] = None,
    tls_keylog: TlsKeylog = None,
    tls_key: TlsKey = None,
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet", "-q", help="No warnings, no summary, no progress.", rich_help_panel=OUTPUT
        ),
    ] = False,
) -> int:
    """Write a capture that is safe to hand to a stranger.

    Credentials, tokens, bodies, values of headers and whatever was not understood become filler of
    the same length; checksums are right, and packets, times, sizes and losses stay. Decoding it
    gives the same rows but for what was replaced. A stranger still learns which library and broker
    it was, who sent what kind of message when and how large, and names and addresses unless --names
    and --addresses are given. TLS that keys open is written as plain AMQP; other TLS is
    filler.

    Examples:

        amqpsniff sanitize trace.pcapng -o safe.pcapng --names --addresses
        amqpsniff sanitize trace.pcapng -o safe.pcapng --keep-headers x-retries
    """
    from amqpsniff.options import Options
    from amqpsniff.sanitize import SanitizeOptions
    from amqpsniff.sanitize import sanitize as write
    from amqpsniff.units import octets, plural

    from .entry import complain
    from .export import refuse_captures
    from .progress import Progress
    from .reading import keylog

    if capture == "-":
        raise UsageError("a capture is read twice; save standard input to a file first")
    refuse_captures(output, [capture])
    options = SanitizeOptions(
        headers=None if headers is None else _names(headers),
        keep_headers=_names(keep_headers or ""),
        keep_bodies=keep_bodies,
        names=names,
        addresses=addresses,
        drop_foreign=drop_foreign,
    )
    decoding = Options(
        ports=frozenset(port or ()),
        tls_keylog=keylog(tls_keylog),
        tls_keys=tuple(tls_key or ()),
    )
    with _sink(output) as file, Progress(not quiet) as bar:
        for done in write(capture, file, options, decoding):
            bar.at(done.totals.packets + done.packets)
    if quiet:
        return 0
    for finding in done.found:
        complain(f"{finding.kind.severity}: {finding.detail}")
    if done.names_forgotten:
        complain("warning: there are so many names that the later ones are filler")
    if done.headers_unseen:
        complain(f"warning: no message has a header {', '.join(done.headers_unseen)}")
    _tell_of_tls(done.totals)
    where = "standard output" if str(output) == STANDARD_OUTPUT else str(output)
    dropped = f", {plural(done.dropped, 'packet')} left out" if done.dropped else ""
    complain(
        f"{plural(done.packets, 'packet')} with {plural(done.frames, 'AMQP frame')}{dropped}, "
        f"{octets(done.octets)}, in {where}"
    )
    return 0


@contextmanager
def _sink(output: Path) -> Iterator[IO[bytes]]:
    """The file to write, or standard output."""
    from .export import replacing

    if str(output) != STANDARD_OUTPUT:
        with replacing(output) as file:
            yield file
        return
    if sys.stdout.isatty():
        raise UsageError("a capture is no text for a terminal; give -o FILE, or a pipe")
    yield sys.stdout.buffer
    sys.stdout.buffer.flush()


def _tell_of_tls(totals: Totals) -> None:
    """Say what became of TLS."""
    from amqpsniff.units import plural

    from .entry import complain
    from .tls_table import HOW

    if opened := totals.encrypted - totals.sealed:
        complain(f"info: {plural(opened, 'TLS conversation')} decrypted and written without TLS")
    if totals.sealed:
        conversations = plural(totals.sealed, "TLS conversation")
        complain(f"info: {conversations} not opened: what was said inside is filler; {HOW}")


def _names(text: str) -> frozenset[str]:
    return frozenset(filter(None, (name.strip() for name in text.split(","))))
