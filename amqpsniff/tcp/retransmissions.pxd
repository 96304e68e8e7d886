cdef class History:
    cdef long long segments, octets, duplicate_ns, blocks_made
    cdef long long[::1] table
    cdef long long head, seen, identification, sent_number, sent_ns
    cdef readonly long long block
    cdef readonly dict blocks
    cdef readonly object order
    cdef list entry
    cpdef long long remember(self, octets, long long seen) except? -1
    cpdef int begin_batch(self, octets, long long seen) except? -1
    cpdef int end_batch(self, long long seen) except? -1
    cdef long long add(
        self, long long previous, long long block, long long position, long long offset,
        long long length, long long seen, long long ts_ns, long long packet
    ) except? -1
    cdef bint copies(self, long long identification, long long before_ns, long long ts_ns) except? -1
    cdef int compare(
        self, long long last, bytes octets, long long position, long long offset,
        long long length, long long seen, long long ts_ns
    ) except? -1
