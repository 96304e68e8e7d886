# Written by `python -m tests.house.declarations`.
from amqpsniff.columns cimport Octets
from amqpsniff.decode.values cimport ValueReader
cdef class Content

cdef class MemoryBudget:
    cdef public long long held
    cdef public long long stores
    cdef public dict refused
    cdef bint allows(self, long long octets) except? -1
    cdef bint has_plenty(self) noexcept
    cpdef int refuse(self, str kind) except? -1

cdef class StreamBuffer(Octets):
    cdef public MemoryBudget budget
    cdef bint fits(self, long long count) except? -1
    cdef bint should_release(self) except? -1

cdef class Connection:
    cdef public object conversation
    cdef public bint is_amqp
    cdef public bint is_amqp10
    cdef public bint is_amqp010
    cdef public int reads_bodies
    cdef public bint began
    cdef public bint role_proved
    cdef public bint past_login
    cdef public int client_direction
    cdef public int dialect
    cdef public int row_serial
    cdef public int row_code
    cdef public long long frame_max
    cdef public long long greeted_ns
    cdef public str id
    cdef public object session
    cdef public object volume
    cdef public object login
    cdef public object requested_protocol
    cdef public object capture
    cdef public object ended_capture
    cdef public object last_capture
    cdef public tuple sent_secrets
    cpdef tuple name(self)

cdef class Repeated:
    cdef public Connection connection
    cdef public str code
    cdef public str detail
    cdef public int channel
    cdef public long long count
    cdef public long long last
    cdef public list unreported

cdef class Half:
    cdef public Connection connection
    cdef public int direction
    cdef public int mode
    cdef public long long number
    cdef public long long ts_ns
    cdef public long long offset
    cdef public bint lossy
    cdef public bint skipping
    cdef public MemoryBudget budget
    cdef public StreamBuffer store
    cdef public long long stored
    cdef public long long expected
    cdef public long long remaining
    cdef public long long frame_offset
    cdef public long long frame_size
    cdef public int frame_channel
    cdef public int frame_type
    cdef public Content content
    cdef public dict other_contents
    cdef public object search
    cdef public object opened_since
    cdef public object amqp10
    cdef public dict repeated
    cdef public bytes first_bytes
    cdef public long long first_number
    cdef public long long first_ns
    cdef int begin(self, Connection connection, int direction) except? -1
    cpdef bint repeats(self, str code) except? -1
    cdef bint has_grown(self) except? -1
    cdef int forget_frame(self) except? -1
    cdef long long keep(self, ValueReader reader, long long start, long long count) except? -1
    cdef int empty(self) except? -1

cdef class Content:
    cdef public int state
    cdef public int channel
    cdef public int method
    cdef public int class_id
    cdef public StreamBuffer store
    cdef public Octets body
    cdef public object hash
    cdef public object safe_text
    cdef public object capture
    cdef public bint keeping
    cdef public bint body_marking
    cdef public bint lossy
    cdef public unsigned long long body_mark
    cdef public long long number
    cdef public long long ts_ns
    cdef public long long last_number
    cdef public long long delivery_tag
    cdef public int reply_code
    cdef public int flags
    cdef public long long batch
    cdef public long long ordinal
    cdef public long long mark
    cdef public int exchange
    cdef public int routing_key
    cdef public int consumer_tag
    cdef public long long header_start
    cdef public long long header_end
    cdef public long long located
    cdef public long long body_size
    cdef public long long body_seen
    cdef public long long body_missing
    cdef public long long exchange_start
    cdef public long long exchange_length
    cdef public long long key_start
    cdef public long long key_length
    cdef public long long tag_start
    cdef public long long tag_length
    cdef public long long text_start
    cdef public long long text_length
    cdef public long long lost_at
    cdef public long long lost
    cdef public long long sound
    cdef int forget(self) except? -1
    cdef int open(self, int channel, MemoryBudget budget) except? -1
    cdef int close(self) except? -1
    cdef int begin_body(self) except? -1
    cdef int end_body(self) except? -1
    cdef tuple place(self)
    cdef long long body_rest(self) except? -1
