# Written by `python -m tests.house.declarations`.
from amqpsniff.decode.amqp010 cimport Amqp010Framer
from amqpsniff.decode.amqp10.framer cimport Amqp10Framer
from amqpsniff.decode.contents cimport ContentAssembler
from amqpsniff.decode.frames cimport FrameHandler
from amqpsniff.decode.resync cimport FrameProbe
from amqpsniff.decode.state cimport Half
from amqpsniff.decode.values cimport ValueReader

cdef class Framer:
    cdef public FrameProbe probe
    cdef public object report
    cdef public Amqp010Framer amqp010
    cdef public FrameHandler handler
    cdef public ContentAssembler contents
    cdef public Amqp10Framer amqp10
    cdef int octets(self, Half half, bytes octets, long long start, long long length) except? -1
    cdef int data(self, Half half, ValueReader reader, long long at, long long end) except? -1
    cdef int gap(self, Half half, long long missing) except? -1
    cdef int finish(self, Half half) except? -1
    cdef long long _frames(self, Half half, ValueReader reader, long long at, long long end) except? -1
    cdef long long _begun(self, Half half, ValueReader reader, long long at, long long end) except? -1
    cdef int _refuse(self, Half half) except? -1
    cdef long long _continue_counted(self, Half half, ValueReader reader, long long at, long long end) except? -1
    cdef int _end_counted(self, Half half) except? -1
    cdef int _cut_frame(self, Half half) except? -1
    cdef long long _continue_kept(self, Half half, ValueReader reader, long long at, long long end) except? -1
    cdef int _kept_frame(self, Half half) except? -1
    cdef int _kept_header(self, Half half) except? -1
    cdef long long _begin(self, Half half, ValueReader reader, long long at, long long end) except? -1
    cpdef int _protocol_header(self, Half half, bytes octets) except? -1
    cdef int _end_start(self, Half half) except? -1
    cdef long long _gap_in_counted(self, Half half, long long missing) except? -1
    cdef long long _gap_in_kept(self, Half half, long long missing) except? -1
    cdef int _lose_frame(self, Half half, bint forced) except? -1
    cdef int _lose(self, Half half, long long begin, bint forced) except? -1
    cdef long long _search(self, Half half, bytes octets) except? -1
    cdef bint _is_amqp10(self, Half half, bytes octets) except? -1
