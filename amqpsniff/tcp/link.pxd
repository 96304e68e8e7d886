# Written by `python -m tests.house.declarations`.

cdef long long find_ip_below(const unsigned char[::1] octets, long long at, long long end, long long ethertype) except? -2
cdef long long header_in_udp(const unsigned char[::1] octets, long long at, long long end, int port) except? -9
cdef long long header_in_gre(const unsigned char[::1] octets, long long at, long long end) except? -9
cdef long long find_ip(const unsigned char[::1] octets, long long at, long long end, long long link_type) except? -2
