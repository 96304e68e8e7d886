cdef class FindingLog:
    cdef public object recorded
    cdef object _most, _places
    cdef dict _findings, _unplaced, _news
