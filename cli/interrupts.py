"""Ctrl-C while the program starts.

Python raises KeyboardInterrupt wherever it is, and drops it where nothing can be raised: in what an
import, an `isinstance` or a destructor calls back. Of the moments of a start that is one in ninety.
So Ctrl-C is remembered, for a run that nothing but another one would end.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator

TYPE_CHECKING = False  # as in `typing`, while whose import Ctrl-C would not be remembered
if TYPE_CHECKING:
    from typing import NoReturn

_heard: list[int] = []


@contextlib.contextmanager
def remembered() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt as ever, and `check` raises it again."""
    _heard.clear()
    alone = threading.current_thread() is threading.main_thread()  # no other is told of signals
    if not alone or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, _hear)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def check() -> None:
    """Raise KeyboardInterrupt when there was one."""
    if _heard:
        raise KeyboardInterrupt


def _hear(number: int, _: object) -> NoReturn:
    _heard.append(number)
    raise KeyboardInterrupt
