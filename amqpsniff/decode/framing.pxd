from amqpsniff.decode.contents cimport ContentAssembler
from amqpsniff.decode.frames cimport FrameHandler
from amqpsniff.decode.probe cimport FrameProbe
from amqpsniff.decode.state cimport Half
from amqpsniff.decode.values cimport ValueReader

cdef class Framer:
    cdef public FrameHandler handler
    cdef public ContentAssembler contents
    cdef public FrameProbe probe
    cdef public object report
    cpdef int lose(self, Half half, bint forced) except? -1
    cpdef long long search(self, Half half, ValueReader reader, long long at, long long end) except? -1
    cpdef int octets(self, Half half, bytes octets, long long start, long long length) except? -1
    cdef int data(self, Half half, ValueReader reader, long long at, long long end) except? -1
    cdef long long _frames(self, Half half, ValueReader reader, long long at, long long end) except? -1
    cdef long long _begun(self, Half half, ValueReader reader, long long at, long long end) except? -1
    cdef int _refuse(self, Half half) except? -1
    cdef int _kept_frame(self, Half half) except? -1
    cdef long long _counted(self, Half half, ValueReader reader, long long at, long long end) except? -1
    cdef int _end_counted(self, Half half) except? -1
    cdef int _cut_frame(self, Half half) except? -1
    cdef long long _kept(self, Half half, ValueReader reader, long long at, long long end) except? -1
    cdef int _kept_header(self, Half half) except? -1
    cpdef long long begin(self, Half half, ValueReader reader, long long at, long long end) except? -1
