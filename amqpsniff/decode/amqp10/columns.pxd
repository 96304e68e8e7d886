from amqpsniff.columns cimport Codes, Integers, Texts
from amqpsniff.decode.octets cimport ByteReader

cdef class DeliveryColumns:
    cdef public long long capacity
    cdef public ByteReader reader
    cdef public dict words, known
    cdef public Codes transfers, delivery_count, state, state_error, settled_by, transaction, address
    cdef public Integers message_bytes, message_format
    cdef public Texts tag, annotations
    cpdef int reserve(self, long long rows) except? -1
    cpdef int put_name(self, str name, long long row, str text) except? -1
