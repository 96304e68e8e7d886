"""Facts of surveys and results of tasks as bytes of a file; 64-bit integers as Arrow arrays."""

from __future__ import annotations

import hashlib
import marshal
import struct
from array import array
from collections.abc import Mapping
from dataclasses import fields
from operator import attrgetter
from typing import Any

from amqpsniff.findings import Finding

_HEAD = struct.Struct("<16sQ")
"""The header of packed bytes: a digest of the rest, and its unpacked length."""

_VALUES = attrgetter(*(field.name for field in fields(Finding)))


def pack(facts: Mapping[str, Any], *findings: str) -> bytes:
    """Facts by name as bytes; those named by `findings` are lists of findings, arrays become bytes,
    and all others are plain.
    """
    plain = {**facts} | {name: [*map(_VALUES, facts[name])] for name in findings}
    octets = marshal.dumps(plain)  # half the time of pickle for half a million values
    packed: bytes = _codec().compress(octets, asbytes=True)
    return _HEAD.pack(_digest(packed), len(octets)) + packed


def unpack(octets: bytes | None, *findings: str) -> dict[str, Any]:
    """The opposite of `pack`; raises ValueError for other bytes, or damaged ones."""
    head, packed = (octets or b"")[: _HEAD.size], (octets or b"")[_HEAD.size :]
    if len(head) < _HEAD.size or head != _HEAD.pack(_digest(packed), _HEAD.unpack(head)[1]):
        raise ValueError("not what an archive has written down, or not all of it")
    octets = _codec().decompress(packed, _HEAD.unpack(head)[1])
    facts: dict[str, Any] = marshal.loads(octets)  # noqa: S302 (what a worker of ours has made)
    return facts | {name: [Finding(*row) for row in facts[name]] for name in findings}


def _codec() -> Any:
    from pyarrow import Codec

    return Codec("zstd")


def _digest(octets: bytes) -> bytes:
    return hashlib.blake2b(octets, digest_size=16).digest()


def integers(values: Any, count: int | None = None) -> Any:
    """64-bit integers, all or the first of an array or a buffer, as Arrow has them: not copied."""
    import pyarrow as pa

    length = len(values) if count is None else count
    return pa.Array.from_buffers(pa.int64(), length, [None, pa.py_buffer(values)])


def numbers(column: Any) -> array[int]:
    """The opposite of `integers`, of an array or a column of a table."""
    values = array("q")
    for chunk in getattr(column, "chunks", (column,)):
        octets = memoryview(chunk.buffers()[1])
        values.frombytes(octets[8 * chunk.offset : 8 * (chunk.offset + len(chunk))])
    return values
