from amqpsniff.findings.log cimport FindingLog
from amqpsniff.session.entities cimport Channel, Session
from amqpsniff.session.method_frame cimport MethodFrame, Request

cdef class RuleContext:
    cdef public object tracker, number, ts_ns
    cdef public Channel channel
    cdef public MethodFrame frame
    cdef public Request request
    cdef public FindingLog log
    cdef public Session session
    cdef public dict facts, memory, shared
    cdef object _complete, _place, _messages, _order
    cdef place_at(
        self, Session session, object channel, object number, object ts_ns, object frame,
        object request, dict facts
    )
