cimport cython
from amqpsniff.decode.rows cimport MessageRows
from amqpsniff.session.method_frame cimport HandshakeArguments
from amqpsniff.session.routes cimport Routes

cdef class LastSent:
    cdef long long last, publish, ack
    cdef short methods[4]
    cdef long long numbers[4]
    cdef dict others
    cdef int note(self, int kind, int method, long long number) except? -1
    cpdef packet(self, str method)

cdef class PendingMessage:
    cdef public MessageRows rows
    cdef public long long number, packet_number, ts_ns, outcome_number, outcome_ns, mark, body_mark
    cdef public int row, losses
    cdef public signed char outcome, kind, wants, held, open_row, ended, may_return
    cdef public Consumer consumer
    cdef public Channel channel
    cdef public tuple route

cdef PendingMessage pending_message(Channel channel, int kind, long long number, long long ts_ns)

@cython.final
cdef class Ledger:
    cdef public bint shared
    cdef public dict entries
    cdef public list order, lowest
    cdef public long long head, end, waiting, last, disorder, max_answered
    cdef PendingMessage add(self, PendingMessage entry)
    cpdef PendingMessage find(self, long long number)
    cdef PendingMessage pop(self, long long number)
    cdef list pop_until(self, long long number)
    cdef int _release(self, PendingMessage entry) except? -1
    cdef int _clear(self) except? -1

cdef class Consumer:
    cdef public str tag, queue
    cdef public object no_ack, prefetch
    cdef public long long delivered, unsettled, unsettled_max
    cdef public long long batch
    cdef public int code

cdef class Closeable:
    cdef public object closed_by, close

cdef class QueueTimes:
    cdef public long long queued, queued_long, queued_ns, queued_ns_max
    cdef public long long long_number, long_ns, fresh, fresh_number, fresh_ns, fresh_wait_ns
    cdef public long long latest_ns, latest_wait_ns
    cdef public tuple longest
    cdef bint add_wait(self, long long waited, long long number, long long ts_ns) except? -1

cdef class MessageTimes(QueueTimes):
    cdef public long long confirmed, bounds, returned, unconfirmed_max
    cdef public long long maybe_confirmed_to, maybe_returned_to, unknown_confirm_number
    cdef public long long first_tag, repeats, last_repeat, first_logged
    cdef public long long waits, wait_ns, wait_ns_min
    cdef public long long most_number, slow_confirm_number, slow_ack_number
    cdef public long long most_ns, slow_confirm_ns, slow_ack_ns
    cdef public long long confirm_ns, confirm_ns_max, ack_ns, ack_ns_max
    cdef public long long pauses, pause_ns, pause_number, pause_began_ns
    cdef public long long publish_bytes, deliver_bytes, acks, multiple_acks
    cdef public long long requeued, discarded, rejected, redelivered, gets, commits
    cdef public long long waited_publishes, first_publish_ns, last_publish_ns
    cdef public long long first_publish_number, last_publish_number
    cdef public long long first_delivery_ns, last_delivery_ns, last_ack_ns

cdef class Channel(Closeable):
    cdef public Session session
    cdef public ChannelSlot slot
    cdef public object capture
    cdef public int number, incarnation, recent_consumer_code
    cdef public bint known, numbering, numbered, in_transaction, broker_discards
    cdef public bint publishes_uncertain, deliveries_uncertain
    cdef public object closed_packet_number, end_ns
    cdef public long long opened_number, opened_ns
    cdef public object mode, prefetch_count, amqp10
    cdef public object blamed_packet_number
    cdef public object prefetch_each, prefetch_shared
    cdef public long long published, delivered, acknowledged
    cdef public long long unsettled, unsettled_max, unconfirmed
    cdef public long long consumers, next_number, maybe_settled_to
    cdef public long long publish_before_loss, last_tag, tag_before_loss
    cdef public int losses
    cdef public MessageTimes times
    cdef public Ledger publishes, deliveries
    cdef public dict awaiting_return, by_fingerprint, by_tag
    cdef public Consumer recent_consumer
    cdef public dict cancelled
    cdef public long long recent_consumer_batch
    cdef public list noted, committing
    cdef public object tentative
    cdef public list missed_tags
    cdef public bint refusals_lost
    cdef public object last_queue, declaring, midstream_confirms, uncommitted
    cdef public long long uncommitted_start
    cdef public tuple unfinished
    cdef MessageTimes own_times(self)

cdef class ChannelSlot:
    cdef public int number, incarnations, key
    cdef public signed char state_code, no_reply_expected, used_since_loss
    cdef public ChannelSlot older
    cdef public Channel channel
    cdef public list requests, early_replies
    cdef public LastSent last_sent

cdef class Session(Closeable):
    cdef public object connection, capture
    cdef public list captures
    cdef public long long number
    cdef public dict handshake, memory
    cdef public ChannelSlot newest
    cdef public dict by_key
    cdef public int slot_count
    cdef public bint has_loss, server_seen, over
    cdef public signed char state_code, no_reply_expected, missing
    cdef public object amqp10, client
    cdef public long long pending_rpcs, frames
    cdef public long long traced_published, traced_delivered, untraced_published, looked
    cdef public object confirms, acks
    cdef public LastSent last_sent
    cdef public long long last_client_ns, last_server_ns, silence_client_ns, silence_server_ns
    cdef public long long opening_client_ns, opening_server_ns
    cdef public ChannelSlot last
    cdef public str blocking
    cdef public long long channels_opened, published, delivered, acknowledged
    cdef public long long publish_bytes, deliver_bytes
    cdef public object close_packet_number, close_ns, blocked_since, blocked_ns, owed
    cdef public tuple used_since_loss, lost_at, bulky
    cdef public Routes routes
    cdef long long steps[12]
    cdef int note_capture(self, long long ts_ns, object capture) except? -1
    cpdef object capture_at(self, object ts_ns)
    cpdef ChannelSlot slot(self, int key)
    cdef int add_slot(self, ChannelSlot slot) except? -1
    cpdef object slots(self)
    cpdef int take_handshake(self, object method, object known) except? -1
    cdef list drain_used(self, int side)
    cdef int note_used(self, ChannelSlot slot) except? -1
    cpdef Channel holder(self, long long tag, Channel but)
