# Written by `python -m tests.house.declarations`.
cimport cython
from amqpsniff.tcp.retransmissions cimport History
from amqpsniff.tcp.stream cimport EventWriter

@cython.no_gc
cdef class Segment:
    cdef public long long[::1] rows
    cdef public long long at
    cdef public long long number
    cdef public long long ts_ns
    cdef public long long seq
    cdef public long long payload_seq
    cdef public long long ack
    cdef public int flags
    cdef public bytes octets
    cdef public long long extra
    cdef public long long start
    cdef public long long captured
    cdef public long long length
    cdef public long long seen
    cdef int read(self, EventWriter writer, bytes octets, long long[::1] rows, long long at, long long number, long long ts_ns) except? -1
cdef long long later(long long ts_ns, long long wait_ns) except? -1

cdef class HoldingPool:
    cdef public EventWriter writer
    cdef public History history
    cdef public object limits
    cdef public long long total
    cdef public long long max_total
    cdef public long long max_bytes
    cdef public long long max_segments
    cdef public long long max_ahead
    cdef public long long max_behind

cdef class Piece:
    cdef public long long start
    cdef public long long end
    cdef public bytes octets
    cdef public long long number
    cdef public long long ts_ns
    cdef public long long identification
    cdef public long long needs
cdef Piece piece_of(long long start, long long end, bytes octets, long long number, long long ts_ns, long long identification, long long needs)

cdef class Held:
    cdef public Py_ssize_t head
    cdef public long long octets
    cdef public HoldingPool pool
    cdef public list pieces
    cdef Py_ssize_t count(self) except? -1
    cdef Piece front(self)
    cdef long long first(self) except? -2
    cdef long long end(self) except? -2
    cdef long long run_end(self) except? -2
    cdef long long after(self, long long position) except? -2
    cdef Py_ssize_t _index(self, long long position) except? -2
    cdef bint full(self) except? -1
    cdef Piece find(self, long long start, long long end)
    cdef int add(self, Piece piece) except? -1
    cdef int _insert(self, Py_ssize_t index, Piece piece, long long start, long long end) except? -1
    cdef int _account(self, long long octets) except? -1
    cdef Piece take_front(self)

@cython.no_gc
cdef class HalfStream:
    cdef public HoldingPool pool
    cdef public int index
    cdef public int cell
    cdef public signed char open
    cdef public signed char slow
    cdef public signed char doubted
    cdef public signed char syn_captured
    cdef public long long isn
    cdef public long long next_seq
    cdef public long long next_offset
    cdef public Held held
    cdef public long long fin_offset
    cdef public long long fin_number
    cdef public long long fin_ns
    cdef public long long delivered_number
    cdef public long long delivered_ns
    cdef public long long last_row
    cdef public long long sent
    cdef public long long sent_ns
    cdef public signed char ack_seen
    cdef public unsigned int ack_seq
    cdef public long long acked
    cdef public signed char fin_acked
    cdef public long long acked_late_ns
    cdef public long long awaited_acks
    cdef public long long packets
    cdef public long long copies
    cdef public long long empty_seen
    cdef public long long retransmissions
    cdef public long long gaps
    cdef public long long lost_bytes
    cdef public long long cut_bytes
    cdef public long long last_number
    cdef public long long last_ns
    cdef public long long activity
    cdef public long long waiting_until
    cdef public signed char waiting_acked
    cdef public long long deadline_segments
    cdef public long long deadline_ns
    cdef public long long abandoned_below
    cdef public signed char not_captured
    cdef public long long linger_ns
    cdef public long long linger_turn
    cdef public int impossible_count
    cdef public unsigned int impossible_seq
    cdef public tuple first_retransmission
    cdef public object resent
    cdef public tuple repeated
    cdef public tuple closed_window
    cdef public signed char probed
    cdef public object zero_windows
    cdef int count(self, long long number, long long ts_ns, long long segment_serial) except? -1
    cdef bint count_empty(self, long long identification) except? -1
    cdef int start_at(self, long long seq) except? -1
    cdef long long ahead(self, long long seq) except? -1
    cdef bint possible(self, long long seq) except? -1
    cdef long long offset_of(self, long long ack) except? -1
    cdef int acknowledge(self, long long ack) except? -1
    cdef int sent_before(self, long long seq, long long ts_ns) except? -1
    cdef long long _before_fin(self, long long offset) except? -2
    cdef long long known_end(self) except? -2
    cdef bint finish_at(self, long long seq, long long number, long long ts_ns) except? -1
    cdef bint holds(self) except? -1
    cdef bint finished(self) except? -1
    cdef long long captured_end(self) except? -1
    cdef long long acknowledged(self) except? -1
    cdef bint differs(self, Segment segment, long long offset) except? -1
    cdef int _compare(self, Segment segment, long long start, long long offset, long long captured) except? -1
    cdef bint needs_care(self, HalfStream other) except? -1
    cdef int count_impossible(self, long long seq, long long length) except? -1
    cdef bint lost_before(self, Segment segment, long long round_trip_ns) except? -1
    cdef int insert(self, Segment segment, long long needs, bint waits) except? -1
    cdef int _count_resent(self, Segment segment, long long start, long long offset, long long captured) except? -1
    cdef bint _repeated(self, long long offset, long long length, long long ts_ns) except? -1
    cdef int _hold(self, Segment segment, long long start, long long captured, long long offset, long long end, long long needs) except? -1
    cdef int _deliver(self, bytes octets, int source, long long start, long long captured, long long length, long long number, long long ts_ns, long long seen) except? -1
    cdef int _advance(self, long long octets) except? -1
    cdef int lose(self, long long octets, long long number, long long ts_ns) except? -1
    cdef int deliver_piece(self, Piece piece, long long number, long long ts_ns, long long seen) except? -1
    cdef int end(self, HalfStream other, long long number, long long ts_ns) except? -1
    cdef int update_window(self, HalfStream other, Segment segment) except? -1
    cdef object zero_window(self, HalfStream other, long long end_ns)
    cdef bint _was_open(self, long long seq) except -1
    cdef object _with_window(self, long long seq, long long end_ns)
