"""`amqpsniff live`: traffic as it happens."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Annotated

from amqpsniff.analysis.times import SECOND_NS, nanoseconds
from amqpsniff.errors import UsageError

from .completions import interfaces
from .options import TABLES, By, Decoding, Rows, at_least, group, offer, one_of, spread

FORMATS = ("dashboard", "ndjson", "csv", "arrow")
TABLE = "messages"
SETTLE = "10s"
BUFFER = "64MiB"
FILE_BYTES = 10_000, None, "from 10kB; a number without a unit is bytes"
BUFFER_BYTES = 4 << 20, 4 << 30, "from 4MiB to 4GiB"
"""Bounds of a file of a rotation and of the ring, and how they are said."""

DUMB = ("dumb", "unknown")
"""Values of TERM of terminals whose cursor does not move."""


@group("""
    Arguments:
        CAPTURE...: Instead of interfaces: - for a capture on standard input, a file that grows, or
            a directory or pattern of files that are written one after the other.

    Capturing:
        -i --interface IFACE: Interface to capture on; may be repeated. Default: any, which is all
            of them.
        -f --filter BPF: Capture only what this filter lets through. It is in the language of
            tcpdump: 'host 10.0.0.7 and port 5672'. Default: what --port says, else everything.
        --duration TIME: End after this time: 30s, 5m, 1h.
        -c --count N: End after this many packets.

    Recording:
        --buffer SIZE: Memory for packets that wait to be read. Default: {BUFFER}.
        --run-as NAME: User to become when started as root; `root` to stay root. Default: who called
            sudo, else nobody.
""")
class Sources:
    """Options for the source of packets."""

    captures: list[str] | None = None
    interface: Annotated[list[str] | None, offer(interfaces)] = None
    filter_: str = ""
    buffer: str | None = None
    run_as: str | None = None
    duration: str | None = None
    count: Annotated[int | None, at_least(1)] = None


@group("""
    Capturing:
        -w --write FILE: Write the packets to this file too, as pcapng.

    Recording:
        --rotate-size SIZE: Begin another file before one becomes larger than this: 100MB, 2GB.
        --rotate-time TIME: Begin another file after this time: 10m, 1h.
        --keep N: Keep only this many files of a rotation, the latest.
""")
class Recording:
    """Options for keeping the packets."""

    write: Path | None = None
    rotate_size: str | None = None
    rotate_time: str | None = None
    keep: Annotated[int | None, at_least(1)] = None


@spread(
    """
    Output:
        -t --table T: Table whose rows are given: {TABLES}. Default: {TABLE}.
        --settle TIME: How long a row waits for its reply or outcome. 0 gives rows at once, end lets
            them wait for as long as it takes. Default: {SETTLE}.
        --metrics [HOST]:PORT: Serve metrics for Prometheus (OpenMetrics) at this address. Without a
            host: on loopback only.
        --otlp URL: Send journeys of messages as spans to this collector of OpenTelemetry instead of
            writing rows: OTLP over HTTP, as in http://localhost:4318.
        --format F: Output format: {FORMATS}. Default: dashboard on a terminal, else ndjson.
            [default]
