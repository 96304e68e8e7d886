# Written by `python -m tests.house.declarations`.
cdef extern from *:
    const long long NULL "(-9223372036854775807LL - 1)"
