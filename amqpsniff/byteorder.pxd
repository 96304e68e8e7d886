cimport cython

# What `byteorder.py` says, on pointers: of octets next to one another C compilers make one load.

cdef inline const unsigned char* _first(const unsigned char[::1] octets, Py_ssize_t at) noexcept:
    with cython.boundscheck(False):
        return &octets[at]

cdef inline long long u16(const unsigned char[::1] octets, Py_ssize_t at) noexcept:
    cdef const unsigned char* first = _first(octets, at)
    return first[0] << 8 | first[1]

cdef inline long long u32(const unsigned char[::1] octets, Py_ssize_t at) noexcept:
    cdef const unsigned char* first = _first(octets, at)
    cdef unsigned int value = <unsigned int>first[0] << 24 | first[1] << 16 | first[2] << 8 | first[3]
    return value

cdef inline long long u32_little(const unsigned char[::1] octets, Py_ssize_t at) noexcept:
    cdef const unsigned char* first = _first(octets, at)
    cdef unsigned int value = <unsigned int>first[3] << 24 | first[2] << 16 | first[1] << 8 | first[0]
    return value

cdef inline long long u32_in(const unsigned char[::1] octets, Py_ssize_t at, bint big) noexcept:
    return u32(octets, at) if big else u32_little(octets, at)

cdef inline long long checked_u32(const unsigned char[::1] octets, Py_ssize_t at, bint big) except -1:
    if at < 0 or at + 4 > octets.shape[0]:
        raise IndexError("a number outside the octets")
    return u32_in(octets, at, big)

cdef inline long long i64(const unsigned char[::1] octets, Py_ssize_t at) noexcept:
    cdef const unsigned char* first = _first(octets, at)
    cdef unsigned long long value = 0
    cdef int i
    for i in range(8):
        value = value << 8 | first[i]
    return <long long>value
