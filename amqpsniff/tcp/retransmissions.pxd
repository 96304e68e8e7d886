# Written by `python -m tests.house.declarations`.

cdef class History:
    cdef public long long segments
    cdef public long long octets
    cdef public long long duplicate_ns
    cdef public long long[::1] table
    cdef public long long head
    cdef public dict blocks
    cdef public long long blocks_made
    cdef public long long block
    cdef public object order
    cdef public list entry
    cdef public long long seen
    cdef public long long identification
    cdef public long long sent_number
    cdef public long long sent_ns
    cpdef long long remember(self, object octets, long long seen) except? -1
    cpdef int begin_batch(self, object octets, long long seen) except? -1
    cpdef int end_batch(self, long long seen) except? -1
    cdef long long add(self, long long previous, long long block, long long position, long long offset, long long length, long long seen, long long ts_ns, long long packet) except? -1
    cdef bint copies(self, long long identification, long long before_ns, long long ts_ns) except? -1
    cdef int compare(self, long long last, bytes octets, long long position, long long offset, long long length, long long seen, long long ts_ns) except? -1
