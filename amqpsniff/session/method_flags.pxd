# Written by `python -m tests.house.declarations`.
cdef extern from *:
    const int OTHER "0"
    const int PUBLISH "1"
    const int DELIVER "2"
    const int GET_OK "3"
    const int RETURN "4"
    const int ACK "5"
    const int NACK "6"
    const int REJECT "7"
    const int CHANNEL_OPEN "19"
    const int CHANNEL_CLOSE "25"
    const int CHANNEL_CLOSE_OK "26"
