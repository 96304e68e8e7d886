from amqpsniff.session.calls cimport Call, Calls
from amqpsniff.session.linkable cimport Linkable
from amqpsniff.session.lines cimport Line, Lines, Publish

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
    cdef Line _line(self, unsigned long long h, unsigned long long vhost)
    cdef int _say_publish(self, Linkable one, Publish publish, bint again, bint died) except? -1
    cdef Call _ask(self, Linkable one)
    cdef Call _waiting(self, unsigned long long h, unsigned long long vhost, bint delivered)
    cdef Call _reply(self, Linkable one)
    cdef int _bring(self, Linkable one, Publish publish) except? -1
    cdef Call _unseen(self, Linkable one)
    cdef int _say_reply(self, Linkable one, Call call) except? -1
