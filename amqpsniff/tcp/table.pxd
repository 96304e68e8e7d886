from amqpsniff.tcp.conversation cimport Conversation
from amqpsniff.tcp.half_stream cimport HalfStream

cdef bytes key_of(long long[::1] rows, long long at)

cdef class Closed:
    cdef bytes key
    cdef long long next_seq, back_next_seq, isn, back_isn, incarnation
    cdef bint over

cdef class ConversationTable:
    cdef readonly list halves, conversations
    cdef dict keys, _closed
    cdef readonly long long open_count
    cdef long long near, remembered, _oldest
    cdef long long[::1] turned
    cdef list _free, _free_next_batch, _ended, _quiet
    cpdef int begin_batch(self) except? -1
    cdef long long free_slot(self) except? -1
    cdef int add(
        self, long long slot, Conversation conversation, HalfStream half, long long serial
    ) except? -1
    cdef bytes back_key(self, long long[::1] rows, long long at)
    cdef bytes key(self, long long[::1] rows, long long at)
    cdef HalfStream find(self, long long[::1] rows, long long at)
    cdef int remove(self, Conversation conversation, bint over) except? -1
    cdef Closed _record(self)
    cdef int _remember(
        self, Conversation conversation, HalfStream half, Closed record, bint over
    ) except? -1
    cdef long long incarnation(self, bytes key) except? -1
    cdef bint is_straggler(
        self, long long[::1] rows, long long at, long long seq, bint syn
    ) except? -1
    cdef bint is_beyond(self, long long[::1] rows, long long at) except? -1
    cdef Conversation least_active(self)
    cdef list all_open(self, long long most)
