"""Values for methods and field tables, drawn by hypothesis, and what JSON must show of them."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from amqpsniff.spec import Method
from tests import encoder
from tests.encoder import Field

INTEGERS = {
    "int8": (-(2**7), 2**7 - 1),
    "uint8": (0, 2**8 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "uint16": (0, 2**16 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint64": (0, 2**64 - 1),
}
WIDTHS = {"o": 2**8 - 1, "h": 2**16 - 1, "l": 2**32 - 1, "L": 2**64 - 1, "T": 2**64 - 1}
AWKWARD = (
    b"", b"q1", "héllo €😀".encode(), b'"\\\n\x00\x1f\x7f', b"\xff\xfe", b"\xc3", b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80", b"\xce" * 9,
)  # fmt: skip
TIMES = (
    0, 1, 951782400, 1700000000, 1700000000123, 10**12 - 1, 10**12, 253402300799, 253402300800,
    253402300799999, 253402300800000, 2**63, 2**64 - 1,
)  # fmt: skip
MAX_DEPTH = 4


def _edged(least: int, most: int) -> st.SearchStrategy[int]:
    """Integers, the ends often."""
    return st.sampled_from((least, most, 0 if least < 0 else least)) | st.integers(least, most)


def octets(most: int) -> st.SearchStrategy[bytes]:
    """Text and what is none."""
    short = st.sampled_from([text for text in AWKWARD if len(text) <= most])
    return short | st.text(max_size=most // 4).map(str.encode) | st.binary(max_size=most)


def names() -> st.SearchStrategy[bytes]:
    """Names of fields: text."""
    return st.text(st.characters(exclude_categories=["Cs"]), max_size=20).map(str.encode)


def _plain(kind: str) -> st.SearchStrategy[Any]:
    if kind in INTEGERS:
        return _edged(*INTEGERS[kind])
    return {
        "bool": st.booleans(),
        "float": st.floats(width=32),
        "double": st.floats(),
        "decimal": st.tuples(_edged(0, 255), _edged(-(2**31), 2**31 - 1)),
        "shortstr": octets(255),
        "longstr": octets(400),
        "octets": octets(400),
        "timestamp": st.sampled_from(TIMES) | st.integers(0, 2**64 - 1),
        "void": st.none(),
    }[kind]


def fields(reading: str, depth: int = 0) -> st.SearchStrategy[Field]:
    """Field values of every tag that the reading knows."""

    def of_tag(tag: str) -> st.SearchStrategy[Field]:
        kind = encoder.type_of(tag, reading)
        if kind == "array":
            inner: st.SearchStrategy[Any] = st.lists(fields(reading, depth + 1), max_size=3)
        elif kind == "table":
            inner = tables(reading, depth + 1)
        else:
            inner = _plain(kind)
        return inner.map(lambda value: Field(tag, value))

    tags = [
        tag
        for tag in encoder.TAGS[reading]
        if depth < MAX_DEPTH or encoder.type_of(tag, reading) not in ("array", "table")
    ]
    return st.sampled_from(tags).flatmap(of_tag)


def tables(reading: str, depth: int = 0) -> st.SearchStrategy[list[tuple[bytes, Field]]]:
    """Field tables of unlike names."""
    pair = st.tuples(names(), fields(reading, depth))
    return st.lists(pair, max_size=4, unique_by=lambda pair: pair[0])


def values(row: Method, reading: str) -> st.SearchStrategy[dict[str, Any]]:
    """Arguments of a method."""
    by_type = {
        "b": st.booleans(),
        "s": octets(255),
        "S": octets(1000),
        "F": tables(reading),
        "C": st.tuples(st.integers(0, 1), octets(100)),
    } | {letter: _edged(0, most) for letter, most in WIDTHS.items()}
    return st.fixed_dictionaries({each.name: by_type[each.type] for each in row.arguments})


def parsed(text: str) -> Any:
    """JSON with every digit of its numbers."""
    return json.loads(text, parse_float=Decimal)


def same(got: Any, want: Any) -> bool:
    """Whether parsed JSON is the value, of the same type and with the same digits."""
    if isinstance(want, dict):
        return (
            isinstance(got, dict)
            and got.keys() == want.keys()
            and all(same(got[name], value) for name, value in want.items())
        )
    if isinstance(want, list):
        return isinstance(got, list) and len(got) == len(want) and all(map(same, got, want))
    if isinstance(want, float):
        return not isinstance(got, (str, bool)) and float(got) == want
    if isinstance(want, Decimal):
        if isinstance(got, Decimal):
            return got.as_tuple() == want.as_tuple()
        return bool(got == want)
    return type(got) is type(want) and got == want
