from amqpsniff.session.event cimport Event
from amqpsniff.session.state cimport Channel, Lane, Session

cdef Channel begin_channel(Session session, Lane lane, object capture, Event event)
cdef int open_channel(object tracker, Session session, Lane lane, object capture, Event event) except? -1
cdef int _end_channel(object tracker, Session session, Lane lane) except? -1
cdef int _end_channels(object tracker, Session session) except? -1
cdef int end_connection(object tracker, Session session) except? -1
cdef int hear_again(Session session, int side) except? -1
cdef int doubt_answers(Channel channel, int side) except? -1
cdef int lose(Session session, int side) except? -1
cdef object _time(long long ts_ns)
