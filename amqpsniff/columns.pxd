cdef class Integers:
    cdef long long[::1] values
    cdef public long long capacity
    cdef public object storage
    cpdef int reserve(self, long long rows) except? -1

cdef class Codes:
    cdef int[::1] values
    cdef public long long capacity
    cdef public object storage
    cpdef int reserve(self, long long rows) except? -1

cdef class Texts:
    cdef unsigned char[::1] octets
    cdef int[::1] offsets
    cdef unsigned char[::1] valid
    cdef public object octets_storage, offsets_storage, valid_storage
    cdef public long long rows, capacity, used, size, values
    cpdef int reserve(self, long long rows) except? -1
    cdef int room(self, long long count) except? -1
    cdef int _move_into(self, storage) except? -1
    cdef int put_octet(self, unsigned char octet) except? -1
    cdef int put(self, const unsigned char[::1] source, long long start, long long count) except? -1
    cdef int put_bool(self, bint value) except? -1
    cpdef int put_bytes(self, bytes octets) except? -1
    cpdef int begin(self, long long row) except? -1
    cdef int end(self) except? -1
