from amqpsniff.session.state cimport Entry

cdef long long enter(Entry entry, object unanswered) except? -1
cdef int mark(Entry entry) except? -1
cdef int _mark(Entry entry) except? -1
cdef long long leave(Entry entry) except? -1
cdef list meant(Entry returned)
cdef bint _may_be(Entry entry, Entry returned) except? -1
cdef list _open(object listed)
cdef list every(dict lists)
cdef long long _append(dict lists, object key, Entry entry) except? -1
cdef long long _trim(dict lists, object key) except? -1
cdef long long _drop_answered(object entries) except? -1
