from amqpsniff.session.calls cimport Call, Calls
from amqpsniff.session.linkable cimport Linkable
from amqpsniff.session.lines cimport Lines

cdef unsigned long long _on_channel(Linkable one) except? 1

cdef class Linker:
    cdef public object memory
    cdef public Lines lines
    cdef public Calls calls
    cdef public list vhosts
    cdef public bint unknown, any_vhost
    cdef public unsigned long long last_vhost
    cpdef int link(self, Linkable one) except? -1
    cdef int _enter(self, unsigned long long vhost) except? -1
    cdef int _publish(self, Linkable one) except? -1
    cdef int _deliver(self, Linkable one) except? -1
    cdef long long _line(self, unsigned long long h, unsigned long long vhost) except? -2
    cdef int _say_publish(self, Linkable one, long long at, bint again, bint died) except? -1
    cdef Call _ask(self, Linkable one)
    cdef Call _waiting(self, unsigned long long h, unsigned long long vhost, bint delivered)
    cdef Call _reply(self, Linkable one)
    cdef int _bring(self, Linkable one, long long publish) except? -1
    cdef Call _unseen(self, Linkable one)
    cdef int _say_reply(self, Linkable one, Call call) except? -1
