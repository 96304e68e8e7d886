cpdef list quantile_places(long long[::1] counts, object fractions)

cdef class Histogram:
    cdef long long[::1] counts
    cdef long long total, number, largest
    cpdef int add(self, long long value) except? -1

cdef class Rate:
    cdef long long messages, peak, last, run
    cdef object peak_second
    cdef dict seconds
    cpdef int add(self, long long ts_ns) except? -1
    cdef int _flush(self) except? -1

cdef class ConnectionCounters:
    cdef public long long vhost, frames, channels, client_bytes, server_bytes

cdef class RouteCounter:
    cdef public long long published, published_bytes, delivered, delivered_bytes
    cdef public long long published_sized, delivered_sized
    cdef int add(self, int way, long long size) except? -1
    cdef int merge(self, RouteCounter other) except? -1

cdef class RouteCounters:
    cdef dict by_number
    cdef long long[::1] recent_numbers
    cdef list recent
    cdef RouteCounter of(self, long long number)

cdef class LatencyHistogram:
    cdef int[::1] now, before
    cdef public long long number, number_before
    cpdef int add(self, long long time_ns) except? -1
