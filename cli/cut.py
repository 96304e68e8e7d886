"""`amqpsniff cut`: the packets of a part of the traffic, as a capture."""

from __future__ import annotations

from typing import Annotated

from amqpsniff.units import plural

from .completions import codes, listed
from .options import Conditions, Input, NewCapture, offer, spread
from .progress import Progress
from .reading import Reading


@spread("""
    Filters:
        --finding CODES: Packets of the findings with these codes, and of their causes.
        --whole: Whole TCP conversations of all that is chosen.
""")
def cut(
    source: Input,
    rows: Conditions,
    new: NewCapture,
    finding: Annotated[str | None, offer(listed(codes))] = None,
    whole: bool = False,
) -> int:
    """Write the packets that matter to a capture of their own.

    --connection, --client, --user, --vhost, --from, --to and --packet choose packets as they are,
    handshakes and acknowledgements of TCP too. All other filters choose frames: the packets in
    which they lie, messages with their content and with what decided their outcome. Times,
    interfaces and comments stay. A TLS conversation is always whole.

    Examples:

        amqpsniff cut trace.pcapng --connection :43706 -o part.pcapng
        amqpsniff cut captures/ --message-id order-17 --whole -o order.pcapng
        amqpsniff cut trace.pcapng --finding channel-closed-by-broker -o closed.pcapng
        amqpsniff cut trace.pcapng --from 12:00 --to 12:01 -o - | wireshark -ki -
    """
    from amqpsniff.wireshark.cut import cut as write

    reading = Reading(source, rows)
    part = rows.selection()
    chosen = [code.strip() for code in finding.split(",")] if finding is not None else []
    with new.sink(source.captures) as file, Progress(not source.quiet) as bar:
        for done in write(reading.passes, file, part, findings=chosen, whole=whole):
            bar.at(done.read)
    reading.judge()
    if not source.quiet:
        if not done.packets:
            reading.warn_of_nothing("no packet matches the options")
        packets = plural(done.packets, "packet")
        new.tell(f"{packets} of {plural(done.connections, 'connection')}", done.written_bytes)
    return reading.exit_code
