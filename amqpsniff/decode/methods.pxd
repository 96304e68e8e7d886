# Written by `python -m tests.house.declarations`.
from amqpsniff.columns cimport Octets
from amqpsniff.decode.values cimport TableCache, ValueReader

cdef class DecodedMethod:
    cdef public bint has_json
    cdef public long long starts[6]
    cdef public long long lengths[6]
    cdef public int method
    cdef public int class_id
    cdef public int method_id
    cdef public int reply_code
    cdef public int flags
    cdef public int about_class
    cdef public int about_method
    cdef public int version_major
    cdef public int version_minor
    cdef public long long delivery_tag
    cdef public long long frame_max
    cdef public bytes safe_text
    cdef int clear(self) except? -1
    cdef int copy(self, DecodedMethod facts) except? -1

cdef class MethodDecoder(DecodedMethod):
    cdef public bint show_secrets
    cdef public bint quiet
    cdef public bint past_login
    cdef public bint channel_zero
    cdef public int sender
    cdef public long long base
    cdef public bint quoted
    cdef public bint secret_anywhere
    cdef public bint tells_secret
    cdef public tuple sent_secrets
    cdef public int[::1] first_argument
    cdef public int[::1] key_starts
    cdef public int[::1] key_lengths
    cdef public int[::1] lookup
    cdef public int[::1] choices
    cdef public const unsigned char[::1] arguments_known
    cdef public const unsigned char[::1] secrets
    cdef public const unsigned char[::1] senders
    cdef public const unsigned char[::1] types
    cdef public const unsigned char[::1] roles
    cdef public const unsigned char[::1] frequent
    cdef public Octets keys
    cdef public TableCache tables
    cdef public dict far
    cdef public const unsigned char[::1] far_classes
    cdef int find(self, int dialect, int class_id, int method_id) except? -2
    cdef int decode(self, ValueReader reader, int dialect, long long at, long long end, long long size) except? -1
    cdef bint _is_doubtful(self) except? -1
    cdef int _forget(self) except? -1
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
    cdef object _without_secrets(self, ValueReader reader, long long start, long long stop)
    cdef int _put_redacted(self, ValueReader reader, long long start, long long stop) except? -1
    cdef int _tag(self, ValueReader reader, int role, long long value) except? -1
    cdef int _number(self, int role, long long value) except? -1
