# Written by `python -m tests.house.declarations`.
from amqpsniff.session.entities cimport Session

cpdef list quantile_places(long long[::1] counts, object fractions)

cdef class Histogram:
    cdef public long long total
    cdef public long long number
    cdef public long long largest
    cdef public long long[::1] counts
    cpdef int add(self, long long value) except? -1

cdef class LatencyHistogram:
    cdef public long long number
    cdef public int[::1] now
    cdef public int[::1] before
    cpdef int add(self, long long time_ns) except? -1

cdef class RecentLatencies:
    cdef public LatencyHistogram confirms
    cdef public LatencyHistogram acks
    cdef int add(self, Session session, int outcome, long long time_ns) except? -1

cdef class Rate:
    cdef public long long messages
    cdef public long long peak
    cdef public long long last
    cdef public long long run
    cdef public object peak_second
    cdef public dict seconds
    cpdef int add(self, long long ts_ns) except? -1
    cdef int _flush(self) except? -1

cdef class ConnectionCounters:
    cdef public long long vhost
    cdef public long long frames
    cdef public long long channels
    cdef public long long client_bytes
    cdef public long long server_bytes

cdef class RouteCounter:
    cdef public long long published
    cdef public long long published_bytes
    cdef public long long delivered
    cdef public long long delivered_bytes
    cdef public long long published_sized
    cdef public long long delivered_sized
    cdef int add(self, int way, long long size) except? -1
    cdef int merge(self, RouteCounter other) except? -1

cdef class RouteCounters:
    cdef public dict by_number
    cdef public long long[::1] recent_numbers
    cdef public list recent
    cdef RouteCounter of(self, long long number)
