"""How often Python looks for garbage in a process that is this package's alone, and how memory goes
back to the system."""

import atexit
import contextlib
import gc
import sys
from collections.abc import Iterator

ARROW_MEMORY = ("ARROW_DEFAULT_MEMORY_POOL", "system")
"""Where Arrow takes memory from, unless the environment says it. Its own allocator keeps what a row
group of Parquet took: `export` of messages that never settle took 70 MB more, at the same speed."""

OBJECTS_BETWEEN_COLLECTIONS = 80_000
"""Objects made and not freed before Python looks for cycles, 700 by default: the engine makes none,
and the tables few. `summary` of 17,640 short connections takes 0.66 s instead of 0.69 s. What a
command imports are up to 60,000, among which 20,000 would look two or three times, for 7 ms."""

COUNT_WHAT_IS_LEFT = ("duckdb",)
"""Modules that complain of what was not freed when the process ends."""

LARGE_OCTETS = 4 * 1024 * 1024
"""Size from which memory is given back at once. With 1 MiB ordinary captures take 2 % longer."""

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Numbers of two parameters in `malloc.h` of GNU's C library."""


def collect_seldom() -> None:
    """Look for garbage seldom; not for a library to do in the process of others."""
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)


def end_soon() -> None:
    """Look for no garbage when the process ends, where Python does so several times.

    What is part of no cycle is freed, and files closed, as ever. A short command takes 25 ms less
    of 160. Not for a library to do in the process of others.
    """
    atexit.unregister(_leave_all)  # once, however often this is called
    atexit.register(_leave_all)


def _leave_all() -> None:
    if not any(module in sys.modules for module in COUNT_WHAT_IS_LEFT):
        gc.freeze()


@contextlib.contextmanager
def none_collected() -> Iterator[None]:
    """Look for no garbage meanwhile: where millions of values are made that stay, and no cycles.

    What the driver does after the tasks of 500 MB with findings: 1.1 processor seconds, not 1.5.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def give_back() -> None:
    """Let an engine that is done go, and give its memory to the system for what comes next.

    Parts of an engine know each other, so it is garbage that Python has to look for; and the C
    library keeps what was freed. Between the two captures of `diff` this is 80 MB.
    """
    gc.collect()
    _call("malloc_trim", 0)


def keep_little() -> None:
    """Have the C library give large pieces of memory to the system as soon as they are free.

    It learns to keep pieces of up to 32 MB by itself, which are seldom of the size that is wanted
    next: `sql` of messages with headers of 1.5 kB takes 15 MB less, in up to a sixth more time,
    of others the same of both. Not for a library to do in the process of others.
    """
    _call("mallopt", _MMAP_THRESHOLD, LARGE_OCTETS)
    _call("mallopt", _TRIM_THRESHOLD, 2 * LARGE_OCTETS)


def _call(name: str, *given: int) -> None:
    """Call a function of the C library, where it has one of this name: GNU's has."""
    import ctypes

    with contextlib.suppress(OSError, TypeError, AttributeError):
        getattr(ctypes.CDLL(None), name)(*given)
