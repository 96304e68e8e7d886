# Written by `python -m tests.house.declarations`.
cdef extern from *:
    const int NUMBER_BITS "40"
    const long long NUMBER_MASK "1099511627775LL"
