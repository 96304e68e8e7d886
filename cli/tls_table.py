"""TLS conversations for people: which there were, and whether they could be read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amqpsniff.units import plural

from .output import Output
from .render.text import folded
from .render.tls_table import blocks, grid

if TYPE_CHECKING:
    from amqpsniff.pipeline import Totals


HOW = (
    "keys come from --tls-keylog FILE (as programs write it for SSLKEYLOGFILE), a pcapng with "
    "secrets inside, or --tls-key FILE (the broker's RSA key)"
)


def unread(totals: Totals) -> str:
    """A sentence about what could not be read; empty when all could."""
    if not totals.sealed:
        return ""

    return f"{plural(totals.sealed, 'TLS conversation')} could not be read; {HOW}"


def show(
    encrypted: list[dict[str, Any]],
    totals: Totals,
    output: Output,
    limit: int | None = None,
    *,
    below: bool = False,
    verbose: bool = False,
) -> None:
    """Write the conversations that could not be read, with a heading; `below` something else."""

    sealed = [one for one in encrypted if not one["opened"]][:limit]
    if not sealed:
        return
    heading = folded(unread(totals), output.room)
    lead = [""] if below else []
    output.lines([*lead, *(output.paint("heading", line) for line in heading)])
    laid_out = grid(sealed, narrow=output.narrow)
    if verbose:
        output.lines(blocks(sealed, output.paint))
    else:
        output.lines(laid_out.lines(output.room, output.paint))
