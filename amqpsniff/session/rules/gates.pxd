# Written by `python -m tests.house.declarations`.
from amqpsniff.session.entities cimport Channel, Session
from amqpsniff.session.rules.context cimport RuleContext

cdef class GatedRule:
    cdef public object rule
    cdef public tuple names
    cdef public int bits
cdef int ask(tuple rules, RuleContext context, int bits) except? -1
cdef int argument_bits(bytes octets) except? -1
cdef bint has_consumers(Session session) except? -1
cdef int channel_bits(Channel channel) except? -1
cdef int connection_bits(Session session) except? -1
