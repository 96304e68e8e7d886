"""Numbers that modules of the TCP stage share."""

# flags of a segment
FIN, SYN, RST, ACK = 1, 2, 4, 16
NO_WINDOW, UNREACHABLE = 256, 512
"""Besides those of TCP: the window is 0; ICMP quotes the segment as not delivered."""

MASK = 0xFFFFFFFF
SIGN32, RANGE32 = 1 << 31, 1 << 32

# events of a conversation, in this order in `stream.KIND_NAMES`
OPEN, DATA, GAP, CLOSE = range(4)

RETRANSMITTED, SAME_PACKET, OUT_OF_ORDER, CONFLICT, LIMIT = 1, 2, 4, 8, 16
"""Bits of `HalfStream.insert` about a segment; the first two exclude each other. Out of order is
bytes that come after those that follow them."""

HISTORY_SAME_PACKET, HISTORY_CONFLICT = 1, 2
"""Bits of `History.compare` about bytes that were sent before."""

CURRENT, SUCCESSOR, NEITHER = range(3)
"""A SYN belongs to the conversation that is open, to a new one, or to none."""

REUSED, MAYBE_REUSED = 1, 2
"""Results of `handshake.detect_reuse`."""

CERTAIN, AHEAD, OUTSIDE = range(3)
"""Where a RST is: at the next byte or where its receiver may expect it; beyond that, within a
window, so that segments are missing from the capture or TCP sends a challenge ACK; outside the
window."""

# columns of a segment's row
PACKET = 0
"""Row of the packet in its batch."""
A_HIGH, A_LOW, B_HIGH, B_LOW = 1, 2, 3, 4
"""Source and destination address, of 128 bits in two signed halves (IPv4: 0 and 32 bits)."""
PORTS = 5
"""IP version << 32 | source port << 16 | destination port."""
SEQ, ACKNOWLEDGED, FLAGS = 6, 7, 8
"""Those of TCP, with `NO_WINDOW`. Of a segment that ICMP quotes the flags are `UNREACHABLE`, and
the code of ICMP stands for the number acknowledged."""
EXTRA = 9
"""-1: the payload is in the batch's bytes; otherwise in those with this index in `extra`."""
START, CAPTURED, LENGTH = 10, 11, 12
"""Where the payload begins in those bytes, how much of it was captured, its length on the wire."""
SEEN = 13
"""Bytes of packets captured so far, with this one."""
IDENTIFICATION = 14
"""That of the IP packet; -1 in IPv6, which has none."""
SEGMENT_FIELDS = 15

# columns of a row of `History`: a segment that was delivered
SENT_PREVIOUS = 0
"""The row before this one of the same half-stream; -1 for none."""
SENT_BLOCK, SENT_POSITION = 1, 2
"""The block of packets that its bytes are in, and where in it."""
SENT_OFFSET, SENT_LENGTH = 3, 4
"""Where its bytes are in the stream, and how many they are."""
SENT_SEEN, SENT_TS_NS, SENT_IDENTIFICATION, SENT_NUMBER = 5, 6, 7, 8
"""Of its packet: bytes of packets captured up to it, time, identification, number."""
SENT_FIELDS = 9

CHUNK = 1024
"""Packets whose headers are read at once: their rows (120 bytes each) stay in the second-level
cache."""

# layers of a packet
IPV4, IPV6 = 0x0800, 0x86DD
OFFSET_BITS = 40
OFFSET_MASK = (1 << OFFSET_BITS) - 1

MAX_LAYERS = 32
"""IP-in-IP, GRE and VXLAN nest two or three deep, with a few extension headers each; the bound
keeps a packet of nothing but headers from costing more than its neighbours."""

# how the layers of a packet end, beside `headers.WAITING`
TCP, NOT_TCP, MALFORMED, QUOTED = 6, -2, -3, -4
