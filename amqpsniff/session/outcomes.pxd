from amqpsniff.decode.rows cimport MessageRows
from amqpsniff.session.lately cimport Lately
from amqpsniff.session.state cimport Entry

cdef class Outcomes:
    cdef public object watcher, unanswered
    cdef public dict hits
    cdef public list spreads
    cdef public Lately lately
    cdef long long[::1] ended
    cdef public long long most, most_disorder, most_returnable, outstanding
    cpdef int hit(self, str name) except? -1
    cdef int settle(self, Entry entry, int outcome, long long number, long long ts_ns) except? -1
    cdef int _write(self, Entry entry) except? -1
    cdef int _shut(self, Entry entry) except? -1
    cdef int _close_row(self, Entry entry, int outcome) except? -1
    cdef int attach(self, Entry entry, MessageRows rows, long long row) except? -1
