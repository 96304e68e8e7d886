cdef class EventWriter:
    cdef public list columns, extra, findings, late, resets
    cdef readonly long long count
    cdef long long capacity
    cdef int[::1] kind, half, source
    cdef long long[::1] start, length, stream_offset, number, ts_ns
    cpdef int reserve(self, long long rows) except? -1
    cdef int _bind(self, long long rows) except? -1
    cdef int _grow(self) except? -1
    cdef int note_late(self, long long first, long long number, long long ts_ns) except? -1
    cdef int append(
        self, int kind, int half, int source, long long start, long long length,
        long long stream_offset, long long number, long long ts_ns
    ) except? -1
