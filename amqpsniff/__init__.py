"""Wire-level analysis of AMQP traffic: captures in, rows of frames and messages out.

    import amqpsniff

    capture = amqpsniff.open("traffic.pcap")
    for message in capture.messages():
        print(message.timestamp, message.exchange, message.routing_key, message.body_size)

`open` reads captures (`Capture`), `watch` gives rows of traffic as it happens, `Engine` decodes
packets or bytes that one has already. All give rows as Arrow batches or as objects (`Frame`,
`Message`, `Finding`).
"""

from __future__ import annotations

from amqpsniff.cimports import install as _install

__version__ = "0.2.0"

_install()

TYPE_CHECKING = False  # as in `typing`, whose import takes as long as all else here
if TYPE_CHECKING:
    from typing import Any

    from amqpsniff.engine import Engine
    from amqpsniff.errors import (
        AmqpsniffError,
        CaptureError,
        FilterError,
        NotACapture,
        OutputError,
        SpecError,
        TsharkError,
        UsageError,
    )
    from amqpsniff.live.stream import watch
    from amqpsniff.objects import Finding, Frame, Message
    from amqpsniff.reader import Capture, open

# Where the public names live: they are imported when they are first used, so that the program's
# start does not wait for Arrow.
_HOMES = {
    "AmqpsniffError": "errors",
    "Capture": "reader",
    "CaptureError": "errors",
    "Engine": "engine",
    "FilterError": "errors",
    "Finding": "objects",
    "Frame": "objects",
    "Message": "objects",
    "NotACapture": "errors",
    "OutputError": "errors",
    "SpecError": "errors",
    "TsharkError": "errors",
    "UsageError": "errors",
    "open": "reader",
    "watch": "live.stream",
}

__all__ = [
    "AmqpsniffError",
    "Capture",
    "CaptureError",
    "Engine",
    "FilterError",
    "Finding",
    "Frame",
    "Message",
    "NotACapture",
    "OutputError",
    "SpecError",
    "TsharkError",
    "UsageError",
    "__version__",
    "open",
    "watch",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
