cdef class MethodFacts:
    cdef long long starts[6]
    cdef long long lengths[6]
    cdef public int method, class_id, method_id, reply_code, flags
    cdef public int about_class, about_method, version_major, version_minor
    cdef public long long delivery_tag, frame_max
    cdef public bytes safe_text
    cdef public bint written
    cdef int clear(self) except? -1
    cdef int copy(self, MethodFacts facts) except? -1
