cdef class FindingLog:
    cdef public object recorded
    cdef object _most
    cdef dict _findings, _unplaced, _news, _places
    cpdef count(self, object known, object count, object last)
    cpdef bint has_room(self, object code) except -1

cdef object _count(object known, object count, object last)
