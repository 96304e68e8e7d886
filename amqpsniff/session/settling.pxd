# Written by `python -m tests.house.declarations`.
cimport cython
from amqpsniff.decode.rows cimport MessageRows
from amqpsniff.session.counts cimport Histogram, RecentLatencies
from amqpsniff.session.entities cimport Channel, PendingMessage

@cython.final
@cython.freelist(16)
cdef class Answer:
    cdef public long long tag
    cdef public bint multiple
    cdef public int outcome
    cdef public long long number
    cdef public long long ts_ns
cdef Answer answer_of(int outcome, long long number, long long ts_ns, long long tag=*, bint multiple=*)

cdef class UnnumberedConfirms:
    cdef public long long counted
    cdef public long long before
    cdef public long long published
    cdef public long long answered
    cdef public long long places
    cdef public long long oldest
    cdef public bint missed
    cdef public long long[::1] sent
    cpdef int forget(self) except? -1
    cpdef bint is_crowded(self) except? -1
    cpdef int grow(self) except? -1
    cpdef int publish(self, long long number, long long ts_ns, bint late) except? -1
    cpdef long long confirm(self, long long tag, bint multiple) except? -1
    cpdef long long place(self, long long tag) except? -1

@cython.final
cdef class Settler:
    cdef public object returnable
    cdef public long long most
    cdef public long long max_disorder
    cdef public long long max_returnable
    cdef public long long outstanding
    cdef public object emitter
    cdef public dict hits
    cdef public list histograms
    cdef public object scope
    cdef public Histogram bounds
    cdef public bint estimates
    cdef public long long more_places
    cdef public RecentLatencies recent_latencies
    cdef public long long[::1] ended
    cpdef int limit_reached(self, str name) except? -1
    cdef int settle(self, PendingMessage entry, Answer answer) except? -1
    cdef bint counts(self, PendingMessage entry) except? -1
    cdef int _write(self, PendingMessage entry) except? -1
    cdef int _freeze_row(self, PendingMessage entry) except? -1
    cdef int leave(self, PendingMessage entry, int outcome) except? -1
    cdef int attach(self, PendingMessage entry, MessageRows rows, long long row) except? -1
    cdef int publish(self, Channel channel, PendingMessage entry) except? -1
    cdef int publish_unnumbered(self, Channel channel, PendingMessage entry, bint late) except? -1
    cdef int follow_tag(self, Channel channel, long long tag) except? -1
    cdef int deliver(self, Channel channel, PendingMessage entry) except? -1
    cdef int _count_wait(self, Channel channel, PendingMessage entry) except? -1
    cdef int expect_return(self, Channel channel, PendingMessage entry) except? -1
    cdef int _give_up(self, PendingMessage entry) except? -1
    cdef int confirm(self, Channel channel, Answer answer, long long until) except? -1
    cdef int _estimate(self, Channel channel, Answer answer) except? -1
    cdef int _count_confirm(self, Channel channel, long long publish_number, long long publish_ns, long long took, Answer answer) except? -1
    cdef int confirm_one(self, Channel channel, PendingMessage entry, Answer answer) except? -1
    cdef int confirm_in_part(self, Channel channel, long long tag) except? -1
    cdef int acknowledge(self, Channel channel, Answer answer, long long until) except? -1
    cdef int _note_pause(self, Channel channel, PendingMessage entry, long long quiet) except? -1
    cdef int _expect_refusal(self, Channel channel, Answer answer) except? -1
    cpdef int accept_until(self, Channel channel, long long ts_ns) except? -1
    cpdef int accept_all(self, Channel channel) except? -1
    cdef int _accept_next(self, Channel channel) except? -1
    cpdef int refuse(self, Channel channel, long long tag) except? -1
    cdef int count_unsettled(self, Channel channel, PendingMessage entry) except? -1
    cpdef int give_up_tentative(self, Channel channel, long long ts_ns) except? -1
    cpdef int acknowledge_in_part(self, Channel channel, long long tag) except? -1
    cdef int refuse_in_part(self, Channel channel, long long tag) except? -1
    cdef int _acknowledge(self, Channel channel, PendingMessage entry, Answer answer) except? -1
    cdef int _settle_delivery(self, Channel channel, PendingMessage entry, Answer answer) except? -1
    cdef int count_settled(self, Channel channel, PendingMessage entry) except? -1
    cdef int _take_effect(self, Channel channel, PendingMessage entry, Answer answer) except? -1
    cdef int conclude(self, Channel channel, PendingMessage entry, Answer answer) except? -1
    cpdef int recover(self, Channel channel, long long until, long long number, long long ts_ns) except? -1
    cpdef int commit(self, Channel channel, list noted, long long number, long long ts_ns) except? -1
    cpdef int roll_back(self, Channel channel) except? -1
    cdef int _put_back(self, Channel channel, PendingMessage entry) except? -1
    cdef PendingMessage settle_returned(self, PendingMessage returned)
    cpdef int select(self, Channel channel) except? -1
    cpdef int committed(self, Channel channel, long long number) except? -1
    cdef int _end_publish(self, PendingMessage entry) except? -1
    cdef int _discard_returnable(self, PendingMessage entry) except? -1
    cpdef int finish(self, Channel channel) except? -1
    cdef int _leave_open(self, PendingMessage entry) except? -1
    cdef int _outcome_if_open(self, PendingMessage entry) except? -2
