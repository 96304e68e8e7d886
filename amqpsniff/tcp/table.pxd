# Written by `python -m tests.house.declarations`.
from amqpsniff.tcp.conversation cimport Conversation
from amqpsniff.tcp.half_stream cimport HalfStream

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
    cdef list all_open(self, long long most)
