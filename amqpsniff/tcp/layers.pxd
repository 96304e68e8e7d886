cdef class Layers:
    cdef object fragments
    cdef list extra
    cdef readonly dict unread
    cdef const unsigned char[::1] block, octets
    cdef long long source, at, end, wire_end, ts_ns, identification
    cdef long long family, a_high, a_low, b_high, b_low, reason
    cdef int begin_batch(self, const unsigned char[::1] octets, list extra) except? -1
    cdef int leave(self, bint used) except? -1
    cdef int walk(self, long long header) except? -9
    cdef int _layer(self, int kind) except? -9
    cdef int _icmp(self, int unreachable) except? -9
    cdef int _ipv4(self) except? -9
    cdef int _ipv6(self) except? -9
    cdef int _extension(self, long long unit) except? -9
    cdef int _fragment_header(self) except? -9
    cdef int _fragment(
        self, int protocol, long long identification, long long offset, bint last
    ) except? -9
    cdef int _udp(self) except? -9
    cdef int _gre(self) except? -9
    cdef int _unread(self, tunnel) except? -9
    cdef int _inside(self, long long header) except? -9
