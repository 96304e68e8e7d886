"""The choice of a reader: our own, or tshark if they cannot read the file or on request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from amqpsniff.capture.file import CaptureFile, Opener, is_regular
from amqpsniff.capture.formats import (
    LINK_TYPES,
    head,
    is_wiresharks,
    may_be_wiresharks,
)
from amqpsniff.errors import CaptureError, NotACapture, TsharkError

if TYPE_CHECKING:
    from amqpsniff.capture.tshark_reader import TsharkCapture

AnyCapture: TypeAlias = "CaptureFile | TsharkCapture"

AUTO, OWN, TSHARK = "auto", "own", "tshark"
READERS = (AUTO, OWN, TSHARK)
"""Use of tshark: for files that only it can read, never, or always."""


def opened(name: str, block_bytes: int, reader: str, opener: Opener | None = None) -> AnyCapture:
    """Open a capture with the requested reader.

    With `auto` tshark reads a format that is not read here, and a file whose link types are not,
    where it is installed. It reads no file that an `opener` opens. Raises CaptureError,
    NotACapture.
    """
    if opener is not None:
        return CaptureFile(name, block_bytes=block_bytes, opener=opener)
    if reader == TSHARK:
        reason = "tshark was asked for"
        return _through(name, reason, block_bytes=block_bytes, segments=True)
    try:
        file = CaptureFile(name, block_bytes=block_bytes)
    except NotACapture as error:
        if reader == OWN or not for_tshark(name, is_explicit=True):
            raise
        trouble = _trouble()
        if trouble:
            raise NotACapture(f"{error}; reading it through tshark: {trouble}") from None
        return _through(name, error.what, block_bytes=block_bytes)
    if reader == AUTO and file.regular and file.compression is None:
        return _with_known_links(file, block_bytes)
    return file


def _through(name: str, reason: str, **how: Any) -> TsharkCapture:
    """A capture that tshark reads; its module is imported only here."""
    from amqpsniff.capture.tshark_reader import TsharkCapture

    return TsharkCapture(name, reason, **how)


def _with_known_links(file: CaptureFile, block_bytes: int) -> AnyCapture:
    """The file, or tshark's reading of it if we read none of its link types."""
    kinds = file.first_link_types()
    if not kinds:
        return file
    if LINK_TYPES & set(kinds):
        return _other_pcap(file, block_bytes) or file
    if _trouble():
        return file
    file.close()
    reason = f"its link type is {', '.join(map(str, kinds))}"
    return _through(file.capture, reason, block_bytes=block_bytes, segments=True)


def _other_pcap(file: CaptureFile, block_bytes: int) -> AnyCapture | None:
    """tshark's reading of a file that begins as pcap does and has other records.

    Some kinds of tcpdump added fields to a record without changing the file's magic number: here
    such a file seems to end in its second record.
    """
    if file.format != "pcap" or not file.ends_early() or _trouble():
        return None
    reason = "its records are not laid out as in pcap, though it begins like one"
    try:
        tshark_capture = _through(file.capture, reason, block_bytes=block_bytes)
    except CaptureError:
        return None
    if tshark_capture.packets > file.packets:
        file.close()
        return tshark_capture
    tshark_capture.close()
    return None


def for_tshark(name: str, *, is_explicit: bool) -> bool:
    """True if a file that is not read here may be one for tshark.

    A file named by the user may have any format; files found in a folder must have a known one.
    """
    if not is_regular(name):
        return False
    octets = head(name)
    return may_be_wiresharks(octets) if is_explicit else is_wiresharks(octets) and not _trouble()


def _trouble() -> str:
    """The reason why tshark cannot be used; empty if it can."""
    from amqpsniff.capture.tshark_reader import found_tshark

    try:
        found_tshark()
    except TsharkError as error:
        return str(error)
    return ""
