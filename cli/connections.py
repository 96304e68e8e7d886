"""`amqpsniff connections`: the connections table for reading."""

from __future__ import annotations

from typing import Annotated

from .list_table import FORMATS, show
from .options import Input, Rows, format_option, spread, verbose_option


@spread
def connections(
    source: Input,
    rows: Rows,
    verbose: Annotated[
        bool, verbose_option("All that is known of each connection, one field a line.")
    ] = False,
    format_: Annotated[
        str, format_option(FORMATS, "; the last two give the rows of the connections table")
    ] = FORMATS[0],
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
