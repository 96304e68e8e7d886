from amqpsniff.columns cimport Octets, Vocabulary
from amqpsniff.decode.values cimport ValueReader

cdef class Memory:
    cdef public Vocabulary words
    cdef public Octets json
    cdef public int tried, found, resting
    cdef long long[::1] starts
    cpdef int forget(self) except? -1
    cdef bint awake(self) except? -1

cdef class TableMemory(Memory):
    cdef int put_table(self, ValueReader reader, long long at, long long end) except? -1
    cdef int _learn(self, ValueReader reader, unsigned long long digest, long long at, long long count, long long mark) except? -1
