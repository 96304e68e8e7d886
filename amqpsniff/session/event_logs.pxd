# Written by `python -m tests.house.declarations`.
from amqpsniff.columns cimport Integers
from amqpsniff.decode.rows cimport MessageRows, Vocabularies
from amqpsniff.session.entities cimport Channel, Session
from amqpsniff.session.fingerprint cimport Fingerprinter
from amqpsniff.session.linker cimport LinkRecord

cdef class EventLog:
    cdef public unsigned long long seed
    cdef public object give
    cdef public bint over
    cdef public long long count
    cdef public long long rows
    cdef public long long most
    cdef public long long last_ns
    cdef public long long last_capture
    cdef public long long last_number
    cdef public long long recent_code
    cdef public list captures
    cdef public dict codes
    cdef public object recent
    cdef public Integers ts_ns
    cdef public Integers capture
    cdef public Integers number
    cpdef int at(self, object capture, long long number, long long ts_ns) except? -1
    cdef long long code_of(self, object capture) except? -2
    cdef int at_end(self, object conversation) except? -1
    cpdef object finish(self)
    cdef long long put_order(self) except? -1
    cdef int end_row(self) except? -1

cdef class LinkLog(EventLog):
    cdef public long long messages
    cdef public Integers message
    cdef public Integers flags
    cdef public Integers connection
    cdef public Integers channel
    cdef public Integers packet_number
    cdef public Integers sent_ns
    cdef public Integers connection_id
    cdef public Integers vhost
    cdef public Integers line
    cdef public Integers other
    cdef public Integers routing_key
    cdef public Integers queue
    cdef public Integers correlation
    cdef public Integers reply_to
    cdef public Integers deadline
    cdef public Integers identity
    cdef public Integers asks
    cdef public Integers answers
    cdef int write(self, LinkRecord record) except? -1
    cpdef object close(self, long long connection, object close_ns, bint over)

cdef class MessageLog(EventLog):
    cdef public Fingerprinter fingerprinter
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
    cdef int _log_message(self, long long kind, Channel channel, MessageRows messages, long long row) except? -1
    cdef int _put_texts(self, object exchange, object routing_key, object queue, object message_id) except? -1
    cdef long long _code(self, object name) except? -2
    cdef int _log_on_channel(self, long long kind, Channel channel, long long mark, long long route, long long seen_ns, long long seen_number) except? -1
    cdef int _write(self, long long kind, long long connection, long long channel, long long mark, long long route, long long seen_ns, long long seen_number, object seen_in) except? -1
