# Written by `python -m tests.house.declarations`.
from amqpsniff.columns cimport Integers, Vocabulary
from amqpsniff.decode.octets cimport ByteReader
from amqpsniff.decode.rows cimport MessageRows, Vocabularies
from amqpsniff.session.entities cimport Channel, Session
from amqpsniff.session.event_log cimport EventLog

cdef class MessageLog(EventLog):
    cdef public ByteReader reader
    cdef public list places
    cdef public dict names
    cdef public Integers exchange
    cdef public Integers routing_key
    cdef public Integers queue
    cdef public list message_id
    cdef public set returning
    cdef public Vocabularies words
    cdef public int recent_exchange
    cdef public int recent_key
    cdef public long long recent_route
    cdef public Integers kind
    cdef public Integers connection
    cdef public Integers channel
    cdef public Integers mark
    cdef public Integers route
    cdef public Integers seen_ns
    cdef public Integers seen_number
    cdef public Integers seen_in
    cpdef object finish(self)
    cdef int publish(self, Channel channel, MessageRows messages, long long row) except? -1
    cdef int deliver(self, Channel channel, MessageRows messages, long long row) except? -1
    cpdef int note(self, long long kind, Channel channel, long long mark, long long tag, long long number, object ts_ns, object queue, object message_id) except? -1
    cpdef object close(self, Channel channel)
    cpdef object end(self, Session session)
    cpdef object lose(self, Session session, int side)
    cpdef long long key(self, str text, bytes octets, unsigned long long mark) except? -1
    cdef unsigned long long _hash(self, bytes octets) except? 1
    cdef unsigned long long _word(self, Vocabulary vocabulary, int code) except? 1
    cdef int _put(self, long long kind, Channel channel, MessageRows messages, long long row) except? -1
    cdef int _text(self, object exchange, object routing_key, object queue, object message_id) except? -1
    cdef long long _code(self, object name) except? -2
    cdef int _add(self, long long kind, Channel channel, long long mark, long long route, long long seen_ns, long long seen_number) except? -1
    cdef int _write(self, long long kind, long long connection, long long channel, long long mark, long long route, long long seen_ns, long long seen_number, object seen_in) except? -1
