# Written by `python -m tests.house.declarations`.
from amqpsniff.tcp.conversation cimport Conversation, ConversationTable
from amqpsniff.tcp.half_stream cimport HalfStream, HoldingPool, Segment
from amqpsniff.tcp.stream cimport EventWriter

cdef int open_conversation(ConversationTable table, EventWriter writer, HoldingPool pool, Segment segment, long long serial, object start_facts) except? -1
cdef bint may_open(ConversationTable table, Segment segment) except? -1
cdef int detect_reuse(Conversation conversation, HalfStream half, HalfStream other, Segment segment) except? -1
cdef int set_starts(ConversationTable table, Conversation conversation, object starts) except? -1
cdef int classify_syn(HalfStream half, HalfStream other, Segment segment) except? -1
cdef int set_isn(HalfStream half, long long isn) except? -1
cdef bint may_be_first(bytes octets, long long start, long long captured) except? -1
