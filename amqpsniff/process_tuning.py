"""Garbage collection and memory allocation of a process that runs only this package."""

import atexit
import contextlib
import functools
import gc
import sys
from collections.abc import Iterator

ARROW_MEMORY = ("ARROW_DEFAULT_MEMORY_POOL", "system")
"""The allocator of Arrow, unless the environment names one. Its own allocator keeps what a row
group of Parquet took: `export` of messages that never settle took 70 MB more, at the same speed."""

OBJECTS_BETWEEN_COLLECTIONS = 1_000_000
"""Objects made and not freed before Python looks for cycles, 700 by default: the engine makes few,
and the tables too. `report` of 76,440 short connections takes 7.0 s with 700 and 4.8 s with this,
and holds as much memory with each.
"""

COUNT_WHAT_IS_LEFT = ("duckdb",)
"""Modules that warn of memory that was not freed at the end of the process."""

LARGE_PAGES_BYTES = 64 * 1024 * 1024
"""Memory that is asked for in large pages. What `export` of messages takes does not fit into half
of it, and more is not used."""

LEFT_OUT = ("numpy", "pandas")
"""Packages that Arrow imports where there are any and that no command needs: the start of `report`
takes 0.37 processor seconds without them and 0.62 with them."""

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3
"""Numbers of three parameters in `malloc.h` of GNU's C library."""

_FIRST_TOP_PAD = 128 * 1024
_LAST_MMAP_THRESHOLD = 32 * 1024 * 1024
"""The initial value in the C library, and the largest that it sets by itself."""

_LARGE_PAGE = 2 * 1024 * 1024
_MADV_HUGEPAGE = 14
"""From `sys/mman.h` of Linux."""


def raise_gc_threshold() -> None:
    """Look for garbage seldom; not for a library to do in the process of others."""
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)


def leave_out() -> None:
    """Make Arrow do without `LEFT_OUT`, unless it is loaded; not for a library."""
    if "pyarrow" not in sys.modules:
        sys.meta_path.insert(0, _Without())


class _Without:
    """A finder of modules for which `LEFT_OUT` is not installed."""

    def find_spec(self, name: str, *_: object) -> None:
        """Raises ModuleNotFoundError for excluded modules; returns None for all others."""
        if name in LEFT_OUT:
            raise ModuleNotFoundError(f"no command needs {name}", name=name)


def skip_exit_gc() -> None:
    """Skip garbage collection at interpreter exit, where Python runs it several times.

    Objects outside of cycles are still freed, and files closed. A short command takes 25 ms less of
    160. A library must not do this in the process of its caller.
    """
    atexit.unregister(_leave_all)  # once, however often this is called
    atexit.register(_leave_all)


def _leave_all() -> None:
    if not any(module in sys.modules for module in COUNT_WHAT_IS_LEFT):
        gc.freeze()


@contextlib.contextmanager
def gc_paused() -> Iterator[None]:
    """Pause garbage collection: for code that makes millions of lasting values and no cycles.

    The driver's work after the tasks of 500 MB with findings: 1.1 processor seconds, not 1.5.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def release_memory() -> None:
    """Collect a finished engine and return its memory to the system.

    The parts of an engine refer to each other, so only garbage collection frees it; and the C
    library keeps freed memory. Between the two captures of `diff` this is 80 MB.
    """
    gc.collect()
    _call("malloc_trim", 0)


@functools.cache
def take_large_pages() -> None:
    """Have Linux give the C library the next memory that it wants in pages of 2 MB, once.

    A process pays for the first touch of every page, which as a rule is one of 4 kB: `export` of
    260 MB to Parquet does it 9,000 times instead of 25,000, takes 4 % less and holds 4 MB more.
    Nothing happens where the system or the C library has no such thing. Not for a library to do in
    the process of others.
    """
    if not sys.platform.startswith("linux"):
        return
    import ctypes

    with contextlib.suppress(OSError, TypeError, AttributeError):
        libc = ctypes.CDLL(None)
        libc.sbrk.restype = libc.malloc.restype = ctypes.c_void_p
        libc.free.argtypes = [ctypes.c_void_p]
        libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        libc.mallopt(_MMAP_THRESHOLD, _LAST_MMAP_THRESHOLD)
        libc.mallopt(_TRIM_THRESHOLD, 2 * LARGE_PAGES_BYTES)  # not to lose them while unused
        libc.mallopt(_TOP_PAD, LARGE_PAGES_BYTES)
        end = libc.sbrk(0)
        libc.free(libc.malloc(_LARGE_PAGE))  # more than the heap has left: it grows
        libc.mallopt(_TOP_PAD, _FIRST_TOP_PAD)
        first = -(-end // _LARGE_PAGE) * _LARGE_PAGE
        libc.madvise(first, max(libc.sbrk(0) - first, 0), _MADV_HUGEPAGE)


def _call(name: str, *given: int) -> None:
    """Call a function of the C library, where it has one of this name: GNU's has."""
    import ctypes

    with contextlib.suppress(OSError, TypeError, AttributeError):
        getattr(ctypes.CDLL(None), name)(*given)
