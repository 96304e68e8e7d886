cdef class FindingLog:
    cdef public object recorded
    cdef object _most
    cdef dict _findings, _unplaced, _news, _places
    cpdef bint again(
        self, object code, object connection_id, object capture, object channel, object count,
        object last, object variant=*
    ) except -1
    cpdef object find(self, object code, object connection_id)
    cpdef count(self, object known, object count, object last)
    cpdef bint has_room(self, object code) except -1

cdef object _count(object known, object count, object last)
