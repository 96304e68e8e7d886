"""Types of frames, modes of half-streams, states of contents, what became of frames: by code."""

# types of a frame, and its last byte
METHOD, HEADER, BODY, HEARTBEAT = 1, 2, 3, 8
PROTOCOL_HEADER = 256
"""A protocol header has no type byte."""

FRAME_END = 0xCE
AMQP_BYTES = 0x414D5150
"""The bytes `AMQP`, with which protocol headers begin, as a number."""

EXACT, UNKNOWN, TOO_SHORT, TRAILING = range(4)
"""How arguments were read: to the last byte; no method of the dialect has these numbers; the
payload ends before the last argument; bytes are left after it."""

# modes of a half-stream
START, SEARCH, FRAMES, NOT_AMQP, UNSUPPORTED_VERSION, UNIDENTIFIED = range(6)
AMQP10, AMQP010 = 6, 7
"""START: nothing seen yet but, it may be, a proxy's header. SEARCH: looking for a frame boundary.
FRAMES: at a known place between or in frames. NOT_AMQP: another protocol. UNSUPPORTED_VERSION: AMQP
of a version that is not decoded. UNIDENTIFIED: not AMQP, and not all of its first bytes were seen
yet. AMQP10, AMQP010: AMQP 1.0 and 0-10, whose framers know where they are."""

# states of a content
AWAIT_METHOD, AWAIT_HEADER, AWAIT_BODY = 0, 1, 2

# status of a frame or message
COMPLETE, TRUNCATED, INCOMPLETE, ABORTED = 0, 1, 2, 3
STATUS_NAMES = ("complete", "truncated", "incomplete", "aborted")
