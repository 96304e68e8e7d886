# Written by `python -m tests.house.declarations`.
from amqpsniff.columns cimport Codes, Texts, Vocabulary
from amqpsniff.decode.cache cimport TableCache
from amqpsniff.decode.meanings cimport MeaningWriter, NoteWriter
from amqpsniff.decode.properties cimport PropertyDecoder
from amqpsniff.decode.rows cimport MessageRows
from amqpsniff.decode.state cimport Content, Half
from amqpsniff.decode.values cimport ValueReader

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
    cdef int _text(self, Texts column, long long row, long long at, int place) except? -1
    cdef int _name(self, Codes column, Vocabulary vocabulary, long long row, long long at, int place) except? -1
    cdef int _write_body(self, Content content, int status, long long sound, long long row) except? -1
