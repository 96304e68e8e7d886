"""Sides of a connection and outcomes of messages, by code."""

CLIENT, SERVER = 0, 1

OUTCOMES = (
    "confirmed rejected returned unconfirmed acked requeued discarded automatic unsettled"
).split()
"""Outcomes of messages, by code."""

CONFIRMED, REJECTED, RETURNED, UNCONFIRMED, ACKED, REQUEUED, DISCARDED, AUTOMATIC, UNSETTLED = (
    range(9)
)
