# Written by `python -m tests.house.declarations`.
from amqpsniff.tcp.half_stream cimport HalfStream

cdef class _Shown:
    cdef public int version
    cdef public int port
    cdef public long long high
    cdef public long long low
    cdef public str text

cdef class Conversation:
    cdef public HalfStream first
    cdef public HalfStream second
    cdef public int version
    cdef public int a_port
    cdef public int b_port
    cdef public long long a_high
    cdef public long long a_low
    cdef public long long b_high
    cdef public long long b_low
    cdef public bytes key
    cdef public long long incarnation
    cdef public str name
    cdef public bint syn_seen
    cdef public long long first_isn
    cdef public long long first_packet_number
    cdef public long long start_ns
    cdef public long long serial
    cdef public long long syn_ns
    cdef public int syns_again
    cdef public int answers_again
    cdef public long long round_trip_ns
    cdef public long long unreachable
    cdef public object ended
    cdef public object ended_by
    cdef public long long ended_ns
    cdef public long long ended_number
    cdef public long long reset_ns
    cdef public object reset
    cdef public object successor
    cdef public bint lingers
    cdef public long long over_ns
    cdef public dict findings_made
    cdef public object tls
    cdef int take_ends(self, long long[::1] rows, long long at, bint turned) except? -1
    cdef str _name(self)
    cdef bint may_report(self, object code, int max_findings) except? -1
    cdef HalfStream last_half(self)
    cpdef long long last_number(self) except? -2
cdef bytes key_of(long long[::1] rows, long long at)

cdef class Closed:
    cdef public bytes key
    cdef public long long next_seq
    cdef public long long back_next_seq
    cdef public long long isn
    cdef public long long back_isn
    cdef public long long incarnation
    cdef public bint over

cdef class ConversationTable:
    cdef public list halves
    cdef public list conversations
    cdef public dict keys
    cdef public long long open_count
    cdef public long long near
    cdef public long long remembered
    cdef public long long[::1] turned
    cdef dict _closed
    cdef list _ended
    cdef long long _oldest
    cdef list _free
    cdef list _free_next_batch
    cdef list _quiet
    cdef bytes back_key(self, long long[::1] rows, long long at)
    cdef bytes key(self, long long[::1] rows, long long at)
    cdef HalfStream find(self, long long[::1] rows, long long at)
    cpdef int begin_batch(self) except? -1
    cdef long long free_slot(self) except? -1
    cdef int add(self, long long slot, Conversation conversation, HalfStream half, long long serial) except? -1
    cdef int remove(self, Conversation conversation, bint over) except? -1
    cdef Closed _record(self)
    cdef int _remember(self, Conversation conversation, HalfStream half, Closed record, bint over) except? -1
    cdef long long incarnation(self, bytes key) except? -1
    cdef bint is_straggler(self, long long[::1] rows, long long at, long long seq, bint syn) except? -1
    cdef bint is_beyond(self, long long[::1] rows, long long at) except? -1
    cdef Conversation least_active(self)
    cdef list all_open(self, long long max_count)
