"""`amqpsniff annotate`: a capture with findings, outcomes and links as packet comments."""

from __future__ import annotations

from amqpsniff.units import count, plural

from .options import Decoding, NewCapture, Reader, spread
from .progress import Progress
from .reading import Reading


@spread("""
    Arguments:
        CAPTURE: A capture file.
""")
def annotate(
    capture: str,
    decoding: Decoding,
    new: NewCapture,
    reader: Reader = "auto",
) -> int:
    """Write a capture with findings as packet comments, for Wireshark.

    Findings stand at the first packet and the last one that they name. A message says what became
    of it and when, a delivery names its publish, a reply its request. Packets keep their numbers,
    times, interfaces and comments. Wireshark lists comments under Analyze, Expert Information, and
    filters them by `frame.comment contains "error"`. Passwords and tokens are not in comments.

    Examples:

        amqpsniff annotate trace.pcapng -o told.pcapng
        tshark -r told.pcapng -Y 'frame.comment contains "error"'
    """
    from amqpsniff.wireshark.annotate import annotate as write

    reading = Reading(decoding.of([capture], reader))
    with new.sink([capture]) as file, Progress(not decoding.quiet) as bar:
        for done in write(reading.passes, file):
            bar.at(reading.capture.totals.packets + done.packets)
    reading.judge()
    if not decoding.quiet:
        packets = plural(done.packets, "packet")
        new.tell(f"{packets}, {count(done.commented)} with comments", done.written_bytes)
    return reading.exit_code
