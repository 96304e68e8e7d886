from amqpsniff.session.calls cimport Call

cdef class Publish:
    cdef public object key
    cdef public long long packet_number, ts_ns, place, deliveries, connection_id
    cdef public Publish later, younger
    cdef public Call asks, answers
    cdef public bint identified

cdef class Line:
    cdef public Publish first, last, reached
    cdef public unsigned long long queue
    cdef public dict more
    cdef Publish position(self, unsigned long long queue)

cdef class Lines:
    cdef public object memory
    cdef public long long most, age_ns, count, positions, candidates
    cdef public bint advanced
    cdef public dict lines, hits
    cdef public Publish oldest, youngest
    cdef Line get(self, object hash_)
    cdef int remember(self, Publish publish) except? -1
    cdef bint _is_old(self, Publish publish, long long ts_ns) except? -1
    cdef int _forget(self, Line kept) except? -1
    cdef Publish meant(self, Line line, unsigned long long queue, bint again)
    cdef Publish _again(self, Line line, unsigned long long queue, Publish reached)
    cdef int _put(self, Line line, unsigned long long queue, Publish publish) except? -1
    cdef int _hit(self, str name) except? -1
