from amqpsniff.columns cimport Octets
from amqpsniff.decode.values cimport ValueReader

cdef class MemoryBudget:
    cdef public long long held, stores
    cdef public dict refused
    cdef bint allows(self, long long octets) except? -1
    cdef bint has_plenty(self) noexcept
    cpdef int refuse(self, str what) except? -1

cdef class StreamBuffer(Octets):
    cdef MemoryBudget budget
    cdef bint fits(self, long long count) except? -1
    cdef bint should_release(self) except? -1

cdef class Connection:
    cdef str id
    cdef public object conversation, session, volume, login, asked, capture, last_capture
    cdef public bint is_amqp, is_amqp10, is_amqp010, began, role_proved, past_login
    cdef public tuple sent_secrets
    cdef public int reads_bodies, client_direction, dialect, row_serial, row_code
    cdef public long long frame_max, greeted_ns
    cdef unsigned int first_mark, second_mark
    cdef int mark(self, int direction, bytes octets) except? -1
    cpdef tuple name(self)

cdef class Content:
    cdef public int state, channel, method, class_id
    cdef public StreamBuffer store
    cdef public Octets body
    cdef public object hash, safe_text, capture
    cdef public bint keeping, body_marking, lossy
    cdef public unsigned long long body_mark
    cdef public long long number, ts_ns, last_number, delivery_tag
    cdef public int reply_code, flags
    cdef public long long batch, ordinal, mark
    cdef public int exchange, routing_key, consumer_tag
    cdef public long long header_start, header_end, located
    cdef public long long body_size, body_seen, body_missing
    cdef public long long exchange_start, exchange_length, key_start, key_length
    cdef public long long tag_start, tag_length, text_start, text_length
    cdef public long long lost_at, lost, sound
    cdef int open(self, int channel, MemoryBudget budget) except? -1
    cdef int close(self) except? -1
    cdef int forget(self) except? -1
    cdef int begin_body(self) except? -1
    cdef int end_body(self) except? -1
    cdef tuple place(self)
    cdef long long body_rest(self) except? -1

cdef class Repeated:
    cdef public Connection connection
    cdef public str code, detail
    cdef public int channel
    cdef public long long count, last
    cdef list untold

cdef class Half:
    cdef public Connection connection
    cdef public int direction, mode
    cdef public long long number, ts_ns, offset
    cdef public bint lossy, skipping
    cdef readonly MemoryBudget budget
    cdef public StreamBuffer store
    cdef public long long kept, expected, left, frame_offset, frame_size
    cdef public int frame_channel, frame_type
    cdef public Content active
    cdef public dict others
    cdef public object search, opened_since, amqp10
    cdef public dict repeated
    cdef public bytes first_bytes
    cpdef bint repeats(self, str code) except? -1
    cdef public long long first_number, first_ns
    cdef int begin(self, Connection connection, int direction) except? -1
    cdef bint has_grown(self) except? -1
    cdef int forget_frame(self) except? -1
    cdef long long keep(self, ValueReader reader, long long start, long long count) except? -1
    cdef int empty(self) except? -1
