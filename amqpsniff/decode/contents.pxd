# Written by `python -m tests.house.declarations`.
from amqpsniff.columns cimport Codes, Texts, Vocabulary
from amqpsniff.decode.meanings cimport MeaningWriter, NoteWriter
from amqpsniff.decode.methods cimport DecodedMethod
from amqpsniff.decode.rows cimport FrameRows, MessageRows
from amqpsniff.decode.state cimport Content, Half, MemoryBudget
from amqpsniff.decode.values cimport TableCache, ValueReader
cdef class MessageWriter
cdef class PropertyDecoder

cdef class ContentAssembler:
    cdef public object report
    cdef public object new_hash
    cdef public bint keep_bodies
    cdef public bint keeps_all
    cdef public bint unread
    cdef public bint marking
    cdef public bint marking_all
    cdef public long long held
    cdef public long long opened
    cdef public long long min_body_size
    cdef public long long max_kept
    cdef public long long max_held
    cdef public unsigned long long seed
    cdef public FrameRows frames
    cdef public MessageWriter writer
    cdef public PropertyDecoder properties
    cdef public MemoryBudget budget
    cdef public list losses
    cdef Content _find(self, Half half, int channel)
    cdef Content _free_content(self, Half half, int channel)
    cdef int method(self, Half half, DecodedMethod facts, ValueReader reader, long long at, long long end) except? -1
    cdef int other_method(self, Half half) except? -1
    cdef int _interrupt(self, Half half, Content content) except? -1
    cdef int lose(self, Half half, long long begin) except? -1
    cdef int header(self, Half half, ValueReader reader, long long at, long long end, bint whole) except? -1
    cdef unsigned long long _mark(self, ValueReader reader, long long at, long long end) except? 1
    cdef int _keep_header(self, Content content, ValueReader reader, long long at, long long end) except? -1
    cdef bint _may_return(self, Content content) except? -1
    cdef int _begin_body(self, Half half, Content content) except? -1
    cdef int _check_header(self, Half half, Content content, ValueReader reader, long long at, long long end, bint whole) except? -1
    cdef Content _awaiting(self, Half half)
    cdef int body_bytes(self, Half half, ValueReader reader, long long at, long long count) except? -1
    cdef int _take(self, Half half, Content content, ValueReader reader, long long at, long long count) except? -1
    cpdef int _let_go(self, Content content) except? -1
    cdef int body_missing(self, Half half, long long count) except? -1
    cdef int body_end(self, Half half) except? -1
    cpdef int finish(self, Half half) except? -1
    cdef int _end(self, Half half, Content content, int status) except? -1

cdef class PropertyDecoder:
    cdef public int present
    cdef public long long located
    cdef public long long starts[16]
    cdef public long long lengths[16]
    cdef public long long keys[64]
    cdef public unsigned char orders[2048]
    cdef public dict rows
    cdef int _order(self, int class_id, int flags) except? -1
    cdef int _learn(self, int order, int class_id, int flags) except? -1
    cdef int locate(self, ValueReader reader, int class_id, long long at, long long end) except? -1

cdef class MessageWriter:
    cdef public bint keep_bodies
    cdef public bint reads_every_body
    cdef public object report
    cdef public int capture_code
    cdef public long long batch
    cdef public MessageRows messages
    cdef public ValueReader reader
    cdef public TableCache tables
    cdef public PropertyDecoder properties
    cdef public MeaningWriter meanings
    cdef public NoteWriter notes
    cdef public NoteWriter calls
    cdef public list captures
    cdef public object capture
    cdef public int[::1] flags_of
    cdef int write(self, Half half, Content content, int status, long long sound, long long frames) except? -1
    cdef int code_of(self, object capture) except? -2
    cdef int _write_names(self, Content content, long long row) except? -1
    cdef int _write_properties(self, Half half, Content content, long long row) except? -1
    cdef int _text(self, Texts column, long long row, long long at, int index) except? -1
    cdef int _name(self, Codes column, Vocabulary vocabulary, long long row, long long at, int index) except? -1
    cdef int _write_body(self, Content content, int status, long long sound, long long row) except? -1
