"""What stands in place of what is taken out.

Filler is a letter that begins no frame and no protocol header, so that nobody takes it for one, and
that is text wherever text is expected.
"""

from __future__ import annotations

_BYTE = b"x"


def filler(octets: int) -> bytes:
    """So many bytes of filler."""
    return _BYTE * octets


def zeros(octets: int) -> bytes:
    """So many digits in place of a number that is text."""
    return b"0" * octets


def fill(octets: bytearray, at: int, end: int) -> int:
    """Put filler to the end of a container that cannot be walked further; gives -1."""
    octets[at:end] = filler(end - at)
    return -1
