cimport cython
from amqpsniff.columns cimport Codes, Octets, Texts, Vocabulary
from amqpsniff.decode.rows cimport MessageRows, Vocabularies
from amqpsniff.decode.amqp10.performatives cimport Performative, PerformativeDecoder
from amqpsniff.decode.amqp10.values cimport TypedReader, ValueCache
from amqpsniff.decode.meanings cimport MeaningWriter
from amqpsniff.decode.state cimport Half, MemoryBudget, StreamBuffer

@cython.final
cdef class Delivery:
    cdef public long long ordinal, key, number, last_number, ts_ns, delivery_id, format
    cdef public long long seen, lost, body_left, body_bytes, body_seen, read, wanted
    cdef public int channel, transfers, tag_bytes
    cdef public bint reads, secret, unread, keeping, aborted, holed, more, listed
    cdef public object capture, hash
    cdef public StreamBuffer store
    cdef TypedReader source
    cdef public Octets body
    cdef long long places[9]
    cdef long long sizes[9]
    cdef unsigned char tag[64]
    cdef int begin(self, Half half, long long ordinal, object capture) except? -1

@cython.final
cdef class DeliveryAssembler:
    cdef public MessageRows messages
    cdef public object report, new_hash, capture
    cdef public MemoryBudget budget
    cdef public bint keep_bodies, told
    cdef public MeaningWriter meanings
    cdef public TypedReader reader
    cdef ValueCache properties, annotations
    cdef long long ttl
    cdef int ttl_code
    cdef Vocabularies ttl_words
    cdef Delivery idle
    cdef public list spare, captures
    cdef public long long begun, open, ended_at
    cdef public int capture_code
    cdef Delivery transfer(self, Half half, dict under_way, Performative sent, long long key, PerformativeDecoder fields, TypedReader reader, bint secret, bint whole)
    cdef Delivery _new(self, Half half, PerformativeDecoder fields, TypedReader reader)
    cdef int transfer_end(self, Half half, dict under_way, Delivery found) except? -1
    cdef int payload(self, Delivery found, TypedReader reader, long long at, long long count) except? -1
    cdef int missing(self, Delivery found, long long count) except? -1
    cdef Py_ssize_t _sections(self, Delivery found, TypedReader reader, long long at, long long end) except? -1
    cdef bint _asks_for_token(self, TypedReader reader, long long at, long long end) except? -1
    cdef bint _may_keep(self, Delivery found, long long count) except? -1
    cdef Py_ssize_t _go_on(self, Delivery found, TypedReader reader, long long at, long long end) except? -1
    cdef Py_ssize_t _begin_body(self, Delivery found, TypedReader reader, long long place, long long end, int code, long long after) except? -2
    cdef int _body(self, Delivery found, TypedReader reader, long long at, long long count) except? -1
    cpdef finish(self, Half half, dict under_way)
    cdef int end(self, Half half, Delivery found, int status) except? -1
    cdef int _write(self, Half half, Delivery found, int status) except? -1
    cdef int _capture_of(self, Delivery found) except? -1
    cdef int _write_sections(self, Half half, Delivery found, long long row) except? -1
    cdef list _further(self, TypedReader reader, Delivery found)
    cdef int _write_annotations(
        self, TypedReader reader, Delivery found, long long row, list further
    ) except? -1
    cdef int _write_header(self, Half half, TypedReader reader, long long at, long long end, long long row) except? -1
    cdef int _code_of_ttl(self, long long ttl) except? -1
    cdef int _write_properties(self, TypedReader reader, long long at, long long end, long long row, int made) except? -1

cdef int _put_tag(Texts column, long long row, Delivery found) except? -1
