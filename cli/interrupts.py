"""Signals that end the program: Ctrl-C, and what `kill`, `timeout` and a container's end send.

All of them raise KeyboardInterrupt, so that whatever is under way tidies up: half a file goes away,
processes that were started end, a terminal gets its cursor back. A process that is the first of its
container would not be ended by the others at all, had they no handler.

Python raises KeyboardInterrupt wherever it is, and drops it where nothing can be raised: in what an
import, an `isinstance` or a destructor calls back. Of the moments of a start that is one in ninety.
So a signal is remembered, for a run that nothing but another one would end, and one that Python
dropped comes again a moment later.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator

TYPE_CHECKING = False  # as in `typing`, while whose import Ctrl-C would not be remembered
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, NoReturn

    from amqpsniff.live.event_loop import Steps

    Handler = Callable[[int, Any], object]

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_USUAL = (signal.default_int_handler, signal.SIG_DFL)
"""Handlers that Python sets itself; any other, such as that of nohup, stays."""

AGAIN_SECONDS = 0.05
"""Time after which a dropped signal is sent again: where something can be raised, mostly."""

_signals: list[int] = []


@contextlib.contextmanager
def handled(handlers: Mapping[int, Handler]) -> Iterator[None]:
    """A context in which signals have these handlers, by number."""
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def remembered() -> Iterator[None]:
    """Signals that end a run raise KeyboardInterrupt, and `check` raises it again."""
    _signals.clear()
    # only the main thread gets signals
    main = threading.current_thread() is threading.main_thread()
    ours = [number for number in ENDING if main and signal.getsignal(number) in _USUAL]
    with handled(dict.fromkeys(ours, _record)):
        hook, sys.unraisablehook = sys.unraisablehook, _dropped
        try:
            yield
        finally:
            sys.unraisablehook = hook


@contextlib.contextmanager
def stopping(steps: Steps) -> Iterator[None]:
    """The first signal ends a live run in good order, the second at once (KeyboardInterrupt)."""
    check()

    def stop(*_: object) -> None:
        if steps.stopped:
            raise KeyboardInterrupt
        steps.stop()

    # a signal that is ignored, as under nohup, stays ignored
    ending = [number for number in ENDING if signal.getsignal(number) != signal.SIG_IGN]
    with handled(dict.fromkeys(ending, stop)):
        yield


def heard() -> bool:
    """True if there was a signal."""
    return bool(_signals)


def check() -> None:
    """Raise KeyboardInterrupt when there was a signal."""
    if heard():
        raise KeyboardInterrupt


def end() -> int:
    """End as the signal does by itself, which tells others what it was; or the exit code.

    That is for Ctrl-C, and where such a signal ends nothing.
    """
    number = _signals[0] if _signals else signal.SIGINT
    if number != signal.SIGINT:
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    return 128 + number


def _dropped(error: sys.UnraisableHookArgs) -> None:
    """Handle an exception that cannot be raised; that of a signal is sent again, silently."""
    if not heard() or error.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(error)
        return
    timer = threading.Timer(AGAIN_SECONDS, _send, _signals[-1:])
    timer.daemon = True
    timer.start()


def _send(number: int) -> None:
    if signal.getsignal(number) is _record:  # else the run is over
        os.kill(os.getpid(), number)


def _record(number: int, _: object) -> NoReturn:
    _signals.append(number)
    raise KeyboardInterrupt
