from amqpsniff.decode.frames cimport FrameHandler
from amqpsniff.decode.properties cimport PropertyDecoder
from amqpsniff.decode.state cimport Half, MemoryBudget
from amqpsniff.decode.values cimport ValueReader

cdef class FrameProbe:
    cdef FrameHandler handler
    cdef ValueReader reader
    cdef PropertyDecoder properties
    cdef int kind, channel
    cdef long long size
    cdef int header(self, Half half, long long at, long long have, bint forced) except? -2
    cdef long long _limit(self, Half half, int kind) except? -1
    cdef bint _is_protocol_header(self, long long at) except? -1
    cdef bint _is_method(self, Half half, int class_id, int method_id) except? -1
    cdef bint strong(self, Half half, int kind, int channel, long long at, long long size) except? -1

cdef class Window:
    cdef MemoryBudget budget
    cdef bytearray buffer
    cdef long long first, used, base
    cdef object marks
    cdef long long end(self) noexcept
    cdef bint fits(self, long long count) except? -1
    cdef int append(self, bytes octets, long long number, long long ts_ns, long long moment) except? -1
    cdef object packet_of(self, long long end)
    cdef int trim(self, long long keep) except? -1
    cdef int jump(self, long long offset) except? -1
    cdef list pieces(self, long long start, long long end)

cdef class Candidate:
    cdef public long long start, next
    cdef long long wake, size, missing, held
    cdef public list frames
    cdef int kind, channel, strong
    cdef bint keeps(self) noexcept
    cdef long long turn(self) noexcept
    cdef bint worse(self, Candidate other) except? -1

cdef class Search:
    cdef FrameProbe probe
    cdef Half half
    cdef Window window
    cdef long long scanned, searched, held, forced_at, begin
    cdef int beginnings
    cdef public bint tentative
    cdef list candidates
    cdef long long end(self) noexcept
    cdef long long room(self) except? -1
    cdef bint hopeless(self) except? -1
    cdef Candidate feed(self, bytes octets, long long number, long long ts_ns, long long moment)
    cdef Candidate gap(self, long long missing)
    cdef Candidate finish(self)
    cpdef list rest(self, long long start, long long end)
    cdef int _begin_anew(self) except? -1
    cdef int _trim(self) except? -1
    cdef Candidate _run(self, long long last, bint ending)
    cdef bint _scan(self, long long stop) except? -1
    cdef bint _is_inside(self, long long at) except? -1
    cdef bint _start(self, long long offset) except? -1
    cdef int _enter(self, Candidate candidate) except? -1
    cdef int _hold(self, long long octets) except? -1
    cdef int _drop(self, Candidate candidate) except? -1
    cdef int _await_header(self, Candidate candidate) except? -1
    cdef int _await_end(self, Candidate candidate, bint ending) except? -1
    cdef int _add(self, Candidate candidate, object payload) except? -1
    cdef bint _believed(self, Candidate candidate) except? -1
    cdef Candidate _conclude(self, bint hole)
    cdef bint _is_expected(self, Candidate candidate) except? -1
    cdef bint _begins_cut(self) except? -1
    cdef int _survive(self, Candidate candidate, long long begin, long long end) except? -1
