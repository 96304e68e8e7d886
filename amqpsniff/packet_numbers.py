"""Numbers of packets that name their capture too."""

NUMBER_BITS = 40
"""Bits of a packet's number within its capture; above them, from the TCP stage to the decoder, is
the capture's place among those fed."""

NUMBER_MASK = (1 << NUMBER_BITS) - 1
