from amqpsniff.tcp.half_stream cimport HalfStream

cdef int update_window(
    HalfStream half, HalfStream other, long long seq, long long length, long long ack,
    bint closed, long long number, long long ts_ns
) except? -1
cdef object zero_window(HalfStream half, HalfStream other, long long end_ns)
