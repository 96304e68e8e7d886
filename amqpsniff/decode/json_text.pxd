from amqpsniff.columns cimport Texts
from amqpsniff.decode.octets cimport OctetReader

cdef class JsonWriter(OctetReader):
    cdef public Texts out
    cdef int _digits(self, long long number) except? -1
    cdef int _padded(self, long long number, int width) except? -1
    cdef int _octets(self, long long start, long long count) except? -1
    cdef const unsigned char[::1] base64
    cdef public bint plain
    cdef dict floats, doubles
    cdef int _base64(self, long long start, long long count) except? -1
    cdef int put_text(self, long long start, long long count) except? -1
    cdef bint _escape(self, long long start, long long count) except? -1
    cdef int _float(self, long long start, int width) except? -1
    cdef int _decimal(self, long long at) except? -1
    cdef long long timestamp_ms(self, long long at) except? -2
    cdef int _timestamp(self, long long at) except? -1
    cdef int _date(self, long long seconds, long long ms) except? -1
    cdef int _unsigned(self, long long at) except? -1
