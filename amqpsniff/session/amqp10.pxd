from amqpsniff.columns cimport Vocabulary
from amqpsniff.decode.amqp10.performatives cimport Performative
from amqpsniff.decode.octets cimport ByteReader
from amqpsniff.decode.rows cimport FrameRows, MessageRows, Vocabularies
from amqpsniff.session.entities cimport Channel, PendingMessage, Session
from amqpsniff.session.links cimport Address, Link, Windows
from amqpsniff.session.settling cimport Settler

cdef class Transferred:
    cdef public PendingMessage entry
    cdef public Link link
    cdef public int side, state, outcome
    cdef public long long delivery_id, number, ts_ns
    cdef public bint undeliverable, presettled, settled
    cdef public str condition, transaction, settled_by

cdef Transferred transferred_of(PendingMessage entry, Link link, int side, long long number)

cdef class Amqp10Session:
    cdef public Channel channel
    cdef public tuple handles, unsettled
    cdef public dict links
    cdef public int ended, server_channel
    cdef public long long in_vain
    cdef public Windows windows

cdef class Amqp10Connection:
    cdef public tuple channels
    cdef public list opens
    cdef public dict init
    cdef public long long client_limit, server_limit
    cdef int last_key
    cdef Amqp10Session last

cdef class Amqp10Tracker:
    cdef object tracker
    cdef Settler settler
    cdef public long long links, link_bytes
    cdef dict awaited, arguments, handshakes, addresses
    cdef Transferred latest
    cdef long long latest_ordinal
    cdef Vocabularies words
    cdef long long large, batch
    cdef bint rules_enabled
    cdef ByteReader reader
    cdef dict _arguments(self, int code, bytes octets)
    cdef list _handshake(self, Amqp10Connection state)
    cdef long long _batch_of(self, Vocabularies words) except? -1
    cdef int _code_of(self, Link link, Vocabularies words) except? -2
    cdef int _find_codes(self, Address address, Vocabularies words) except? -1
    cdef int _code(self, Vocabulary vocabulary, str text) except? -2
    cdef Address _address(self, str text, bint sends)
    cpdef int follow(self, Session session, FrameRows frames, long long row, Performative found) except? -1
    cpdef int attach(self, MessageRows messages, long long row) except? -1
    cdef _learn(self, Session session, Amqp10Connection state, FrameRows frames, long long row, int side, int code)
    cdef _tell_connection(self, str event, Session session, FrameRows frames, long long row, dict facts)
    cdef _tell_left(self, Amqp10Session one)
    cdef int _tell_message(self, Transferred transferred, MessageRows messages, long long row) except? -1
    cdef _close(self, Session session, FrameRows frames, long long row, int side, Performative found)
    cdef _begin(self, Session session, Amqp10Connection state, FrameRows frames, long long row, int side, Performative found)
    cdef _use(self, Amqp10Session one, int side, int number)
    cdef Amqp10Session _new(self, Session session, FrameRows frames, long long row, int number, bint known)
    cdef Amqp10Session _proved(self, Session session, Amqp10Connection state, FrameRows frames, long long row, int side, int number)
    cdef _end(self, Session session, Amqp10Connection state, Amqp10Session one, FrameRows frames, long long row, int side, Performative found)
    cdef _finish(self, Channel channel)
    cdef _on_link(self, Session session, Amqp10Session one, FrameRows frames, long long row, int side, int code, Performative found)
    cdef Link _attach(self, Amqp10Session one, FrameRows frames, long long row, int side, Performative found)
    cdef Link _new_link(self, Amqp10Session one, name, int sender, key)
    cdef _put_handle(self, Amqp10Session one, Link link, int side, long long handle)
    cdef Link _proved_link(self, Amqp10Session one, int side, Performative found)
    cdef _detach(self, Amqp10Session one, Link link, FrameRows frames, long long row, int side, Performative found)
    cdef _end_link(self, Amqp10Session one, Link link)
    cdef _tell(self, str event, Amqp10Session one, Link link, FrameRows frames, long long row, int side, Performative found=*)
    cdef _transfer(self, Session session, Amqp10Session one, Link link, FrameRows frames, long long row, int side, Performative found)
    cdef _await(self, Amqp10Session one, Transferred transferred, int side)
    cdef _forget(self, Amqp10Session one, Transferred transferred, long long ts_ns)
    cdef _let_go(self, Amqp10Session one, Transferred transferred, long long ts_ns)
    cdef _leave(self, Transferred transferred, bint counted=*)
    cdef _disposition(self, Amqp10Session one, FrameRows frames, long long row, int side, Performative found)
    cdef _dispose(self, Amqp10Session one, dict waiting, long long number, FrameRows frames, long long row, int side, Performative found)
    cdef _say(self, Transferred transferred, Performative found, FrameRows frames, long long row)
    cdef _settle(self, Amqp10Session one, Transferred transferred, FrameRows frames, long long row, int side)
    cdef _decide(self, Transferred transferred, Channel channel)
    cdef int _count_outcome(self, Link link, int outcome) except? -1
    cdef int _weigh(self, Link link, long long size) except? -1
    cdef _write(self, Transferred transferred)
