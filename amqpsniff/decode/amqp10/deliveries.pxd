# Written by `python -m tests.house.declarations`.
cimport cython
from amqpsniff.columns cimport Octets
from amqpsniff.decode.amqp10.performatives cimport Performative, PerformativeDecoder
from amqpsniff.decode.amqp10.values cimport TypedReader, ValueCache
from amqpsniff.decode.contents cimport MessageWriter
from amqpsniff.decode.meanings cimport MeaningWriter
from amqpsniff.decode.rows cimport MessageRows, Vocabularies
from amqpsniff.decode.state cimport Half, MemoryBudget, StreamBuffer

@cython.final
cdef class Delivery:
    cdef public long long ordinal
    cdef public long long key
    cdef public long long number
    cdef public long long last_number
    cdef public long long ts_ns
    cdef public long long delivery_id
    cdef public long long format
    cdef public long long seen
    cdef public long long lost
    cdef public long long body_left
    cdef public long long body_bytes
    cdef public long long body_seen
    cdef public long long read
    cdef public long long wanted
    cdef public int channel
    cdef public int transfers
    cdef public bint reads
    cdef public bint secret
    cdef public bint answers
    cdef public bint unread
    cdef public bint keeping
    cdef public bint aborted
    cdef public bint holed
    cdef public bint more
    cdef public bint listed
    cdef public int tag_bytes
    cdef public object capture
    cdef public object hash
    cdef public StreamBuffer store
    cdef public TypedReader source
    cdef public Octets body
    cdef public long long places[9]
    cdef public long long sizes[9]
    cdef public unsigned char tag[64]
    cdef int begin(self, Half half, long long ordinal, object capture) except? -1

@cython.final
cdef class DeliveryAssembler:
    cdef public object report
    cdef public object new_hash
    cdef public bint keep_bodies
    cdef public bint all_columns
    cdef public long long ttl
    cdef public int ttl_code
    cdef public long long begun
    cdef public long long open
    cdef public MessageRows messages
    cdef public MessageWriter writer
    cdef public MemoryBudget budget
    cdef public MeaningWriter meanings
    cdef public TypedReader reader
    cdef public ValueCache properties
    cdef public ValueCache annotations
    cdef public Vocabularies ttl_words
    cdef public Delivery idle
    cdef public list spare
    cdef public long long ended_at
    cdef Delivery transfer(self, Half half, dict under_way, Performative sent, long long key, PerformativeDecoder fields, TypedReader reader, bint secret, bint whole)
    cdef Delivery _new(self, Half half, PerformativeDecoder fields, TypedReader reader)
    cdef int transfer_end(self, Half half, dict under_way, Delivery found) except? -1
    cdef int payload(self, Delivery found, TypedReader reader, long long at, long long count) except? -1
    cdef int missing(self, Delivery found, long long count) except? -1
    cdef Py_ssize_t _sections(self, Delivery found, TypedReader reader, long long at, long long end) except? -1
    cdef bint _brings_token(self, int section, TypedReader reader, long long at, long long end) except? -1
    cdef bint _may_keep(self, Delivery found, long long count) except? -1
    cdef Py_ssize_t _go_on(self, Delivery found, TypedReader reader, long long at, long long end) except? -1
    cdef Py_ssize_t _begin_body(self, Delivery found, TypedReader reader, long long place, long long end, int code, long long after) except? -2
    cdef int _body(self, Delivery found, TypedReader reader, long long at, long long count) except? -1
    cpdef object finish(self, Half half, dict under_way)
    cdef int end(self, Half half, Delivery found, int status) except? -1
    cdef int _write(self, Half half, Delivery found, int status) except? -1
    cdef int _write_sections(self, Half half, Delivery found, long long row) except? -1
    cdef list _further(self, TypedReader reader, Delivery found)
    cdef int _write_annotations(self, TypedReader reader, Delivery found, long long row, list further) except? -1
    cdef int _write_header(self, Half half, TypedReader reader, long long at, long long end, long long row) except? -1
    cdef int _code_of_ttl(self, long long ttl) except? -1
    cdef int _write_properties(self, TypedReader reader, long long at, long long end, long long row, int made) except? -1
