"""Packets in, bytes of TCP conversations in order out.

`Reassembler.feed` takes a batch of packets and returns a `StreamBatch` of events; `finish` ends all
open conversations. Time is the packets' own; missing bytes are a gap, never an error.
"""

from .codes import CLOSE, DATA, GAP, OPEN
from .conversation import Conversation
from .limits import Limits
from .reassembly import Reassembler
from .stream import POSITION_FIELDS, StreamBatch, TcpFinding

__all__ = [
    "CLOSE",
    "DATA",
    "GAP",
    "OPEN",
    "POSITION_FIELDS",
    "Conversation",
    "Limits",
    "Reassembler",
    "StreamBatch",
    "TcpFinding",
]
