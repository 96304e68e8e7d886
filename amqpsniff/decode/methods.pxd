from amqpsniff.columns cimport Octets
from amqpsniff.decode.cache cimport TableCache
from amqpsniff.decode.values cimport ValueReader

cdef class DecodedMethod:
    cdef long long starts[6]
    cdef long long lengths[6]
    cdef public int method, class_id, method_id, reply_code, flags
    cdef public int about_class, about_method, version_major, version_minor
    cdef public long long delivery_tag, frame_max
    cdef public bytes safe_text
    cdef public bint written
    cdef int clear(self) except? -1
    cdef int copy(self, DecodedMethod facts) except? -1

cdef class MethodDecoder(DecodedMethod):
    cdef public bint show_secrets, quiet, past_login, quoted, secret_anywhere, tells_secret, channel_zero
    cdef public int sender
    cdef public tuple sent_secrets
    cdef int[::1] first_argument, key_starts, key_lengths, lookup, choices
    cdef const unsigned char[::1] known, secrets, senders, types, roles, frequent, far_classes
    cdef Octets keys
    cdef readonly TableCache tables
    cdef dict far
    cdef long long base
    cdef int find(self, int dialect, int class_id, int method_id) except? -2
    cdef int decode(self, ValueReader reader, int dialect, long long at, long long end, long long size) except? -1
    cdef int _forget(self) except? -1
    cdef object _told(self, ValueReader reader, long long start, long long stop)
    cdef int _put_told(self, ValueReader reader, long long start, long long stop) except? -1
    cdef bint _is_doubtful(self) except? -1
    cdef int _arguments(self, ValueReader reader, int method, long long at, long long end) except? -1
    cdef int _skim(self, ValueReader reader, long long at, long long end) except? -1
    cdef bint fits(self, ValueReader reader, int method, long long at, long long end) except? -1
    cdef long long _width(self, ValueReader reader, int kind, long long at, long long end) except? -1
    cdef int _bit(self, ValueReader reader, int i, int value) except? -1
    cdef long long _value(self, ValueReader reader, int i, long long at, long long end) except? -1
    cdef long long _long_value(self, ValueReader reader, int kind, int role, long long at, long long end) except? -1
    cdef long long _inline_content(self, ValueReader reader, long long at, long long end) except? -1
    cdef int _reply_text(self, ValueReader reader, int i, long long at, long long end) except? -1
    cdef int _redact(self, ValueReader reader, int i, long long at, long long end) except? -1
    cdef int _tag(self, ValueReader reader, int role, long long value) except? -1
    cdef int _number(self, int role, long long value) except? -1
