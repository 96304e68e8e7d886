from amqpsniff.session.entities cimport Session

cdef class RuleContext:
    cdef public object tracker, channel, frame, request, number, ts_ns
    cdef public Session session
    cdef public dict facts
    cdef object _complete, _place, _messages

cdef RuleContext context_of(
    object tracker, Session session, object channel, object number, object ts_ns, object frame,
    object request, dict facts
)
