# Written by `python -m tests.house.declarations`.
from amqpsniff.session.entities cimport PendingMessage

cdef long long add_returnable(PendingMessage entry, object unanswered) except? -1
cdef int index_by_mark(PendingMessage entry) except? -1
cdef long long discard_returnable(PendingMessage entry) except? -1
cdef list find_returned(PendingMessage returned)
cdef list all_returnable(dict lists)
