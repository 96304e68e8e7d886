# Written by `python -m tests.house.declarations`.
cimport cython
from amqpsniff.decode.rows cimport MessageRows
from amqpsniff.session.routes cimport Routes
cdef class Channel
cdef class ChannelSlot
cdef class Consumer
cdef class Session

@cython.no_gc
cdef class LastSent:
    cdef public long long last
    cdef public long long publish
    cdef public long long ack
    cdef public short methods[4]
    cdef public long long numbers[4]
    cdef public dict others
    cdef int note(self, int kind, int method, long long number) except? -1
    cpdef object packet(self, str method)

@cython.freelist(512)
cdef class PendingMessage:
    cdef public MessageRows rows
    cdef public long long number
    cdef public long long packet_number
    cdef public long long ts_ns
    cdef public long long outcome_number
    cdef public long long outcome_ns
    cdef public long long mark
    cdef public long long body_mark
    cdef public int row
    cdef public int losses
    cdef public signed char outcome
    cdef public signed char kind
    cdef public signed char wants
    cdef public signed char held
    cdef public signed char open_row
    cdef public signed char ended
    cdef public signed char may_return
    cdef public Consumer consumer
    cdef public Channel channel
    cdef public tuple route
cdef PendingMessage pending_message(Channel channel, int kind, long long number, long long ts_ns)

@cython.final
cdef class Ledger:
    cdef public long long head
    cdef public long long end
    cdef public long long waiting
    cdef public long long last
    cdef public long long disorder
    cdef public long long max_answered
    cdef public bint shared
    cdef public dict entries
    cdef public list order
    cdef public list lowest
    cdef PendingMessage add(self, PendingMessage entry)
    cpdef PendingMessage find(self, long long number)
    cdef PendingMessage pop(self, long long number)
    cdef list pop_until(self, long long number)
    cdef int _release(self, PendingMessage entry) except? -1
    cdef int _clear(self) except? -1

cdef class Consumer:
    cdef public object no_ack
    cdef public object prefetch
    cdef public long long delivered
    cdef public long long unsettled
    cdef public long long unsettled_max
    cdef public long long batch
    cdef public int code
    cdef public str tag
    cdef public str queue

cdef class Closeable:
    cdef public object closed_by
    cdef public object close

cdef class QueueTimes:
    cdef public long long queued
    cdef public long long queued_long
    cdef public long long queued_ns
    cdef public long long queued_ns_max
    cdef public long long long_number
    cdef public long long long_ns
    cdef public long long fresh
    cdef public long long fresh_number
    cdef public long long fresh_ns
    cdef public long long fresh_wait_ns
    cdef public long long latest_ns
    cdef public long long latest_wait_ns
    cdef public tuple longest
    cdef bint add_wait(self, long long waited, long long number, long long ts_ns) except? -1

cdef class MessageTimes(QueueTimes):
    cdef public long long confirmed
    cdef public long long bounds
    cdef public long long returned
    cdef public long long unconfirmed_max
    cdef public long long maybe_confirmed_to
    cdef public long long maybe_returned_to
    cdef public long long unknown_confirm_number
    cdef public long long first_tag
    cdef public long long repeats
    cdef public long long last_repeat
    cdef public long long first_logged
    cdef public long long waits
    cdef public long long wait_ns
    cdef public long long wait_ns_min
    cdef public long long most_number
    cdef public long long slow_confirm_number
    cdef public long long slow_ack_number
    cdef public long long most_ns
    cdef public long long slow_confirm_ns
    cdef public long long slow_ack_ns
    cdef public long long confirm_ns
    cdef public long long confirm_ns_max
    cdef public long long ack_ns
    cdef public long long ack_ns_max
    cdef public long long pauses
    cdef public long long pause_ns
    cdef public long long pause_number
    cdef public long long pause_began_ns
    cdef public long long publish_bytes
    cdef public long long deliver_bytes
    cdef public long long acks
    cdef public long long multiple_acks
    cdef public long long requeued
    cdef public long long rejected
    cdef public long long redelivered
    cdef public long long gets
    cdef public long long commits
    cdef public long long waited_publishes
    cdef public long long first_publish_ns
    cdef public long long last_publish_ns
    cdef public long long first_publish_number
    cdef public long long last_publish_number
    cdef public long long first_delivery_ns
    cdef public long long last_delivery_ns
    cdef public long long last_ack_ns

