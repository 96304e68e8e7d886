from amqpsniff.session.entities cimport Session

cdef class RuleContext:
    cdef public object tracker, channel, frame, request, number, ts_ns
    cdef public Session session
    cdef public dict facts
    cdef object _complete, _place
