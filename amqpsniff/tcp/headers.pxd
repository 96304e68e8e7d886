# Written by `python -m tests.house.declarations`.
cimport cython

cdef long long find_ip_below(const unsigned char[::1] octets, long long at, long long end, long long ethertype) except? -2
cdef long long header_in_udp(const unsigned char[::1] octets, long long at, long long end, int port) except? -9
cdef long long header_in_gre(const unsigned char[::1] octets, long long at, long long end) except? -9
cdef long long find_ip(const unsigned char[::1] octets, long long at, long long end, long long link_type) except? -2

@cython.final
cdef class Layers:
    cdef public object fragments
    cdef public long long source
    cdef public long long identification
    cdef public long long reason
    cdef public list extra
    cdef public dict unread
    cdef public const unsigned char[::1] block
    cdef public const unsigned char[::1] octets
    cdef public long long at
    cdef public long long end
    cdef public long long wire_end
    cdef public long long ts_ns
    cdef public long long family
    cdef public long long a_high
    cdef public long long a_low
    cdef public long long b_high
    cdef public long long b_low
    cdef int begin_batch(self, const unsigned char[::1] octets, list extra) except? -1
    cdef int leave(self, bint used) except? -1
    cdef int walk(self, long long header) except? -9
    cdef int _layer(self, int kind) except? -9
    cdef int _unread(self, object tunnel) except? -9
    cdef int _icmp(self, int unreachable) except? -9
    cdef int _ipv4(self) except? -9
    cdef int _ipv6(self) except? -9
    cdef int _extension(self, long long unit) except? -9
    cdef int _fragment_header(self) except? -9
    cdef int _fragment(self, int protocol, long long identification, long long offset, bint last) except? -9
    cdef int _udp(self) except? -9
    cdef int _gre(self) except? -9
    cdef int _inside(self, long long header) except? -9

@cython.final
cdef class HeaderParser:
    cdef public Layers layers
    cdef public object rows
    cdef public long long[::1] table
    cdef public long long capacity
    cdef public bint filtered
    cdef public const unsigned char[::1] followed
    cdef public long long seen
    cdef public long long not_ip
    cdef public long long not_tcp
    cdef public long long malformed
    cdef public long long other_ports
    cpdef long long parse(self, object batch, long long begin, long long end, list extra) except? -1
    cdef int _pass(self, long long[::1] passed, long long begin, long long end, long long stop) except? -1
    cdef int _reserve(self, long long rows) except? -1
    cdef int _walk(self, long long header) except? -1
    cdef long long _quote(self, long long[::1] table, long long row, long long packet, long long seen) except? -1
