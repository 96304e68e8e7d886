# Written by `python -m tests.house.declarations`.
cimport cython
from amqpsniff.columns cimport Vocabulary
from amqpsniff.decode.amqp10.performatives cimport Performative
from amqpsniff.decode.rows cimport MessageRows, Vocabularies
from amqpsniff.session.amqp10_links cimport Address, Link, Windows
from amqpsniff.session.entities cimport Channel, Ledger, PendingMessage, Session
from amqpsniff.session.rules.emitter cimport Emitter
from amqpsniff.session.settling cimport Settler
from amqpsniff.session.tracker cimport Tracker

@cython.final
cdef class DeliveryState:
    cdef public int state
    cdef public int outcome
    cdef public int side
    cdef public long long number
    cdef public long long ts_ns
    cdef public int losses
    cdef public bint undeliverable
    cdef public bint presettled
    cdef public bint settled
    cdef public str condition
    cdef public str description
    cdef public str transaction
    cdef public str settled_by
    cdef public str address
    cdef int clear(self) except? -1

cdef class Transferred:
    cdef public long long delivery_id
    cdef public int state
    cdef public int outcome
    cdef public PendingMessage entry
    cdef public Link link
    cdef public str condition
    cdef public str description
    cdef public str address
cdef DeliveryState delivery_state_of(PendingMessage entry)
cdef Link link_of(PendingMessage entry)
cdef Transferred transferred_of(PendingMessage entry, DeliveryState delivery_state)

cdef class Amqp10Session:
    cdef public long long settled_to[2]
    cdef public int ended
    cdef public long long in_vain
    cdef public int client_channel
    cdef public int server_channel
    cdef public long long last_key
    cdef public Channel channel
    cdef public Link last
    cdef public tuple handles
    cdef public tuple unsettled
    cdef public dict links
    cdef public Windows windows
    cdef int note_settled(self, int sender, long long last) except? -1
    cdef bint was_settled(self, int sender, long long delivery) except? -1

cdef class Amqp10Connection:
    cdef public long long client_limit
    cdef public long long server_limit
    cdef public int last_key
    cdef public long long opened_number
    cdef public long long opened_ns
    cdef public int closed
    cdef public tuple channels
    cdef public list opens
    cdef public dict init
    cdef public dict requests
    cdef public Amqp10Session last

@cython.final
cdef class Amqp10Tracker:
    cdef public Tracker tracker
    cdef public object census
    cdef public long long links
    cdef public long long link_bytes
    cdef public long long latest_ordinal
    cdef public long long batch
    cdef public Emitter emitter
    cdef public bint accounts
    cdef public bint details
    cdef public bint peers
    cdef public long long row
    cdef public int side
    cdef public long long number
    cdef public long long ts_ns
    cdef public Performative found
    cdef public Settler settler
    cdef public dict awaited
    cdef public dict arguments
    cdef public dict handshakes
    cdef public dict addresses
    cdef public PendingMessage latest
    cdef public DeliveryState scratch
    cdef public Vocabularies words
    cdef int follow(self, Session session, long long row, int side, Performative found) except? -1
    cdef object _learn(self, Session session, Amqp10Connection state, int code)
    cdef dict _arguments(self, int code, bytes octets)
    cdef tuple _handshake(self, Amqp10Connection state)
    cdef object _tell_connection(self, str event, Session session, dict facts)
    cdef object _close(self, Session session)
    cdef object _begin(self, Session session, Amqp10Connection state)
    cdef object _use(self, Amqp10Session amqp10, int number)
    cdef Amqp10Session _new(self, Session session, bint known)
    cdef Amqp10Session _proved(self, Session session, Amqp10Connection state)
    cdef object _end(self, Session session, Amqp10Connection state, Amqp10Session amqp10)
    cdef object _finish(self, Channel channel)
    cdef object _tell_left(self, Amqp10Session amqp10)
    cdef object end(self, Session session)
    cdef object _on_link(self, Amqp10Session amqp10, int code)
    cdef object _manage(self, Amqp10Session amqp10, Link link)
    cdef object _block(self, Amqp10Session amqp10)
    cdef Link _attach(self, Amqp10Session amqp10)
    cdef object _count_consumer(self, Amqp10Session amqp10, Link link, object change)
    cdef Link _new_link(self, Amqp10Session amqp10, object name, int sender, object key)
    cdef object _put_handle(self, Amqp10Session amqp10, Link link, long long handle)
    cdef Link _proved_link(self, Amqp10Session amqp10)
    cdef object _detach(self, Amqp10Session amqp10, Link link)
    cdef object _end_link(self, Amqp10Session amqp10, Link link)
    cdef object _tell(self, str event, Amqp10Session amqp10, Link link)
    cdef int _use_words(self, Vocabularies words) except? -1
    cdef int _find_code(self, Link link, Vocabularies words) except? -1
    cdef int _find_codes(self, Address address, Vocabularies words) except? -1
    cdef int _code(self, Vocabulary vocabulary, str text) except? -2
    cdef object _transfer(self, Amqp10Session amqp10, Link link)
    cdef object _await(self, Amqp10Session amqp10, PendingMessage entry)
    cdef object _forget(self, Amqp10Session amqp10, PendingMessage entry)
    cdef int _let_go(self, Amqp10Session amqp10, PendingMessage entry, int side, long long ts_ns) except? -1
    cdef object _leave(self, PendingMessage entry, bint counted=*)
    cdef bint _is_sure(self, Channel channel, int losses) except? -1
    cdef object _disposition(self, Amqp10Session amqp10)
    cdef object _dispose(self, Amqp10Session amqp10, Ledger waiting, long long number)
    cdef object _note(self, PendingMessage entry)
    cdef int _keep_outcome(self, PendingMessage entry, DeliveryState delivery_state) except? -1
    cdef object _settle(self, Amqp10Session amqp10, PendingMessage entry, bint sure)
    cdef int _decide(self, PendingMessage entry, DeliveryState delivery_state) except? -1
    cdef int _count_outcome(self, Link link, int outcome) except? -1
    cpdef int attach(self, MessageRows messages, long long row) except? -1
    cdef Address _address(self, str text, bint sends)
    cdef int _tell_message(self, PendingMessage entry, int side, MessageRows messages, long long row) except? -1
    cdef int _write(self, PendingMessage entry, DeliveryState delivery_state) except? -1
