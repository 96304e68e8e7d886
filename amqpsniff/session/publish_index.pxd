# Written by `python -m tests.house.declarations`.

cdef class PublishIndex:
    cdef public object memory
    cdef public long long most
    cdef public long long age_ns
    cdef public long long size
    cdef public long long used
    cdef public long long oldest
    cdef public long long next_id
    cdef public long long positions
    cdef public long long candidates
    cdef public bint is_first_hop
    cdef public unsigned long long[::1] keys
    cdef public unsigned long long[::1] queues
    cdef public long long[::1] packet_numbers
    cdef public long long[::1] times
    cdef public long long[::1] connection_ids
    cdef public long long[::1] places
    cdef public long long[::1] delivered
    cdef public long long[::1] later
    cdef public unsigned char[::1] identified
    cdef public unsigned char[::1] doubted
    cdef public long long[::1] first
    cdef public long long[::1] last
    cdef public long long[::1] reached
    cdef public int[::1] slots
    cdef public list asks
    cdef public list answers
    cdef public list free
    cdef public dict more
    cdef public dict hits
    cdef long long at(self, long long publish) noexcept
    cpdef long long remember(self, unsigned long long key, long long packet_number, long long ts_ns, long long connection_id, bint identified) except? -2
    cdef bint _is_old(self, long long ts_ns) except? -1
    cdef int _forget(self) except? -1
    cdef int _grow(self) except? -1
    cdef int _copy(self, object source, object target, long long size) except? -1
    cpdef long long get(self, unsigned long long key) except? -2
    cdef long long _slot(self, unsigned long long key) except? -2
    cdef int _empty(self, long long slot) except? -1
    cdef int _new_line(self, long long publish) except? -1
    cpdef long long match(self, long long line, unsigned long long queue, bint again) except? -2
    cdef long long _again(self, long long line, unsigned long long queue, long long reached) except? -2
    cdef long long _position(self, long long line, unsigned long long queue) except? -2
    cdef int _put(self, long long line, unsigned long long queue, long long publish) except? -1
    cdef int _limit_reached(self, str name) except? -1
