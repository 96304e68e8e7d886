from amqpsniff.session.state cimport Lane, Session

cdef bint move_connection(Session session, int method, int side) except? -1
cdef bint has_closed(Session session, int side) noexcept
cdef int move_lane(Lane lane, int method, int side) except? -1
cdef int drop_requests(Lane lane, int side, bint closes) except? -1
