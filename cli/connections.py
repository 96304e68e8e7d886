"""`amqpsniff connections`: the connections table for reading."""

from __future__ import annotations

from typing import Annotated

from .list_table import FORMATS, show
from .options import Input, Rows, one_of, spread


@spread("""
    Output:
        -v --verbose: All that is known of each connection, one field a line.
        --format F: Output format: {FORMATS}; the last two give the rows of the connections table.
            [default]
""")
def connections(
    source: Input,
    rows: Rows,
    verbose: bool = False,
    format_: Annotated[str, one_of(FORMATS, "no format {} here")] = FORMATS[0],
) -> int:
    """List connections: who, where, for how long, how much, and how they ended.

    `began` is in seconds since the capture began, `before` when the connection is older. A narrow
    terminal shows fewer columns.

    Examples:

        amqpsniff connections trace.pcapng
        amqpsniff connections trace.pcapng --errors -v
        amqpsniff connections trace.pcapng --from 12:00 --to 12:05 --format csv
    """
    return show(source, rows, "connections", format_, verbose=verbose)
