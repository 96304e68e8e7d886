from amqpsniff.decode.rows cimport MessageRows
from amqpsniff.session.event cimport Said
from amqpsniff.session.sent cimport Sent

cdef class Entry:
    cdef public MessageRows rows
    cdef public long long number, packet_number, ts_ns, outcome_number, outcome_ns, mark, body_mark
    cdef public int row
    cdef public signed char outcome, kind, wants, held, open_row, ended, returnable
    cdef public Consumer consumer
    cdef public Channel channel
    cdef public tuple route

cdef Entry entry_of(Channel channel, int kind, long long number, long long ts_ns)

cdef class Ledger:
    cdef public dict entries
    cdef public list order, lowest
    cdef public long long head, end, waiting, last, disorder, most_answered
    cdef Entry add(self, Entry entry)
    cpdef Entry find(self, long long number)
    cdef Entry take(self, long long number)
    cdef list take_until(self, long long number)
    cdef int _release(self, Entry entry) except? -1
    cdef int _clear(self) except? -1
    cdef int _put(self, list order) except? -1

cdef class Consumer:
    cdef public str tag, queue
    cdef public object no_ack, prefetch
    cdef public long long delivered, unsettled, unsettled_max
    cdef public long long batch
    cdef public int code

cdef class Closable:
    cdef public object closed_by, close_bytes

cdef class Channel(Closable):
    cdef public Session session
    cdef public Lane lane
    cdef public object capture
    cdef public int number, incarnation
    cdef public bint known, numbering, numbered, in_transaction, deaf
    cdef public object opened_packet_number, start_ns, closed_packet_number, end_ns
    cdef public object mode, prefetch_count
    cdef public object blamed_packet_number
    cdef public object prefetch_each, prefetch_shared
    cdef public long long published, confirmed, returned, delivered, acknowledged
    cdef public long long unsettled, unsettled_max, unconfirmed, unconfirmed_max
    cdef public long long consumers, next_number, publish_doubt, delivery_doubt
    cdef public long long return_doubt, lost_publish
    cdef public long long publish_bytes, deliver_bytes, acks, multiple_acks
    cdef public long long requeued, discarded, rejected, redelivered, gets, commits
    cdef public long long waited_publishes, first_publish_ns, last_publish_ns
    cdef public long long first_publish_number, last_publish_number
    cdef public long long first_delivery_ns, last_delivery_ns, last_ack_ns
    cdef public long long first_tag, last_tag, lost_tag
    cdef public long long waits, wait_ns, wait_ns_min
    cdef public long long most_number, slow_confirm_number, slow_ack_number
    cdef public long long most_ns, slow_confirm_ns, slow_ack_ns
    cdef public long long confirm_ns, confirm_ns_max, ack_ns, ack_ns_max
    cdef public long long queued, queued_ns, queued_ns_max, repeats, last_repeat, sighted
    cdef public tuple longest
    cdef public Ledger publishes, deliveries
    cdef public dict returnable, alike, by_tag
    cdef public Consumer near
    cdef public int near_code
    cdef public long long near_batch
    cdef public list noted, committing
    cdef public object tentative
    cdef public bint publishes_uncertain, deliveries_uncertain
    cdef public object last_queue, declaring, joined, uncommitted
    cdef public long long passed

cdef class Lane:
    cdef public int number, incarnations, step, dead, changed
    cdef public Channel channel
    cdef public list requests, early
    cdef public Sent sent

cdef class Session(Closable):
    cdef public object peer, capture
    cdef public long long number
    cdef public dict lanes, facts, memory
    cdef public bint lossy, heard
    cdef public long long calls, frames
    cdef public object confirms, acks
    cdef public Sent sent
    cdef public long long last_client_ns, last_server_ns, silence_client_ns, silence_server_ns
    cdef public Lane last
    cdef public bint over
    cdef public str blocking
    cdef public int step, dead, missing
    cdef public long long channels_opened, published, delivered, acknowledged
    cdef public object close_packet_number, close_ns, blocked_since, blocked_ns
    cdef public tuple changed
    cdef list take_changed(self, int side)
    cdef int note_changed(self, Lane lane) except? -1
    cpdef Channel holder(self, long long tag, Channel but)
