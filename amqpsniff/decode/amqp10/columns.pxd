from amqpsniff.columns cimport Codes, Integers, Texts, Vocabulary

cdef class Names(Codes):
    cdef public Vocabulary words
    cdef dict known
    cdef str last
    cdef int last_code
    cpdef int put(self, long long row, str text) except? -1

cdef class SideColumns:
    cdef public long long capacity
    cdef public dict made
    cpdef int reserve(self, long long rows) except? -1
    cpdef bint clear(self, long long rows) except? -1

cdef class DeliveryColumns(SideColumns):
    cdef public bint told
    cdef public Codes transfers, delivery_count
    cdef public Names state, state_error, settled_by, transaction, address
    cdef public Integers message_bytes, message_format
    cdef public Texts tag, annotations
