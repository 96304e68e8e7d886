# Written by `python -m tests.house.declarations`.
cdef extern from *:
    const int CLIENT "0"
    const int SERVER "1"
    const int CONFIRMED "0"
    const int REJECTED "1"
    const int RETURNED "2"
    const int UNCONFIRMED "3"
    const int ACKED "4"
    const int REQUEUED "5"
    const int DISCARDED "6"
    const int AUTOMATIC "7"
    const int UNSETTLED "8"
