from amqpsniff.columns cimport Codes, Integers, Texts
from amqpsniff.decode.arguments cimport ArgumentDecoder
from amqpsniff.decode.values cimport ValueReader

cpdef int copy_text(Texts column, long long row, ValueReader reader, long long start, long long count) except? -1
cpdef int copy_plain(Texts column, long long row, ValueReader reader, long long start, long long count) except? -1
cpdef int put_text(Texts column, long long row, bytes octets) except? -1

cdef class FrameRows:
    cdef public long long rows, capacity, rows_expected
    cdef public bint wanted
    cdef public int capture_code
    cdef public Codes capture, connection, sender, channel, frame_type, method, reply_code
    cdef public Integers packet_number, ts_ns, stream_offset, size, delivery_tag
    cdef public Texts arguments, exchange, routing_key, queue, consumer_tag, reply_text
    cpdef int reserve(self) except? -1
    cdef int begin(self, int connection, int sender, long long number, long long ts_ns, long long offset, int channel, int frame_type, long long size) except? -1
    cdef int end_plain(self) except? -1
    cdef int end_method(self, int method, ArgumentDecoder decoder, ValueReader reader) except? -1

cdef class MessageRows:
    cdef public long long rows, capacity, rows_expected
    cdef public bint wanted
    cdef public Codes capture, connection, sender, channel, method, reply_code
    cdef public Codes redelivered, mandatory, immediate, delivery_mode, priority, status
    cdef public Integers packet_number, ts_ns, last_packet_number, delivery_tag
    cdef public Integers message_timestamp, body_size, body_captured
    cdef public Texts content_type, content_encoding, headers, correlation_id, reply_to
    cdef public Texts expiration, message_id, type, user_id, app_id, cluster_id
    cdef public Texts exchange, routing_key, consumer_tag, reply_text, body, body_sha256
    cpdef int reserve(self) except? -1
