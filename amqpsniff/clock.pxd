# Written by `python -m tests.house.declarations`.

cdef long long elapsed(long long begin_ns, long long end_ns) noexcept
