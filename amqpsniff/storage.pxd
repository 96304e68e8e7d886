cpdef bytearray null_integers(long long rows)
cpdef bytearray null_codes(long long rows)
cpdef bytearray room_for(long long octets)
cpdef bytearray sealed(bytearray storage, long long used)
