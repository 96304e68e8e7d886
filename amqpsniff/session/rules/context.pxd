# Written by `python -m tests.house.declarations`.
cimport cython
from amqpsniff.findings.log cimport FindingLog
from amqpsniff.session.entities cimport Channel, Session
from amqpsniff.session.method_frame cimport MethodFrame, Request

@cython.freelist(8)
cdef class RuleContext:
    cdef public object tracker
    cdef public Channel channel
    cdef public MethodFrame frame
    cdef public Request request
    cdef public object number
    cdef public object ts_ns
    cdef public FindingLog log
    cdef public dict memory
    cdef public dict shared
    cdef public Session session
    cdef public dict facts
    cdef object _complete
    cdef object _place
    cdef object _messages
    cdef object _order
    cdef object place_at(self, Session session, object channel, object number, object ts_ns, object frame, object request, dict facts)
    cpdef object place_of(self, object number, object ts_ns)
