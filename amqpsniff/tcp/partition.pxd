# Written by `python -m tests.house.declarations`.
from amqpsniff.tcp.headers cimport HeaderParser

cdef long long mark_of(long long a_high, long long a_low, long long b_high, long long b_low, long long ports) except? -1

cdef class Marks:
    cdef public long long[::1] cells
    cdef public long long[::1] answers
    cdef public object find
    cdef long long number(self, long long mark) except? -3

cdef class Partition(Marks):
    pass

cdef class Columns:
    cdef public long long[::1] number
    cdef public long long[::1] ts_ns
    cdef public long long[::1] start
    cdef public long long[::1] captured
    cdef public long long[::1] original
    cdef public long long[::1] link_type

cdef class Pile:
    cdef public object octets
    cdef public object numbers
    cdef public long long[::1] table
    cdef public long long count
    cdef public long long reached
    cdef int _clear(self) except? -1
    cdef long long room(self) except? -1

cdef class Dealer:
    cdef public HeaderParser parser
    cdef public object fragments
    cdef public list extra
    cdef public Marks buckets
    cdef public list piles
    cdef public list full
    cdef public long long size
    cdef public long long latest
    cdef public long long seen
    cdef int _deal(self, object batch, long long begin, long long end, long long count, bint loose) except? -1
    cdef int _put(self, long long bucket, Columns columns, bytes octets, long long packet) except? -1

cdef class Survey:
    cdef public HeaderParser parser
    cdef public list extra
    cdef public dict indexes
    cdef public Marks marks
    cdef public object counts
    cdef public long long[::1] table
    cdef public long long packets
    cdef public long long segments
    cdef public long long first
    cdef public long long least
    cdef public long long last
    cdef int _time(self, long long[::1] times, long long begin, long long end) except? -1
    cdef int _count(self, object segments, long long count, long long[::1] captured) except? -1
