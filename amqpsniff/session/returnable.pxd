from amqpsniff.session.state cimport Entry

cdef long long append(dict lists, object key, Entry entry) except? -1
cdef long long trim(dict lists, object key) except? -1
cdef object oldest(dict lists, object key)
cdef list every(dict lists)
