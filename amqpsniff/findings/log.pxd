# Written by `python -m tests.house.declarations`.
from amqpsniff.findings.finding cimport Finding

cdef class FindingLog:
    cdef public object recorded
    cdef object _most
    cdef dict _findings
    cdef dict _places
    cdef dict _unplaced
    cdef dict _news
    cpdef object add(self, Finding finding)
    cpdef bint has_room(self, str code) except? -1
    cpdef bint count_more(self, str code, str connection_id, str capture, object channel, long long count, object last, object variant=*) except? -1
    cpdef Finding find(self, str code, str connection_id, object channel=*, object variant=*)
    cpdef object count(self, Finding logged, long long count, object last)
