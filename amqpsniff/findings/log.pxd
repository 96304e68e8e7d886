from amqpsniff.findings.finding cimport Finding

cdef class FindingLog:
    cdef public object recorded
    cdef object _most
    cdef dict _findings, _unplaced, _news, _places
    cpdef add(self, Finding finding)
    cpdef bint again(
        self, str code, object connection_id, object capture, object channel, long long count,
        object last, object variant=*
    ) except -1
    cpdef Finding find(
        self, str code, object connection_id, object channel=*, object variant=*
    )
    cpdef count(self, Finding known, long long count, object last)
    cpdef bint has_room(self, str code) except -1

cdef _count(Finding known, long long count, object last)
cdef _fold(Finding finding, Finding known)
