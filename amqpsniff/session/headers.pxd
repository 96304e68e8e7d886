from amqpsniff.columns cimport Texts

cdef tuple occasions_of(Texts column, long long row)
cdef bint _may_stand_out(Texts column, long long start, long long end) except? -1
