# Written by `python -m tests.house.constants`.
cdef extern from *:
    const long long MILLISECOND "1000000LL"
    const long long SECOND "1000000000LL"
    const int MIN_JUMP "2048"
    const long long MIN_DELAY_NS "35000000LL"
    const long long MAX_DELAY_NS "50000000LL"
    const long long PROMPT_NS "1000000LL"
    const int HELD_SEGMENT_BYTES "256"
    const long long NO_TIME "(-9223372036854775807LL - 1)"
    const long long NEVER "9223372036854775807LL"
    const long long MIN_RESENT_NS "3000000LL"
