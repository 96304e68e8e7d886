# Written by `python -m tests.house.declarations`.
from amqpsniff.session.entities cimport Channel, ChannelSlot, Session
from amqpsniff.session.method_frame cimport MethodFrame

cdef bint move_connection(Session session, int method, int side) except? -1
cdef bint has_closed(Session session, int side) noexcept
cdef int move_slot(ChannelSlot slot, int method, int side) except? -1
cdef int drop_requests(ChannelSlot slot, int side, bint closes) except? -1
cdef Channel begin_channel(Session session, ChannelSlot slot, object capture, MethodFrame frame)
cdef int open_channel(object tracker, Session session, ChannelSlot slot, object capture, MethodFrame frame) except? -1
cdef Channel reopen_channel(object tracker, ChannelSlot slot, object capture, long long ts_ns)
cdef int note_end(object tracker, Session session) except? -1
cdef int end_connection(object tracker, Session session) except? -1
cdef int lose_frames(Session session, int side, tuple place) except? -1
cdef int resume_side(Session session, int side) except? -1
cdef int mark_uncertain(Channel channel, int side) except? -1
