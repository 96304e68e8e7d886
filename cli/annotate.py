"""`amqpsniff annotate`: a capture with findings, outcomes and links as packet comments."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from amqpsniff.units import count, octets, plural

from .entry import complain
from .files import capture_sink, named_output
from .options import Decoding, Input, Reader, spread
from .progress import Progress
from .reading import Reading


@spread("""
    Arguments:
        CAPTURE: A capture file.

    Output:
        -o --output FILE: The pcapng file to write. It is replaced once all is written; - for
            standard output.
""")
def annotate(
    capture: str,
    decoding: Decoding,
    output: Path,
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

    source = Input(captures=[capture], reader=reader, **dataclasses.asdict(decoding))
    reading = Reading(source)
    with capture_sink(output, [capture]) as file, Progress(not source.quiet) as bar:
        for done in write(reading.passes, file):
            bar.at(reading.capture.totals.packets + done.packets)
    reading.judge(reading.passes.found)
    if not source.quiet:
        complain(
            f"{plural(done.packets, 'packet')}, {count(done.commented)} with comments, "
            f"{octets(done.written_bytes)}, in {named_output(output)}"
        )
    return reading.exit_code
