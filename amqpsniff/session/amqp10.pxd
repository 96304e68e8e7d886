cimport cython
from amqpsniff.columns cimport Vocabulary
from amqpsniff.decode.amqp10.performatives cimport Performative
from amqpsniff.decode.rows cimport FrameRows, MessageRows, Vocabularies
from amqpsniff.session.entities cimport Channel, Ledger, PendingMessage, Session
from amqpsniff.session.links cimport Address, Link, Windows
from amqpsniff.session.method_frame cimport HandshakeArguments
from amqpsniff.session.rules.emitter cimport Emitter
from amqpsniff.session.settling cimport Settler
from amqpsniff.session.tracker cimport Tracker

@cython.final
cdef class DeliveryState:
    cdef public int state, outcome, side, losses
    cdef public long long number, ts_ns
    cdef public bint undeliverable, presettled, settled
    cdef public str condition, description, transaction, settled_by, address
    cdef int clear(self) except? -1

cdef DeliveryState delivery_state_of(PendingMessage entry)

cdef Link link_of(PendingMessage entry)

cdef class Transferred:
    cdef readonly PendingMessage entry
    cdef readonly Link link
    cdef readonly long long delivery_id
    cdef readonly int state, outcome
    cdef readonly str condition, description, address

cdef Transferred transferred_of(PendingMessage entry, DeliveryState said)

cdef class Amqp10Session:
    cdef public Channel channel
    cdef public tuple handles, unsettled
    cdef public dict links
    cdef public int ended, client_channel, server_channel
    cdef long long last_key
    cdef Link last
    cdef public long long in_vain
    cdef public Windows windows
    cdef long long settled_to[2]
    cdef int note_settled(self, int sender, long long last) except? -1
    cdef bint was_settled(self, int sender, long long delivery) except? -1

cdef class Amqp10Connection:
    cdef public tuple channels
    cdef public list opens
    cdef public dict init
    cdef public long long client_limit, server_limit, opened_number, opened_ns
    cdef public int closed
    cdef int last_key
    cdef Amqp10Session last

@cython.final
cdef class Amqp10Tracker:
    cdef Tracker tracker
    cdef Emitter emitter
    cdef object census
    cdef Settler settler
    cdef public long long links, link_bytes
    cdef dict awaited, arguments, handshakes, addresses
    cdef PendingMessage latest
    cdef DeliveryState scratch
    cdef long long latest_ordinal
    cdef Vocabularies words
    cdef long long batch
    cdef public bint accounts, details, peers
    cdef dict _arguments(self, int code, bytes octets)
    cdef tuple _handshake(self, Amqp10Connection state)
    cdef int _use_words(self, Vocabularies words) except? -1
    cdef int _find_code(self, Link link, Vocabularies words) except? -1
    cdef int _find_codes(self, Address address, Vocabularies words) except? -1
    cdef int _code(self, Vocabulary vocabulary, str text) except? -2
    cdef Address _address(self, str text, bint sends)
    cdef int follow(self, Session session, FrameRows frames, long long row, int side, Performative found) except? -1
    cpdef int attach(self, MessageRows messages, long long row) except? -1
    cdef _learn(self, Session session, Amqp10Connection state, FrameRows frames, long long row, int side, int code)
    cdef _tell_connection(self, str event, Session session, FrameRows frames, long long row, dict facts)
    cdef _tell_left(self, Amqp10Session one)
    cdef int _tell_message(self, PendingMessage entry, int side, MessageRows messages, long long row) except? -1
    cdef _close(self, Session session, FrameRows frames, long long row, int side, Performative found)
    cdef _begin(self, Session session, Amqp10Connection state, FrameRows frames, long long row, int side, Performative found)
    cdef _use(self, Amqp10Session one, int side, int number)
    cdef Amqp10Session _new(self, Session session, FrameRows frames, long long row, int side, bint known)
    cdef Amqp10Session _proved(self, Session session, Amqp10Connection state, FrameRows frames, long long row, int side)
    cdef _end(self, Session session, Amqp10Connection state, Amqp10Session one, FrameRows frames, long long row, int side, Performative found)
    cdef _finish(self, Channel channel)
    cdef end(self, Session session)
    cdef _on_link(self, Amqp10Session one, FrameRows frames, long long row, int side, int code, Performative found)
    cdef _block(self, Amqp10Session one, FrameRows frames, long long row)
    cdef Link _attach(self, Amqp10Session one, FrameRows frames, long long row, int side, Performative found)
    cdef Link _new_link(self, Amqp10Session one, name, int sender, key)
    cdef _put_handle(self, Amqp10Session one, Link link, int side, long long handle)
    cdef Link _proved_link(self, Amqp10Session one, int side, Performative found)
    cdef _detach(self, Amqp10Session one, Link link, FrameRows frames, long long row, int side, Performative found)
    cdef _count_consumer(self, Amqp10Session one, Link link, change)
    cdef _end_link(self, Amqp10Session one, Link link)
    cdef _tell(self, str event, Amqp10Session one, Link link, FrameRows frames, long long row, int side, Performative found=*)
    cdef _transfer(self, Amqp10Session one, Link link, FrameRows frames, long long row, int side, long long number, long long ts_ns, Performative found)
    cdef _await(self, Amqp10Session one, PendingMessage entry, int side)
    cdef _forget(self, Amqp10Session one, PendingMessage entry, int side, long long ts_ns)
    cdef int _let_go(self, Amqp10Session one, PendingMessage entry, int side, long long ts_ns) except? -1
    cdef _leave(self, PendingMessage entry, bint counted=*)
    cdef bint _is_sure(self, Channel channel, int losses)
    cdef _disposition(self, Amqp10Session one, FrameRows frames, long long row, int side, Performative found)
    cdef _dispose(self, Amqp10Session one, Ledger waiting, long long number, FrameRows frames, long long row, int side, Performative found)
    cdef _note(self, PendingMessage entry, Performative found, FrameRows frames, long long row)
    cdef int _say(self, Channel channel, DeliveryState said, Performative found, FrameRows frames, long long row) except? -1
    cdef _settle(self, Amqp10Session one, PendingMessage entry, FrameRows frames, long long row, int side, Performative found, bint sure)
    cdef int _decide(self, PendingMessage entry, DeliveryState said) except? -1
    cdef int _count_outcome(self, Link link, int outcome) except? -1
    cdef int _write(self, PendingMessage entry, DeliveryState said) except? -1
