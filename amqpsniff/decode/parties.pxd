from amqpsniff.decode.arguments cimport ArgumentDecoder
from amqpsniff.decode.facts cimport MethodFacts
from amqpsniff.decode.state cimport Connection, Half
from amqpsniff.decode.values cimport ValueReader

cdef class Parties:
    cdef public ArgumentDecoder decoder
    cdef public object ports
    cdef public int serial, dialect
    cdef public list connections, peers
    cdef int refresh(self, Connection connection) except? -1
    cdef list names(self)
    cdef int _register(self, Connection connection) except? -1
    cdef int set_client(self, Connection connection, int direction) except? -1
    cdef int weigh(self, facts, ValueReader reader, int dialect, long long at, long long end) except? -1
    cdef int prove_role(self, Half half, ValueReader reader, long long at, long long end) except? -1
    cdef int _learn(self, Half half, MethodFacts facts, ValueReader reader, long long at, long long end) except? -1
    cdef int _vote(self, Connection connection, ValueReader reader, long long at, long long end) except? -1
    cdef int _agree(self, Connection connection, MethodFacts facts) except? -1
