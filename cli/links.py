"""`amqpsniff links`: the links table for reading."""

from __future__ import annotations

from typing import Annotated

from .list_table import FORMATS, show
from .options import Input, Rows, one_of, spread


@spread("""
    Output:
        -v --verbose: All that is known of each link, one field a line.
        --format F: Output format: {FORMATS}; the last two give the rows of the links table.
            [default]
""")
def links(
    source: Input,
    rows: Rows,
    verbose: bool = False,
    format_: Annotated[str, one_of(FORMATS, "no format {} here")] = FORMATS[0],
) -> int:
    """List links of AMQP 1.0: where they lead, what went over them, credit, and how they ended.

    The arrow is the client's: `→` for a link on which it sends. `unsettled` is the most deliveries
    that waited for their settlement at once, and after a slash how many still did at the end.
    `starved` is how long the sender had to wait for credit. A connection of 0-9-1 has no links: its
    consumers are in `channels` and `topology`. A narrow terminal shows fewer columns.

    Examples:

        amqpsniff links trace.pcapng --queue orders
        amqpsniff links trace.pcapng --where "close_condition IS NOT NULL"
        amqpsniff links trace.pcapng --where "starved_ns > 1e9" -v
    """
    return show(source, rows, "links", format_, verbose=verbose)
