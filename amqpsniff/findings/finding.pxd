# Written by `python -m tests.house.declarations`.

cdef class Finding:
    cdef public str code
    cdef public str detail
    cdef public object capture
    cdef public object packet_number
    cdef public object ts_ns
    cdef public object connection_id
    cdef public object client
    cdef public object server
    cdef public object channel
    cdef public long long count
    cdef public object last_packet_number
    cdef public object cause_code
    cdef public object cause_packet_number
    cdef public object variant
    cdef public object until_ns
