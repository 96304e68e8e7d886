"""Field tables: what is odd in them is kept, found and bounded."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amqpsniff.decode.values import MAX_TABLE_DEPTH
from amqpsniff.spec import READINGS
from tests import encoder
from tests.decode.feeding import Row
from tests.decode.script import findings, frames, sent
from tests.decode.strategies import parsed
from tests.encoder import Field, longstr, shortstr
from tests.thorough import rounds

WHERE = "arguments of queue.declare"
DECLARE = b"\0\x32\0\x0a\0\0" + shortstr(b"q") + b"\0"


def declared(table: bytes, **options: Any) -> tuple[Row, list[tuple[str, str]]]:
    """The row of a queue.declare with the bytes of a table, and the findings."""
    done = sent(encoder.frame(1, 1, DECLARE + table), **options)
    found = findings(done)
    (row,) = frames(done)
    assert row["method"] == "queue.declare"
    return row, found


def shown(table: bytes, **options: Any) -> tuple[Any, list[tuple[str, str]]]:
    """The table as JSON shows it, and the findings."""
    row, found = declared(table, **options)
    return parsed(row["arguments"])["arguments"], found


def of(*fields: tuple[bytes, Field]) -> bytes:
    """A table."""
    return encoder.table(fields)


def nested(depth: int, tag: bytes) -> bytes:
    """A table with tables or arrays in it, `depth` of them below the first, a void in the last."""
    prefix = b"\1k" if tag == b"F" else b""
    octets = prefix + b"V"
    for _ in range(depth - 1):
        octets = prefix + tag + longstr(octets)
    return longstr(b"\1t" + tag + longstr(octets))


@pytest.mark.parametrize("tag", [b"F", b"A"])
@pytest.mark.parametrize("depth", [1, 2, MAX_TABLE_DEPTH - 1])
def test_nesting(depth: int, tag: bytes) -> None:
    value, found = shown(nested(depth, tag))
    value = value["t"]
    for _ in range(depth):
        value = value["k"] if tag == b"F" else value[0]
    assert value is None
    assert found == []


@pytest.mark.parametrize("tag", [b"F", b"A"])
@pytest.mark.parametrize("depth", [MAX_TABLE_DEPTH, MAX_TABLE_DEPTH + 1, 1000, 20_000])
def test_nesting_beyond_the_limit(depth: int, tag: bytes) -> None:
    """The inner table is kept as the bytes it is, and what follows is read."""
    inner = nested(depth, tag)[4:]
    value, found = shown(longstr(inner + b"\5aftert\1"))
    assert found == [("field-table-too-deep", WHERE)]
    assert value["after"] is True
    value = value["t"]
    for _ in range(MAX_TABLE_DEPTH - 1):
        value = value["k"] if tag == b"F" else value[0]
    (octets,) = value.values() if tag == b"F" and list(value) != ["base64"] else value
    kept = value["base64"] if octets == "base64" else octets["base64"]
    assert inner.endswith(base64.b64decode(kept))


def test_unknown_tag_keeps_the_rest() -> None:
    """Nobody knows how long its value is, so the rest of its table is kept as bytes."""
    rest = b"\1\2\3\1cI\0\0\0\1"
    value, found = shown(longstr(b"\1aI\0\0\0\1" + b"\1bZ" + rest))
    kept = {"tag": ord("Z"), "base64": base64.b64encode(rest).decode()}
    assert value == {"a": 1, "b": kept}
    assert found == [("field-tag-unknown", f"tag 0x5a ('Z') in the {WHERE}")]


@pytest.mark.parametrize(
    ("inner", "want"),
    [
        (b"F" + longstr(b"\1bZ\1\2"), {"b": {"tag": 90, "base64": "AQI="}}),
        (b"A" + longstr(b"t\1Zab"), [True, {"tag": 90, "base64": "YWI="}]),
    ],
)
def test_unknown_tag_inside(inner: bytes, want: Any) -> None:
    """The table around it has a length of its own and goes on."""
    value, found = shown(longstr(b"\1x" + inner + b"\1yt\1"))
    assert value == {"x": want, "y": True}
    assert found == [("field-tag-unknown", f"tag 0x5a ('Z') in the {WHERE}")]


NOTHING: dict[str, Any] = {
    "bool": False, "decimal": (0, 0), "shortstr": b"", "longstr": b"", "octets": b"", "array": (),
    "table": (), "void": None,
}  # fmt: skip


@pytest.mark.parametrize("reading", READINGS)
def test_every_byte_as_a_tag(reading: str) -> None:
    """Each is a tag that the reading knows, or a finding."""
    for tag in map(chr, range(256)):
        if tag in encoder.TAGS[reading]:
            kind = encoder.type_of(tag, reading)
            octets = encoder.value_bytes(Field(tag, NOTHING.get(kind, 0)), reading)
            value, found = shown(
                longstr(b"\1a" + tag.encode("latin-1") + octets + b"\1bt\1"), table_dialect=reading
            )
            assert value["b"] is True
            assert {code for code, _ in found} <= {"field-tag-unusual"}
        else:
            _, found = shown(longstr(b"\1a" + tag.encode("latin-1")), table_dialect=reading)
            ((code, detail),) = found
            assert (code, detail[:8]) == ("field-tag-unknown", f"tag {ord(tag):#04x}")
            assert detail.endswith(f" in the {WHERE}")


@pytest.mark.parametrize("tag", ["U", "\0"])
def test_unusual_tags(tag: str) -> None:
    value, found = shown(of((b"a", Field(tag, None if tag == "\0" else -2))))
    assert value == {"a": None if tag == "\0" else -2}
    written = "0x55 ('U')" if tag == "U" else "0x00"
    assert found == [("field-tag-unusual", f"tag {written} in the {WHERE}")]


def test_readings_differ() -> None:
    signed = longstr(b"\1ab\xff" + b"\1bB\xff" + b"\1dl" + b"\xff" * 8)
    assert shown(signed)[0] == {"a": -1, "b": 255, "d": -1}
    assert shown(signed, table_dialect="spec091")[0] == {"a": -1, "b": 255, "d": 2**64 - 1}
    assert shown(signed, table_dialect="py-amqp")[0] == {"a": 255, "b": -1, "d": 2**64 - 1}


def test_name_twice() -> None:
    row, found = declared(of((b"a", Field("I", 1)), (b"a", Field("I", 2))))
    assert '"arguments":{"a":1,"a":2}' in row["arguments"]
    assert found == [("field-name-duplicate", WHERE)]


def test_names_alike_in_other_tables_are_no_finding() -> None:
    inner = Field("F", [(b"a", Field("I", 1))])
    value, found = shown(of((b"a", inner), (b"b", inner)))
    assert value == {"a": {"a": 1}, "b": {"a": 1}}
    assert found == []


def test_text_that_is_none() -> None:
    """Long strings may be any bytes; names are text."""
    assert shown(of((b"a", Field("S", b"\xff")))) == ({"a": {"base64": "/w=="}}, [])
    assert shown(of((b"\xff", Field("I", 1)))) == ({"\ufffd": 1}, [("text-not-utf8", WHERE)])


@pytest.mark.parametrize(
    ("table", "code", "want"),
    [
        (b"\0\0\1\0" + b"\1aI\0\0\0\1", "arguments-truncated", {"a": 1}),
        (b"\xff\xff\xff\xff", "arguments-truncated", {}),
        (longstr(b"\1at\1" + b"\1bI\0\0"), "field-table-malformed", {"a": True}),
        (longstr(b"\1at\1" + b"\x09bI\0\0"), "field-table-malformed", {"a": True}),
        (longstr(b"\1at\1" + b"\1b"), "field-table-malformed", {"a": True}),
        (longstr(b"\1aS\0\0\xff\0text"), "field-table-malformed", {}),
        (longstr(b"\1aA\0\0\xff\0t\1"), "field-table-malformed", {}),
    ],
)
def test_lengths_that_do_not_fit(table: bytes, code: str, want: Any) -> None:
    value, found = shown(table)
    assert [finding for finding, _ in found] == [code]
    assert value == want


@pytest.mark.parametrize(
    ("scale", "unscaled", "text"),
    [
        (0, 5, "5"),
        (1, 5, "0.5"),
        (2, -314, "-3.14"),
        (2, 0, "0.00"),
        (3, 2**31 - 1, "2147483.647"),
        (10, 1, "0.0000000001"),
        (255, -(2**31), "-0." + "0" * 245 + "2147483648"),
    ],
)
def test_decimals_keep_their_digits(scale: int, unscaled: int, text: str) -> None:
    row, found = declared(of((b"a", Field("D", (scale, unscaled)))))
    assert f'"arguments":{{"a":{text}}}' in row["arguments"]
    assert found == []


@pytest.mark.parametrize(
    ("number", "want", "milliseconds"),
    [
        (0, "1970-01-01T00:00:00Z", False),
        (951782400, "2000-02-29T00:00:00Z", False),
        (1700000000123, "2023-11-14T22:13:20.123Z", True),
        (253402300799, "9999-12-31T23:59:59Z", False),
        (253402300800, 253402300800, False),
        (253402300799999, "9999-12-31T23:59:59.999Z", True),
        (2**64 - 1, 2**64 - 1, False),
    ],
)
def test_timestamps(number: int, want: Any, milliseconds: bool) -> None:
    """Seconds, or milliseconds when they are too many; a number where there is no such date."""
    value, found = shown(of((b"a", Field("T", number))))
    assert value == {"a": want}
    assert found == ([("timestamp-milliseconds", WHERE)] if milliseconds else [])


@pytest.mark.parametrize(
    ("tag", "number", "text"),
    [
        ("d", float("nan"), '"NaN"'),
        ("d", float("inf"), '"Infinity"'),
        ("f", float("-inf"), '"-Infinity"'),
        ("f", float("nan"), '"NaN"'),
        ("d", -0.0, "-0.0"),
        ("d", 5e-324, "5e-324"),
        ("f", 0.1, "0.10000000149011612"),
    ],
)
def test_floats(tag: str, number: float, text: str) -> None:
    row, _ = declared(of((b"a", Field(tag, number))))
    assert f'"arguments":{{"a":{text}}}' in row["arguments"]


@settings(max_examples=rounds(150))
@given(st.binary(max_size=120), st.sampled_from(READINGS))
def test_any_bytes_give_whole_json(octets: bytes, reading: str) -> None:
    """Whatever is in a table, its JSON is whole."""
    value, _ = shown(longstr(octets), table_dialect=reading)
    assert isinstance(value, dict)
