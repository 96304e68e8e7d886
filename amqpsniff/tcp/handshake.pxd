from amqpsniff.tcp.half_stream cimport HalfStream

cdef int greet(HalfStream half, HalfStream other, long long seq, long long ack, int flags) except? -1
cdef int begin(HalfStream half, long long isn) except? -1
