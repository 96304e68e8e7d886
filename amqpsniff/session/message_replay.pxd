from amqpsniff.session.recent_publishes cimport RecentPublishes

cdef class ReplayedChannel:
    cdef public long long task, channel, repeats, last_repeat, poisons, last_poison
    cdef public long long queued, queued_ns, queued_ns_max
    cdef public object repeated, poisoned
    cdef public tuple longest

cdef class MessageReplay:
    cdef public RecentPublishes recent_publishes
    cdef public object returns
    cdef public dict seen, outstanding
    cdef public long long order
    cpdef int feed(self, dict columns, long long count) except? -1
    cdef ReplayedChannel _channel(self, long long task, long long channel)
    cdef int _repeat(self, long long task, long long channel, long long row, long long number, long long ts_ns, long long first) except? -1
    cdef int _queued(self, long long task, long long channel, long long row, long long number, long long ts_ns, long long waited, long long published) except? -1
    cdef int _close(self, long long task, long long channel) except? -1
    cdef int _again(self, long long kind, long long task, long long row, long long connection, long long channel, long long mark, long long tag, long long ts_ns, long long number) except? -1
    cdef long long _now(self) except? -1
