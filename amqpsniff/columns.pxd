# Written by `python -m tests.house.declarations`.
cimport cython

cpdef bytearray null_integers(long long rows)
cpdef bytearray null_codes(long long rows)
cpdef bytearray room_for(long long octets)
cpdef bytearray sealed(bytearray storage, long long used)

cdef class Integers:
    cdef public long long capacity
    cdef public bint nulls
    cdef public object storage
    cdef public long long[::1] values
    cpdef int reserve(self, long long rows) except? -1
    cpdef int clear(self, long long rows) except? -1

cdef class Codes:
    cdef public long long capacity
    cdef public bint nulls
    cdef public object storage
    cdef public int[::1] values
    cpdef int reserve(self, long long rows) except? -1
    cpdef int clear(self, long long rows) except? -1

cdef class Octets:
    cdef public object storage
    cdef public long long used
    cdef public long long size
    cdef public unsigned char[::1] octets
    cdef int room(self, long long count) except? -1
    cdef int _grow(self, long long count) except? -1
    cdef int put_byte(self, unsigned char octet) except? -1
    cdef bytes bytes_between(self, long long start, long long end)
    cdef int put_from(self, Octets source, long long start, long long count) except? -1
    cpdef int put_bytes(self, bytes octets) except? -1
    cdef int put_bool(self, bint value) except? -1

cdef class Vocabulary(Octets):
    cdef public int count
    cdef public int near
    cdef public object ends_storage
    cdef public long long slot
    cdef public int[::1] ends
    cdef public int[::1] meant
    cdef public int[::1] slots
    cdef public unsigned long long[::1] hashes
    cdef public list strings
    cdef int find(self, unsigned long long digest, long long length) except? -2
    cdef int next(self, unsigned long long digest, long long length) except? -2
    cdef int _candidate(self, unsigned long long digest, long long length) except? -2
    cdef int add(self, unsigned long long digest) except? -1
    cdef int _grow_slots(self) except? -1
    cpdef str text(self, int code)

@cython.final
cdef class Texts(Octets):
    cdef public int[::1] offsets
    cdef public unsigned char[::1] valid
    cdef public object offsets_storage
    cdef public object valid_storage
    cdef public long long rows
    cdef public long long capacity
    cdef public long long values
    cpdef int reserve(self, long long rows) except? -1
    cpdef int begin(self, long long row) except? -1
    cdef int end(self) except? -1
    cdef int repeat(self, long long row, long long source) except? -1
    cpdef bint has(self, long long row) except? -1
    cpdef bytes bytes_of(self, long long row)
    cpdef int clear(self, long long rows) except? -1