""",
    paged=False,
)
def live(
    sources: Sources,
    recording: Recording,
    decoding: Decoding,
    rows: Rows,
    table: Annotated[str | None, one_of(TABLES, "no table {}")] = None,
    settle: str | None = None,
    metrics: str | None = None,
    otlp: str | None = None,
    by: By = None,
    format_: Annotated[str | None, one_of(FORMATS, "no format {} here")] = None,
) -> int:
    """Watch traffic as it happens: a dashboard on a terminal, rows when piped.

    Packets come from network interfaces, from standard input, or from files that another program
    still writes. Connections that were open before are joined. A row is written once, when its
    reply or outcome is known. Ctrl-C ends the run with a summary.

    Capturing needs the capability CAP_NET_RAW; a pipe from tcpdump, also over ssh, needs none.

    Examples:

        sudo amqpsniff live -i eth0 --port 5672
        amqpsniff live -i lo --exchange orders | jq .routing_key
        amqpsniff live -i eth0 --by operation
        amqpsniff live -w trace.pcapng --rotate-size 100MB --keep 10 --metrics :9419
        amqpsniff live -i eth0 --exchange orders --otlp http://localhost:4318
        ssh broker tcpdump -i any -U -w - port 5672 | amqpsniff live -
    """
    drawn_on = sys.stdout.isatty() and os.environ.get("TERM") not in DUMB
    form = ("dashboard" if drawn_on else "ndjson") if format_ is None else format_
    if otlp is not None and (format_ is not None or table not in (None, "messages")):
        raise UsageError("--otlp sends spans of the table messages; leave out --format and --table")
    if by and (form != "dashboard" or otlp is not None):
        raise UsageError("--by is for the dashboard; rows have the columns of `messages`")
    if form == "dashboard" and otlp is None:
        _check_dashboard(sources, rows, table, settle, drawn_on=drawn_on)
    if otlp is None and form == "arrow" and sys.stdout.isatty():
        raise UsageError("arrow is not for a terminal; pipe it into a program")
    table = TABLE if table is None else table
    from .watching import Live

    settle_seconds = _settle(SETTLE if settle is None else settle)
    run = Live(sources, recording, decoding, rows, settle_seconds, metrics, by)
    if otlp is not None:
        return run.send(otlp)
    if form == "dashboard":
        return run.show()
    return run.write(table, form)


def _check_dashboard(
    sources: Sources, rows: Rows, table: str | None, settle: str | None, *, drawn_on: bool
) -> None:
    """Raise UsageError where there can be no dashboard, or none that does what is asked for."""
    if not drawn_on:
        raise UsageError(
            "the dashboard needs a terminal whose cursor moves; give --format ndjson for any other"
        )
    from .dashboard.views import NAMED

    shown = ("connection", "channel", *NAMED, "errors", "where", "tz")
    chosen = {"table": table, "limit": rows.limit} | rows.part()
    for name, value in chosen.items():
        if value not in (None, False) and name not in shown:
            option_ = name.strip("_").replace("_", "-")
            raise UsageError(f"--{option_} chooses rows; give --format ndjson too")
    if settle is not None and not sources.captures:  # of these it says how late packets may be
        raise UsageError("--settle is for rows; give --format ndjson too")


def _settle(text: str) -> float | None:
    return None if text == "end" else span(text, "settle")


def rotation_seconds(text: str) -> float:
    """The time of a file of a rotation; raises UsageError if it is 0."""
    seconds = span(text, "rotate-time")
    if not seconds:
        raise UsageError(f"--rotate-time {text} is too short; write 30s, 5m or 1h")
    return seconds


_SIZE = re.compile(r"(\d{1,15})(?:\.(\d{1,6}))?\s*([kMGT]?)(i?)B?", re.IGNORECASE)
_PREFIXES = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def size(text: str, option: str, least: int, most: int | None, bounds: str) -> int:
    """Bytes: `500000`, `100MB`, `1.5G`, `64MiB`; raises UsageError for others and out of bounds."""
    match = _SIZE.fullmatch(text.strip())
    octets = 0
    if match:
        whole, digits, prefix, binary = match.groups()
        base = 1024 if binary else 1000
        octets = round(float(f"{whole}.{digits or 0}") * float(base ** _PREFIXES[prefix.lower()]))
    if octets <= 0:
        raise UsageError(f"--{option} {text!r} is not a size; write 500kB, 100MB or 2GB")
    if octets < least or (most is not None and octets > most):
        raise UsageError(f"--{option} {text}: {bounds}")
    return octets


def span(text: str, option: str) -> float:
    """Seconds: `30`, `30s`, `1m30s`, `1.5h`; raises UsageError if invalid."""
    found = nanoseconds(text)
    if found is None:
        raise UsageError(f"--{option} {text!r} is not a span of time; write 30s, 5m or 1h")
    return found / SECOND_NS
