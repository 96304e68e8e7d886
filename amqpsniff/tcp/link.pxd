cdef long long link_place(
    const unsigned char[::1] octets, long long at, long long end, long long link_type
) except? -2
cdef long long ip_place(
    const unsigned char[::1] octets, long long at, long long end, long long ethertype
) except? -2
cdef long long udp_place(
    const unsigned char[::1] octets, long long at, long long end, int port
) except? -9
cdef long long gre_place(const unsigned char[::1] octets, long long at, long long end) except? -9
