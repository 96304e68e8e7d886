from amqpsniff.decode.octets cimport OctetReader
from amqpsniff.decode.rows cimport MessageRows, Vocabularies
from amqpsniff.session.event cimport Said
from amqpsniff.session.settling cimport Settler
from amqpsniff.session.state cimport Consumer
from amqpsniff.session.watcher cimport Watcher

cdef class Attacher(Watcher):
    cdef public object limits
    cdef public Settler settler
    cdef public OctetReader reader
    cdef public list opened
    cdef public long long consumers_known, facts_octets
    cdef dict said
    cdef long long most_fact, most_facts
    cdef Vocabularies batch_words
    cdef long long batch
    cdef public long long first_opened
    cdef public dict late
    cpdef Said remember(self, str name, bytes octets, bint whole)
    cdef int forget(self, Said said) except? -1
    cdef int open(self, object known) except? -1
    cdef int meet(self, MessageRows messages, long long row, list peers) except? -1
    cdef int attach(self, MessageRows messages, long long row) except? -1
    cdef int _name_queue(self, MessageRows messages, long long row, Consumer consumer) except? -1
    cdef long long batch_of(self, Vocabularies words) except? -1
    cdef int _put_late(self) except? -1
