# Written by `python -m tests.house.declarations`.
from amqpsniff.decode.moments cimport Moments
from amqpsniff.decode.rows cimport FrameRows, MessageRows, Vocabularies
from amqpsniff.decode.state cimport Connection
from amqpsniff.findings.log cimport FindingLog
from amqpsniff.session.amqp10 cimport Amqp10Tracker
from amqpsniff.session.amqp10_links cimport Link
from amqpsniff.session.both_sides cimport DoubledConnections
from amqpsniff.session.entities cimport Channel, ChannelSlot, Consumer, PendingMessage, Session
from amqpsniff.session.event_logs cimport EventLog, MessageLog
from amqpsniff.session.link_recorder cimport LinkRecorder
from amqpsniff.session.method_frame cimport HandshakeArguments, Request
from amqpsniff.session.methods cimport ReplyMatcher
from amqpsniff.session.rules.emitter cimport Emitter
from amqpsniff.session.settling cimport Settler

cdef class Tracker:
    cdef public FindingLog log
    cdef public Moments moments
    cdef public object on_silence
    cdef public bint in_message_row
    cdef public long long now_row
    cdef public long long late_row
    cdef public Session ending
    cdef public tuple loss_moment
    cdef public object limits
    cdef public long long consumers_known
    cdef public long long handshakes_bytes
    cdef public long long max_handshake_bytes
    cdef public long long max_all_handshakes_bytes
    cdef public long long batch
    cdef public long long first_open_content
    cdef public bint replies_only
    cdef public bint states_only
    cdef public bint settles
    cdef public bint wants_connections
    cdef public bint wants_channels
    cdef public bint wants_links
    cdef public long long sessions
    cdef public long long unmeasured
    cdef public long long slots
    cdef public long long max_slots
    cdef public dict shared
    cdef public list names
    cdef public list captures
    cdef public list peers
    cdef public Emitter emitter
    cdef public DoubledConnections doubled
    cdef public Amqp10Tracker amqp10
    cdef public MessageLog message_log
    cdef public LinkRecorder link_recorder
    cdef public FrameRows frames
    cdef public Settler settler
    cdef public list open_contents
    cdef public dict handshakes
    cdef public Vocabularies batch_words
    cdef public dict late_contents
    cdef public ReplyMatcher reply_matcher
    cdef public list channels
    cdef public list connections
    cdef public list link_rows
    cdef public list channel_handlers
    cdef public list connection_handlers
    cdef public object packs
    cdef public set lost_before
    cdef public const unsigned char[::1] followed
    cdef long long _follow_rows(self, long long first, long long last, MessageRows messages, long long message, list losses) except? -1
    cdef int _note_capture(self, long long row) except? -1
    cdef int _end_silence(self, long long row) except? -1
    cdef int _performative(self, long long row) except? -1
    cdef int _method(self, long long row, int method) except? -1
    cdef object _follow(self, Session session, ChannelSlot slot, long long row, int kind, int side)
    cdef Session _begin(self, Connection connection)
    cdef ChannelSlot _slot(self, Session session, int number)
    cdef int _other(self, Session session, ChannelSlot slot, long long row, int method, int side) except? -1
    cdef int _move(self, Session session, ChannelSlot slot, int method, int side) except? -1
    cdef object _on_connection(self, Session session, long long row, int method, int side, Request request)
    cdef object _on_channel(self, Session session, ChannelSlot slot, long long row, int method, int side, Request request)
    cdef int on_loss(self, Connection connection, int direction, object place) except? -1
    cdef int _lose_refusals(self, Session session) except? -1
    cpdef int end(self, Connection connection) except? -1
    cpdef int end_channel(self, Channel channel) except? -1
    cdef int end_link(self, Link link, Channel channel) except? -1
    cdef Consumer consumer_for(self, Session session, ChannelSlot slot, long long row, int kind)
    cdef Channel channel_for(self, Session session, ChannelSlot slot, long long row, int kind)
    cdef object begin_message(self, Session session, ChannelSlot slot, long long row, int kind)
    cdef bint _publish(self, Session session, Channel channel, PendingMessage entry, long long row) except? -1
    cdef bint _is_after_end(self, Session session, Channel channel, PendingMessage entry) except? -1
    cdef int acknowledge(self, Session session, ChannelSlot slot, long long row, int kind, int side) except? -1
    cdef int _acknowledge_in_part(self, Channel channel, int kind, int side, long long tag) except? -1
    cdef object capture_of(self, long long row)
    cdef Channel proved_channel(self, Session session, ChannelSlot slot, long long row)
    cpdef HandshakeArguments remember(self, str name, bytes octets, bint whole)
    cdef int forget(self, HandshakeArguments known) except? -1
    cdef int begin_content(self, object known) except? -1
    cdef int on_message_row(self, MessageRows messages, long long row) except? -1
    cdef int attach(self, MessageRows messages, long long row) except? -1
    cdef int count_message(self, Channel channel, PendingMessage entry, MessageRows messages, long long row, long long size) except? -1
    cdef int _note_unfinished(self, Channel channel, MessageRows messages, long long row, int side) except? -1
    cdef int _name_queue(self, MessageRows messages, long long row, Consumer consumer) except? -1
    cdef long long batch_of(self, Vocabularies words) except? -1
    cdef int _set_aside(self) except? -1
    cpdef MessageLog dated_log(self, Session session)
    cdef int set_time(self, EventLog event_log, Connection connection) except? -1
    cpdef tuple now(self)
    cpdef object on_connection_closed(self, Session session)
