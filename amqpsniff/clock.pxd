cdef long long elapsed(long long begin_ns, long long end_ns) noexcept
