"""`amqpsniff sanitize`: a capture that is safe to share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amqpsniff.errors import read_twice
from amqpsniff.units import plural

from .entry import complain
from .options import NewCapture, Port, spread
from .progress import Progress
from .reading import keylog
from .render.tls_table import HOW

if TYPE_CHECKING:
    from amqpsniff.pipeline import Totals


@spread("""
    Arguments:
        CAPTURE: A capture file.

    What is kept:
        --names: Replace names by pseudonyms. Those of exchanges, queues, routing keys, virtual
            hosts, users, consumer tags, message ids and the like.
        --addresses: Replace IP and MAC addresses and clients' ports by pseudonyms.
        --headers NAMES: Headers whose values are replaced, with commas between. Default: all but
            those that brokers write.
        --keep-headers NAMES: Headers whose values are kept, with commas between.
        --keep-bodies: Keep the bodies of messages.
        --drop-foreign: Leave out packets of no AMQP connection, which are otherwise kept without
            their contents. Packets then have other numbers.
""")
def sanitize(
    capture: str,
    new: NewCapture,
    names: bool = False,
    addresses: bool = False,
    headers: str | None = None,
    keep_headers: str | None = None,
    keep_bodies: bool = False,
    drop_foreign: bool = False,
    port: Port = None,
    tls_keylog: str | None = None,
    tls_key: list[str] | None = None,
    quiet: bool = False,
) -> int:
    """Write a capture that is safe to share.

    Credentials, tokens, bodies, values of headers and all that was not understood become filler of
    the same length. Checksums are right, and packets, times, sizes and losses stay. Decoding it
    gives the same rows except for replaced values. A stranger still learns library and broker, and
    who sent messages when and how large; also names and addresses without --names and --addresses.
    TLS that keys open is written as plain AMQP; other TLS is filler.

    Examples:

        amqpsniff sanitize trace.pcapng -o safe.pcapng --names --addresses
        amqpsniff sanitize trace.pcapng -o safe.pcapng --keep-headers x-retries
    """
    from amqpsniff.options import Options
    from amqpsniff.sanitize import SanitizeOptions
    from amqpsniff.sanitize import sanitize as write

    if capture == "-":
        raise read_twice("sanitize", capture)
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
    with new.sink([capture]) as file, Progress(not quiet) as bar:
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
    _report_tls(done.totals)
    dropped = f", {plural(done.dropped, 'packet')} left out" if done.dropped else ""
    packets = plural(done.packets, "packet")
    new.tell(f"{packets} with {plural(done.frames, 'AMQP frame')}{dropped}", done.written_bytes)
    return 0


def _report_tls(totals: Totals) -> None:
    """Say what became of TLS."""
    if opened := totals.encrypted - totals.sealed:
        complain(f"info: {plural(opened, 'TLS conversation')} decrypted and written without TLS")
    if totals.sealed:
        conversations = plural(totals.sealed, "TLS conversation")
        complain(f"info: {conversations} not opened: what was said inside is filler; {HOW}")


def _names(text: str) -> frozenset[str]:
    return frozenset(filter(None, (name.strip() for name in text.split(","))))
