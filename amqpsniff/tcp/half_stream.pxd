from amqpsniff.tcp.retransmissions cimport History
from amqpsniff.tcp.stream cimport EventWriter

cdef long long later(long long ts_ns, long long wait_ns) except? -1

cdef class HoldingPool:
    cdef readonly object limits
    cdef EventWriter writer
    cdef History history
    cdef long long total, max_total, max_bytes, max_segments, most_ahead, most_behind

cdef class Piece:
    cdef long long start, end, number, ts_ns, identification, needs
    cdef bytes octets

cdef Piece piece_of(
    long long start, long long end, bytes octets, long long number, long long ts_ns,
    long long identification, long long needs
)

cdef class Held:
    cdef HoldingPool pool
    cdef list pieces
    cdef Py_ssize_t begin
    cdef long long octets
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

cdef class HalfStream:
    cdef HoldingPool pool
    cdef Held held
    cdef readonly int index
    cdef int cell, strange
    cdef unsigned int ack_seq, strange_seq
    cdef readonly signed char open
    cdef signed char slow, ack_seen, fin_acked, waiting_acked, absent, doubted, probed
    cdef readonly long long isn, next_seq, fin_offset, next_offset, acked
    cdef long long last_row, fin_number, fin_ns
    cdef readonly long long packets, retransmissions, gaps, lost_bytes, cut_bytes
    cdef readonly long long last_number, last_ns, activity
    cdef long long sent, sent_ns, acked_late_ns
    cdef readonly long long awaited_acks
    cdef long long delivered_number, delivered_ns
    cdef long long forsaken, waiting_until, deadline_segments, deadline_ns, linger_ns, linger_turn
    cdef public tuple first_retransmission
    cdef public object resent
    cdef tuple repeated, shut
    cdef object shuts
    cdef int count(self, long long number, long long ts_ns, long long serial) except? -1
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
    cdef bint differs(
        self, bytes octets, long long start, long long offset, long long captured,
        long long seen, long long ts_ns
    ) except? -1
    cdef bint needs_care(self, HalfStream other) except? -1
    cdef int stray(self, long long seq, long long length) except? -1
    cdef bint lost_before(self, long long seq, long long ts_ns, long long round_trip_ns) except? -1
    cdef int place(
        self, bytes octets, long long[::1] rows, long long at, long long seq, long long number,
        long long ts_ns, long long needs, bint waits
    ) except? -1
    cdef int _old(
        self, bytes octets, long long start, long long offset, long long captured,
        long long seen, long long ts_ns
    ) except? -1
    cdef bint _repeated(self, long long offset, long long length, long long ts_ns) except? -1
    cdef int _hold(
        self, bytes octets, long long start, long long captured, long long offset,
        long long end, long long number, long long ts_ns, long long needs
    ) except? -1
    cdef int _deliver(
        self, bytes octets, int source, long long start, long long captured, long long length,
        long long number, long long ts_ns, long long seen
    ) except? -1
    cdef int _advance(self, long long octets) except? -1
    cdef int lose(self, long long octets, long long number, long long ts_ns) except? -1
    cdef int deliver_piece(self, Piece piece, long long number, long long ts_ns, long long seen) except? -1
    cdef int end(self, HalfStream other, long long number, long long ts_ns) except? -1
