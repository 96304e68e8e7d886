# Written by `python -m tests.house.declarations`.

cdef class EventWriter:
    cdef public list columns
    cdef public list extra
    cdef public list findings
    cdef public list late
    cdef public list resets
    cdef public long long count
    cdef public long long capacity
    cdef public int[::1] kind
    cdef public int[::1] half
    cdef public int[::1] source
    cdef public long long[::1] start
    cdef public long long[::1] length
    cdef public long long[::1] stream_offset
    cdef public long long[::1] number
    cdef public long long[::1] ts_ns
    cpdef int reserve(self, long long rows) except? -1
    cdef int _bind(self, long long rows) except? -1
    cdef int _grow(self) except? -1
    cdef int append(self, int kind, int half, int source, long long start, long long length, long long stream_offset, long long number, long long ts_ns) except? -1
    cdef int note_late(self, long long first, long long number, long long ts_ns) except? -1
