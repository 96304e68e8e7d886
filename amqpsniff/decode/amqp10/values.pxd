# Written by `python -m tests.house.declarations`.
from amqpsniff.decode.values cimport TableCache, ValueReader

cdef class TypedReader(ValueReader):
    cdef public long long items
    cdef public long long limit
    cdef public long long count
    cdef public int code
    cdef long long skip(self, long long at, long long end, int depth=*) except? -1
    cdef long long _after(self, int code, long long at, long long end) except? -1
    cdef long long wanted(self, long long at, long long end) except? -1
    cdef long long descriptor(self, long long at, long long end) except? -1
    cdef bint open_list(self, long long at, long long end) except? -1
    cpdef bint put_value(self, long long at, long long end, int depth=*) except? -1
    cdef int _described(self, long long at, long long after, int depth) except? -1
    cdef int _composite(self, int code, long long at, long long after, int depth) except? -1
    cdef bint _put_fields(self, int code, long long at, long long limit, long long count, int depth) except? -1
    cdef int _bare(self, int code, long long at, long long after, int depth) except? -1
    cdef int _list(self, long long at, long long limit, long long count, int depth) except? -1
    cdef int _map(self, long long at, long long limit, long long count, int depth) except? -1
    cdef bint _has_texts_for_keys(self, long long at, long long limit, long long count) except? -1
    cdef int _items(self, long long at, long long after, int depth) except? -1
    cdef int _element(self, long long begin, int kind, int code, long long at, long long end, int depth) except? -1
    cdef int _fixed(self, int code, long long at) except? -1
    cdef long long of_unsigned(self, int code, long long at) except? -1
    cdef long long of_signed(self, int code, long long at) except? -1
    cdef long long number(self, long long at, long long end) except? -1
    cdef int truth(self, long long at, long long end) except? -1
    cdef long long text_at(self, long long at, long long end) except? -1
    cdef long long moment_ms(self, long long at, long long end) except? -1
    cdef int _moment(self, long long at) except? -1
    cdef int _char(self, long long at) except? -1

cdef class ValueCache(TableCache):
    pass
