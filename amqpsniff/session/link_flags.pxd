# Written by `python -m tests.house.declarations`.
cdef extern from *:
    const int PUBLISH "1"
    const int IDENTIFIED "2"
    const int AGAIN "4"
    const int DIED "8"
    const int OWN_QUEUE "16"
    const int ASKS "32"
    const int DIRECT_REPLY "64"
    const int ROUTED "128"
    const int DIRECT_KEY "256"
    const int ADDRESSED "512"
    const int CLOSED "1024"
    const int OVER "2048"
