cdef class Finding:
    cdef public str code, detail
    cdef public object capture, packet_number, ts_ns, connection_id, client, server, channel
    cdef public long long count
    cdef public object last_packet_number, cause_code, cause_packet_number, variant, until_ns
