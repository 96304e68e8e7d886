from amqpsniff.tcp.half_stream cimport HalfStream

cdef class Conversation:
    cdef HalfStream first, second
    cdef readonly int version
    cdef int a_port, b_port
    cdef readonly bint syn_seen
    cdef bint lingers
    cdef long long a_high, a_low, b_high, b_low, first_isn
    cdef readonly long long incarnation, first_packet_number, start_ns, serial
    cdef readonly object ended, ended_by
    cdef readonly long long unreachable
    cdef readonly long long over_ns, ended_ns, reset_ns
    cdef long long ended_number
    cdef bytes key
    cdef readonly long long round_trip_ns
    cdef object reset, successor
    cdef dict findings_made
    cdef str name
    cdef public object tls
    cdef int take_ends(self, long long[::1] rows, long long at, bint turned) except? -1
    cdef str _name(self)
    cdef bint may_report(self, code, int most) except? -1
    cdef HalfStream last_half(self)
    cpdef long long last_number(self) except? -2
