"""`amqpsniff channels`: the channels table for reading."""

from __future__ import annotations

from typing import Annotated

from .list_table import FORMATS, show
from .options import Input, Rows, one_of, spread


@spread("""
    Output:
        -v --verbose: All that is known of each channel, one field a line.
        --format F: Output format: {FORMATS}; the last two give the rows of the channels table.
            [default]
""")
def channels(
    source: Input,
    rows: Rows,
    verbose: bool = False,
    format_: Annotated[str, one_of(FORMATS, "no format {} here")] = FORMATS[0],
) -> int:
    """List channels: what they were used for, what was left open, and how they ended.

    A number that is opened again is a line of its own. `unsettled` counts deliveries without ack,
    `unconf` publishes without confirm: the most at once and, after a slash, those at the end. `?`
    means that the channel was open before the capture, or frames are missing. Other counts are of
    what was captured. A narrow terminal shows fewer columns.

    Examples:

        amqpsniff channels trace.pcapng --connection :43700
        amqpsniff channels trace.pcapng --where "closed_by = 'server'"
        amqpsniff channels trace.pcapng --where "unsettled_end > 0" -v
    """
    return show(source, rows, "channels", format_, verbose=verbose)
