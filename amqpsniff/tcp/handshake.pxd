from amqpsniff.tcp.conversation cimport Conversation
from amqpsniff.tcp.stream cimport EventWriter
from amqpsniff.tcp.half_stream cimport HalfStream, HoldingPool
from amqpsniff.tcp.table cimport ConversationTable

cdef int opened(
    ConversationTable table, EventWriter writer, HoldingPool pool, long long[::1] rows,
    long long at, long long number, long long ts_ns, long long serial, known
) except? -1
cdef bytes block_of(EventWriter writer, bytes octets, long long source)
cdef int begin_at(ConversationTable table, Conversation conversation, starts) except? -1
cdef bint may_open(
    ConversationTable table, EventWriter writer, bytes octets, long long[::1] rows, long long at
) except? -1
cdef int begins_anew(
    Conversation conversation, HalfStream half, HalfStream other, EventWriter writer, bytes octets,
    long long[::1] rows, long long at, long long ts_ns
) except? -1
cdef int classify_syn(HalfStream half, HalfStream other, long long seq, long long ack, int flags) except? -1
cdef int begin(HalfStream half, long long isn) except? -1
