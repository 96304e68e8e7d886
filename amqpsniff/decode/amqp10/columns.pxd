# Written by `python -m tests.house.declarations`.
from amqpsniff.columns cimport Codes, Integers, Texts, Vocabulary

cdef class Names(Codes):
    cdef public int last_code
    cdef public Vocabulary words
    cdef public dict known
    cdef public str last
    cpdef int put(self, long long row, str text) except? -1

cdef class SideColumns:
    cdef public long long capacity
    cdef public dict made
    cpdef int reserve(self, long long rows) except? -1
    cpdef bint clear(self, long long rows) except? -1

cdef class DeliveryColumns(SideColumns):
    cdef public bint all_columns
    cdef public dict answers
    cdef public Codes transfers
    cdef public Codes delivery_count
    cdef public Names state
    cdef public Names state_error
    cdef public Names settled_by
    cdef public Names transaction
    cdef public Names address
    cdef public Integers message_bytes
    cdef public Integers message_format
    cdef public Texts tag
    cdef public Texts annotations