cdef class Channel(Closeable):
    cdef public int number
    cdef public int incarnation
    cdef public bint known
    cdef public bint numbering
    cdef public bint numbered
    cdef public bint in_transaction
    cdef public bint broker_discards
    cdef public long long published
    cdef public long long delivered
    cdef public long long acknowledged
    cdef public long long unsettled
    cdef public long long unsettled_max
    cdef public long long unconfirmed
    cdef public long long consumers
    cdef public long long next_number
    cdef public long long maybe_settled_to
    cdef public long long publish_before_loss
    cdef public long long last_tag
    cdef public long long tag_before_loss
    cdef public int losses
    cdef public int recent_consumer_code
    cdef public long long recent_consumer_batch
    cdef public bint publishes_uncertain
    cdef public bint deliveries_uncertain
    cdef public long long uncommitted_start
    cdef public long long opened_number
    cdef public long long opened_ns
    cdef public Session session
    cdef public ChannelSlot slot
    cdef public object capture
    cdef public object closed_packet_number
    cdef public object end_ns
    cdef public object mode
    cdef public object prefetch_count
    cdef public object amqp10
    cdef public object blamed_packet_number
    cdef public object prefetch_each
    cdef public object prefetch_shared
    cdef public MessageTimes times
    cdef public Ledger publishes
    cdef public Ledger deliveries
    cdef public dict awaiting_return
    cdef public dict by_fingerprint
    cdef public dict by_tag
    cdef public Consumer recent_consumer
    cdef public dict cancelled
    cdef public list noted
    cdef public list committing
    cdef public object tentative
    cdef public list missed_tags
    cdef public bint refusals_lost
    cdef public object last_queue
    cdef public object declaring
    cdef public object unnumbered_confirms
    cdef public object uncommitted
    cdef public tuple unfinished
    cdef MessageTimes own_times(self)

cdef class ChannelSlot:
    cdef public int number
    cdef public int incarnations
    cdef public int key
    cdef public signed char state_code
    cdef public signed char no_reply_expected
    cdef public signed char used_since_loss
    cdef public ChannelSlot older
    cdef public Channel channel
    cdef public list requests
    cdef public list early_replies
    cdef public LastSent last_sent

cdef class Session(Closeable):
    cdef public object connection
    cdef public object capture
    cdef public list captures
    cdef public long long number
    cdef public bint has_loss
    cdef public bint server_seen
    cdef public long long pending_rpcs
    cdef public long long frames
    cdef public long long traced_published
    cdef public long long traced_delivered
    cdef public long long untraced_published
    cdef public long long looked
    cdef public long long last_client_ns
    cdef public long long last_server_ns
    cdef public long long silence_client_ns
    cdef public long long silence_server_ns
    cdef public long long opening_client_ns
    cdef public long long opening_server_ns
    cdef public bint over
    cdef public bint has_consumed
    cdef public signed char state_code
    cdef public signed char no_reply_expected
    cdef public signed char missing
    cdef public long long channels_opened
    cdef public long long published
    cdef public long long delivered
    cdef public long long acknowledged
    cdef public long long publish_bytes
    cdef public long long deliver_bytes
    cdef public dict handshake
    cdef public dict memory
    cdef public object amqp10
    cdef public object client
    cdef public object confirms
    cdef public object acks
    cdef public LastSent last_sent
    cdef public ChannelSlot last
    cdef public ChannelSlot newest
    cdef public dict by_key
    cdef public int slot_count
    cdef public str blocking
    cdef public object close_packet_number
    cdef public object close_ns
    cdef public object blocked_since
    cdef public object blocked_ns
    cdef public object owed
    cdef public tuple used_since_loss
    cdef public tuple lost_at
    cdef public tuple bulky
    cdef public Routes routes
    cdef public long long steps[12]
    cdef int note_capture(self, long long ts_ns, object capture) except? -1
    cpdef object capture_at(self, object ts_ns)
    cpdef ChannelSlot slot(self, int key)
    cdef int add_slot(self, ChannelSlot slot) except? -1
    cpdef object slots(self)
    cpdef int take_handshake(self, object method, object known) except? -1
    cdef list drain_used(self, int side)
    cdef int note_used(self, ChannelSlot slot) except? -1
    cpdef Channel holder(self, long long tag, Channel but)
