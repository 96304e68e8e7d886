from amqpsniff.decode.rows cimport MessageRows
from amqpsniff.session.lately cimport Lately
from amqpsniff.session.state cimport Channel, Entry

cdef class Settler:
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
    cdef int publish(self, Channel channel, Entry entry) except? -1
    cdef int deliver(self, Channel channel, Entry entry) except? -1
    cdef int _wait(self, Channel channel, Entry entry) except? -1
    cdef int expect_return(self, Channel channel, Entry entry) except? -1
    cdef int _give_up(self, Entry entry) except? -1
    cdef int confirm(self, Channel channel, long long tag, bint multiple, int outcome, long long number, long long ts_ns) except? -1
    cdef int _confirm(self, Channel channel, Entry entry, int outcome, long long number, long long ts_ns) except? -1
    cdef int confirm_in_part(self, Channel channel, long long tag) except? -1
    cpdef int acknowledge_in_part(self, Channel channel, long long tag) except? -1
    cdef int refuse_in_part(self, Channel channel, long long tag) except? -1
    cdef int acknowledge(self, Channel channel, long long tag, bint multiple, int outcome, long long number, long long ts_ns) except? -1
    cdef int _expect_refusal(self, Channel channel, long long tag, long long ts_ns) except? -1
    cdef int _settle_tentatively(self, Channel channel, Entry entry, int outcome, long long number, long long ts_ns) except? -1
    cpdef int believe(self, Channel channel, long long ts_ns) except? -1
    cpdef int believe_all(self, Channel channel) except? -1
    cdef int _believe_next(self, Channel channel) except? -1
    cpdef int refuse(self, Channel channel, long long tag) except? -1
    cpdef int doubt(self, Channel channel, long long ts_ns) except? -1
    cdef int _count_unsettled(self, Channel channel, Entry entry) except? -1
    cdef int _count_settled(self, Channel channel, Entry entry) except? -1
    cdef int _conclude(self, Channel channel, Entry entry, int outcome, long long number, long long ts_ns) except? -1
    cdef int _put_back(self, Channel channel, Entry entry) except? -1
    cdef int _acknowledge(self, Channel channel, Entry entry, int outcome, long long number, long long ts_ns) except? -1
    cdef int finally_acknowledge(self, Channel channel, Entry entry, int outcome, long long number, long long ts_ns) except? -1
    cpdef int recover(self, Channel channel, long long until, long long number, long long ts_ns) except? -1
    cpdef int commit(self, Channel channel, list noted, long long number, long long ts_ns) except? -1
    cpdef int roll_back(self, Channel channel) except? -1
    cdef Entry give_back(self, Entry returned)
    cpdef int select(self, Channel channel) except? -1
    cpdef int committed(self, Channel channel, long long number) except? -1
    cdef int _be_done(self, Entry entry) except? -1
    cdef int _open_end(self, Entry entry) except? -2
    cdef int _leave_open(self, Entry entry) except? -1
    cpdef int finish(self, Channel channel) except? -1
