"""Descriptors of AMQP 1.0, and results of reading a performative."""

OPEN, BEGIN, ATTACH, FLOW, TRANSFER, DISPOSITION, DETACH, END, CLOSE = range(0x10, 0x19)
SASL_MECHANISMS, SASL_INIT, SASL_CHALLENGE, SASL_RESPONSE, SASL_OUTCOME = range(0x40, 0x45)
RECEIVED, ACCEPTED, REJECTED, RELEASED, MODIFIED, DECLARED, TRANSACTIONAL = (
    0x23, 0x24, 0x25, 0x26, 0x27, 0x33, 0x34,
)  # fmt: skip
ERROR = 0x1D

EXACT, UNREAD, UNKNOWN, SHORT, LONG = range(5)
"""Results of reading a body: right; it holds no described list; a descriptor that is none of
the standard's; it ends before its list does; it has more fields than the standard knows."""
