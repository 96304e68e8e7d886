# Written by `python -m tests.house.declarations`.
from amqpsniff.tcp.half_stream cimport HalfStream
from amqpsniff.tcp.segment cimport Segment

cdef int update_window(HalfStream half, HalfStream other, Segment segment) except? -1
cdef object zero_window(HalfStream half, HalfStream other, long long end_ns)
