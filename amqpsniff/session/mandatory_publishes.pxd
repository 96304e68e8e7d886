from amqpsniff.session.entities cimport PendingMessage

cdef long long add_returnable(PendingMessage entry, object unanswered) except? -1
cdef int index_by_mark(PendingMessage entry) except? -1
cdef int _index_by_mark(PendingMessage entry) except? -1
cdef long long discard_returnable(PendingMessage entry) except? -1
cdef list find_returned(PendingMessage returned)
cdef bint _may_be(PendingMessage entry, PendingMessage returned) except? -1
cdef list _open(object listed)
cdef list all_returnable(dict lists)
cdef long long _append(dict lists, object key, PendingMessage entry) except? -1
cdef long long _trim(dict lists, object key) except? -1
cdef long long _drop_answered(object entries) except? -1
