"""Packets in: capture files and streams, read into batches of rows."""

from amqpsniff.capture.open_files import OpenFiles
from amqpsniff.capture.packets import NO_TIME, PacketBatch
from amqpsniff.capture.sources import (
    CaptureFile,
    CaptureSet,
    expand,
    is_regular,
    open_capture,
    read,
)

__all__ = [
    "NO_TIME",
    "CaptureFile",
    "CaptureSet",
    "OpenFiles",
    "PacketBatch",
    "expand",
    "is_regular",
    "open_capture",
    "read",
]
