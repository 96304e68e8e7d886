# Written by `python -m tests.house.declarations`.
cimport cython
from amqpsniff.columns cimport Octets, Vocabulary
from amqpsniff.decode.json_names cimport ObjectNames
from amqpsniff.decode.octets cimport ByteReader
from amqpsniff.decode.rows cimport MessageRows
from amqpsniff.decode.values cimport Cache, TableCache

@cython.final
cdef class MeaningColumns:
    cdef public long long capacity
    cdef public int used
    cdef public list by_place
    cdef public list codes
    cdef public dict words
    cdef public list vocabularies
    cdef public unsigned short[::1] written
    cpdef int reserve(self, long long rows) except? -1
    cdef int _mark(self, int place, long long row) except? -1
    cdef int put_word(self, int place, long long row, bytes octets) except? -1
    cdef int put_key(self, int place, long long row, bytes octets) except? -1
    cdef int put_part(self, int place, long long row, ObjectNames names, long long start, long long count) except? -1
    cdef int put_number(self, int place, long long row, long long number) except? -1
    cdef int copy(self, long long row, long long source) except? -1

@cython.final
cdef class SeenBodies(Cache):
    cdef public MeaningColumns batch
    cdef public long long[::1] rows
    cdef public long long[::1] sizes
    cdef public ByteReader reader
    cdef Py_ssize_t place(self, Octets body, long long count, int table) except? -2
    cdef Py_ssize_t row_like(self, MessageRows out, long long row, Py_ssize_t place, Octets body, long long count) except? -2
    cdef int keep(self, long long row, Py_ssize_t place, Octets body, long long count) except? -1

cdef class Field:
    cdef public int place
    cdef public int kind
    cdef public int at
    cdef public long long scale
    cdef public long long most
    cdef public object only
    cdef public bint in_body
    cdef public bint looked
    cdef public bint plain
    cdef public object source
    cdef public str column
    cdef public bytes template
    cdef public int within
    cdef public tuple path
    cdef public int begin
    cdef public int end
    cdef public ObjectNames names

cdef class MeaningWriter:
    cdef public object packs
    cdef public object columns
    cdef public object words
    cdef public Vocabulary remembered
    cdef public bytes fitted
    cdef public unsigned char[::1] table_bits
    cdef public ObjectNames headers
    cdef public ObjectNames body
    cdef public dict shapes
    cdef public list alike
    cdef public tuple last
    cdef public list recent
    cdef public unsigned long long[::1] recent_keys
    cdef public SeenBodies seen
    cdef int write(self, MessageRows out, long long row, Octets body, long long count, TableCache tables) except? -1
    cdef int _table(self, TableCache tables) except? -2
    cdef int _note_table(self, int table, int known, bint needs) except? -1
    cdef int _forget_tables(self, TableCache tables) except? -1
    cdef tuple _recognised(self, MessageRows out, long long row, Octets body, long long count, int table)
    cdef tuple _fields(self, MessageRows out, long long row, unsigned long long body_shape, bint opened)
    cdef tuple _words(self, MessageRows out, long long row)
    cdef str _word(self, int place, int code, Vocabulary words)
    cdef tuple _reading(self, tuple words, unsigned long long body_shape, bint opened)
    cdef tuple _more(self, object reading)
    cdef int _read_body(self, Octets body, long long count, bytes wanted) except? -1
    cdef int _read_packed(self, bytes octets, bytes wanted) except? -1
    cdef object _value(self, MessageRows out, long long row, Field field)
    cdef int _put(self, MessageRows out, long long row, MeaningColumns found, Field field) except? -1
    cdef int _put_text(self, MessageRows out, long long row, MeaningColumns found, Field field, ObjectNames names, int place) except? -1
    cdef int _put_number(self, MessageRows out, long long row, MeaningColumns found, Field field, ObjectNames names, int place) except? -1

cdef class Note:
    cdef public bint traced
    cdef public bint internal
    cdef public tuple formats
    cdef public dict meaning
    cdef public object role
    cdef public dict fields
    cdef Note with_meaning(self, dict meaning)

cdef class NoteWriter(MeaningWriter):
    cdef public bint links
    cdef public bint wants_body
    cdef public int told_exchange
    cdef public int told_key
    cdef public int told_connection
    cdef public int told_sender
    cdef public Note told_role
    cdef public object told_words
    cdef public dict clients
    cdef public dict queues
    cpdef int knows(self, bytes start_ok) except? -1
    cpdef int knows_queue(self, object name) except? -1
    cdef int note(self, MessageRows out, long long row, Octets body, long long count, int reads, TableCache tables) except? -1
    cdef bint _is_news(self, MessageRows out, long long row, Note plain) except? -1
    cdef int _note(self, MessageRows out, long long row, tuple fields, Note plain, bint lacks) except? -1
    cdef bint _there(self, Field field) except? -1
    cdef int _add_value(self, MessageRows out, long long row, Field field, dict meaning) except? -1
    cdef int _note_call(self, MessageRows out, long long row, list fields) except? -1
    cdef tuple _call(self, MessageRows out, long long row, list fields)
cdef bint may_be_object(int first, int second) except -1
