# Written by `python -m tests.house.declarations`.
from amqpsniff.decode.contents cimport PropertyDecoder
from amqpsniff.decode.frames cimport FrameHandler
from amqpsniff.decode.state cimport Half, MemoryBudget
from amqpsniff.decode.values cimport ValueReader

cdef class FrameProbe:
    cdef public FrameHandler handler
    cdef public ValueReader reader
    cdef public PropertyDecoder properties
    cdef public int kind
    cdef public int channel
    cdef public long long size
    cdef int header(self, Half half, long long at, long long have, bint forced) except? -2
    cdef long long _limit(self, Half half, int kind) except? -1
    cdef bint _is_protocol_header(self, long long at) except? -1
    cdef bint _is_method(self, Half half, int class_id, int method_id) except? -1
    cdef bint strong(self, Half half, int kind, int channel, long long at, long long size) except? -1

cdef class Window:
    cdef public MemoryBudget budget
    cdef public bytearray buffer
    cdef public long long first
    cdef public long long used
    cdef public long long base
    cdef public object marks
    cdef long long end(self) noexcept
    cdef bint fits(self, long long count) except? -1
    cdef int append(self, bytes octets, long long number, long long ts_ns, long long moment) except? -1
    cdef object packet_of(self, long long end)
    cdef int trim(self, long long keep) except? -1
    cdef int jump(self, long long offset) except? -1
    cdef list pieces(self, long long start, long long end)

cdef class Candidate:
    cdef public long long start
    cdef public long long next
    cdef public long long wake
    cdef public long long size
    cdef public long long missing
    cdef public long long held
    cdef public list frames
    cdef public int kind
    cdef public int channel
    cdef public int strong
    cdef bint keeps(self) noexcept
    cdef long long turn(self) noexcept
    cdef bint worse(self, Candidate other) except? -1

cdef class Search:
    cdef public FrameProbe probe
    cdef public Half half
    cdef public Window window
    cdef public long long scanned
    cdef public long long searched
    cdef public long long held
    cdef public long long forced_at
    cdef public long long begin
    cdef public int beginnings
    cdef public bint tentative
    cdef public list candidates
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
