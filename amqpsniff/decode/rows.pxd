# Written by `python -m tests.house.declarations`.
from amqpsniff.columns cimport Codes, Integers, Texts, Vocabulary
from amqpsniff.decode.methods cimport DecodedMethod
from amqpsniff.decode.values cimport ValueReader

cpdef int copy_text(Texts column, long long row, ValueReader reader, long long start, long long count) except? -1
cpdef int copy_name(Codes column, Vocabulary vocabulary, long long row, ValueReader reader, long long start, long long count) except? -1
cpdef int put_text(Texts column, long long row, bytes octets) except? -1

cdef class Vocabularies:
    cdef public Vocabulary exchange
    cdef public Vocabulary routing_key
    cdef public Vocabulary queue
    cdef public Vocabulary consumer_tag
    cdef public Vocabulary content_type
    cdef public Vocabulary content_encoding
    cdef public Vocabulary reply_to
    cdef public Vocabulary expiration
    cdef public Vocabulary type
    cdef public Vocabulary user_id
    cdef public Vocabulary app_id
    cdef public Vocabulary cluster_id

cdef class Rows:
    cdef public long long rows
    cdef public long long first
    cdef public long long capacity
    cdef public long long rows_expected
    cdef public long long pending
    cdef public bint wanted
    cdef public bint given
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
    cdef public long long performatives_made
    cdef public long long performatives_taken
    cdef public list performatives
    cdef public Codes capture
    cdef public Codes connection
    cdef public Codes sender
    cdef public Codes channel
    cdef public Codes frame_type
    cdef public Codes method
    cdef public Codes reply_code
    cdef public Codes flags
    cdef public Codes exchange
    cdef public Codes routing_key
    cdef public Codes queue
    cdef public Codes consumer_tag
    cdef public Integers packet_number
    cdef public Integers ts_ns
    cdef public Integers stream_offset
    cdef public Integers size
    cdef public Integers delivery_tag
    cdef public Integers response_packet_number
    cdef public Integers response_ns
    cdef public Texts arguments
    cdef public Texts reply_text
    cdef object next_performative(self)
    cpdef int follow(self, FrameRows previous) except? -1
    cdef long long moment(self) except? -1
    cdef int open_arguments(self) except? -1
    cdef int end_method(self, DecodedMethod facts, ValueReader reader, long long at) except? -1
    cdef int _name(self, Codes column, Vocabulary vocabulary, DecodedMethod facts, int role, ValueReader reader, long long at) except? -1

cdef class MessageRows(Rows):
    cdef public int made
    cdef public Codes capture
    cdef public Codes connection
    cdef public Codes sender
    cdef public Codes channel
    cdef public Codes method
    cdef public Codes reply_code
    cdef public Codes redelivered
    cdef public Codes mandatory
    cdef public Codes immediate
    cdef public Codes delivery_mode
    cdef public Codes priority
    cdef public Codes status
    cdef public Codes outcome
    cdef public Codes exchange
    cdef public Codes routing_key
    cdef public Codes queue
    cdef public Codes consumer_tag
    cdef public Codes content_type
    cdef public Codes content_encoding
    cdef public Codes reply_to
    cdef public Codes expiration
    cdef public Codes type
    cdef public Codes user_id
    cdef public Codes app_id
    cdef public Codes cluster_id
    cdef public Integers packet_number
    cdef public Integers ts_ns
    cdef public Integers last_packet_number
    cdef public Integers delivery_tag
    cdef public Integers message_timestamp
    cdef public Integers body_size
    cdef public Integers body_captured
    cdef public Integers publish_number
    cdef public Integers outcome_packet_number
    cdef public Integers outcome_ns
    cdef public Integers ordinal
    cdef public Integers mark
    cdef public Integers body_mark
    cdef public Integers ended_at
    cdef public object links
    cdef public object deliveries
    cdef public object meanings
    cdef public dict notes
    cdef public dict calls
    cdef public Texts headers
    cdef public Texts correlation_id
    cdef public Texts message_id
    cdef public Texts reply_text
    cdef public Texts body
    cdef public Texts body_sha256
    cdef long long sent(self, long long row) except? -1
    cpdef int reserve(self) except? -1
    cpdef int rewind(self) except? -1
