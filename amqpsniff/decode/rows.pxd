from amqpsniff.columns cimport Codes, Integers, Texts, Vocabulary
from amqpsniff.decode.methods cimport DecodedMethod
from amqpsniff.decode.values cimport ValueReader

cpdef int copy_text(Texts column, long long row, ValueReader reader, long long start, long long count) except? -1
cpdef int copy_name(Codes column, Vocabulary vocabulary, long long row, ValueReader reader, long long start, long long count) except? -1
cpdef int put_text(Texts column, long long row, bytes octets) except? -1

cdef class Vocabularies:
    cdef public Vocabulary exchange, routing_key, queue, consumer_tag, content_type
    cdef public Vocabulary content_encoding, reply_to, expiration, type, user_id, app_id, cluster_id

cdef class Rows:
    cdef public long long rows, first, capacity, rows_expected, pending
    cdef public bint wanted, given
    cdef public object unmade
    cdef public Vocabularies vocabularies
    cdef public Codes waiting
    cpdef int reserve(self) except? -1
    cpdef int rewind(self) except? -1
    cpdef int wait(self, long long row) except? -1
    cpdef int settle(self, long long row) except? -1

cdef class FrameRows(Rows):
    cdef public int capture_code
    cdef public long long moments
    cdef public list performatives
    cdef public long long performatives_made, performatives_taken
    cdef object next_performative(self)
    cpdef int follow(self, FrameRows others) except? -1
    cdef long long moment(self) except? -1
    cdef public Codes capture, connection, sender, channel, frame_type, method, reply_code, flags
    cdef public Codes exchange, routing_key, queue, consumer_tag
    cdef public Integers packet_number, ts_ns, stream_offset, size, delivery_tag
    cdef public Integers response_packet_number, response_ns
    cdef public Texts arguments, reply_text
    cdef int open_arguments(self) except? -1
    cdef int _name(self, Codes column, Vocabulary vocabulary, DecodedMethod facts, int role, ValueReader reader, long long at) except? -1
    cdef int end_method(self, DecodedMethod facts, ValueReader reader, long long at) except? -1

cdef class MessageRows(Rows):
    cdef public Codes capture, connection, sender, channel, method, reply_code
    cdef public Codes redelivered, mandatory, immediate, delivery_mode, priority, status, outcome
    cdef public Codes exchange, routing_key, queue, consumer_tag, content_type, content_encoding
    cdef public Codes reply_to, expiration, type, user_id, app_id, cluster_id
    cdef public Integers packet_number, ts_ns, last_packet_number, delivery_tag
    cdef public Integers message_timestamp, body_size, body_captured
    cdef public Integers publish_number, outcome_packet_number, outcome_ns
    cdef public Integers ordinal, mark, body_mark, ended_at
    cdef public object links, deliveries, meanings
    cdef public dict notes, calls
    cpdef int reserve(self) except? -1
    cpdef int rewind(self) except? -1
    cdef public int made
    cdef public Texts headers, correlation_id, message_id, reply_text, body, body_sha256
    cdef long long sent(self, long long row) except? -1
