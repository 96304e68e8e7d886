"""Values of ours and fields of tshark: equal where they say the same, told apart where not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from amqpsniff.capture.tshark_frames import TsharkField
from amqpsniff.opinion.values import compare, parsed, plain


def field(
    show: str = "", octets: bytes | None = None, label: str = "", *below: TsharkField
) -> TsharkField:
    return TsharkField("amqp.method.arguments.x", label, show, octets, list(below))


def inside(label: str, *below: TsharkField, octets: bytes | None = None) -> TsharkField:
    return TsharkField("amqp.field", label, "", octets, list(below))


def nest(label: str, *below: TsharkField, octets: bytes | None = None) -> TsharkField:
    return field("", None, "", inside(label, *below, octets=octets))


TIMESTAMP = TsharkField(
    "amqp.field.timestamp", "b (timestamp): Nov 29, 2026 17:00:13.000000000 UTC", "",
    bytes.fromhex("54000000006b0c5a1d"), [],
)  # fmt: skip
"""A value of a table as tshark 4.0 has it, of a type with a field name of its own."""


def differ(value: Any, one: TsharkField) -> list[tuple[str, Any, Any]]:
    return [(pair.name, pair.ours, pair.theirs) for pair in compare("x", parsed(value), one)]


@pytest.mark.parametrize(
    ("ours", "one"),
    [
        ("true", field("1")),
        ("true", field("True")),
        ("false", field("0")),
        ("7", field("7")),
        ("18446744073709551615", field("18446744073709551615", b"\xff" * 8)),
        ('"orders"', field("orders", b"orders")),
        ('"PLAIN"', field("PLAIN", b"\x05PLAIN")),
        ('"en_US"', field("65:6e:5f:55:53", b"en_US")),
        ('"ab"', field("61:62", b"\0\0\0\x02ab")),
        ('""', field("", None, "Capabilities: ")),
        ('""', field("", None, "Channel-Id: <MISSING>")),
        ('{"base64":"/w=="}', field("ff", b"\xff")),
        ("{}", field()),
        ('{"a":1}', field("", None, "", inside("a (integer): 1"))),
        ('{"a":1.5}', field("", None, "", inside("a (double): 1.500000"))),
        ('{"a":-3.14}', field("", None, "", inside("a (decimal): -3.140000"))),
        ('{"a":"NaN"}', field("", None, "", inside("a (float): nan"))),
        ('{"a":null}', field("", None, "", inside("a (void): "))),
        ('{"a (b): c":true}', field("", None, "", inside("a (b): c (boolean): true"))),
        ('{"a":"x\\ny"}', field("", None, "", inside("a (string): x\\ny"))),
        ('{"a":"h\\u00e9"}', field("", None, "", inside("a (string): hé"))),
        ('{"a":[1,[]]}', nest("a (array)", inside("[0] (integer): 1"), inside("[1] (array)"))),
        ('{"a":{"b":1}}', nest("a (field table)", inside("b (integer): 1"))),
        ('{"a":[{"b":"2026-11-29T17:00:13Z","c":1}]}',
         nest("a (array)", inside("[0] (field table)", TIMESTAMP, inside("c (integer): 1")))),
        ('{"a":1,"a":2}', field("", None, "", inside("a (integer): 1"), inside("a (integer): 2"))),
        ('{"a":"AP8="}', field("", None, "", inside("a (string): AP8="))),
        ('{"a":{"base64":"AP8="}}', nest("a (byte array): 00ff", octets=b"\0\xff")),
        (json.dumps({"a\t": "x\ny\x07"}), nest("a  (string): x y\\x7")),
        (json.dumps({"a\t": "x\x0e\x7f\x85"}), nest("a\\t (string): x\\x0E\\x7F\\u0085")),
        (json.dumps({"a": "x\x1cy\x1dz"}), nest("a (string): x\\x1cy\\x1dz")),
        (json.dumps({"a": "x" * 300}), nest(" [truncated]a (string): " + "x" * 225 + "…")),
        (json.dumps({"a": "x" * 300}), nest("a (string): " + "x" * 225 + "…")),
    ],
)  # fmt: skip
def test_equal(ours: str, one: TsharkField) -> None:
    assert differ(ours, one) == []


@pytest.mark.parametrize(
    ("ours", "one", "found"),
    [
        ("true", field("0"), ("x", True, "0")),
        ("7", field("8"), ("x", 7, "8")),
        ('"orders"', field("order", b"order"), ("x", "orders", "order")),
        ('"x"', field(), ("x", "x", "")),
        ('{"a":1}', field(), ("x.a", 1, None)),
        ("{}", field("", None, "", inside("a (integer): 1")),
         ("x.a (integer): 1", None, "a (integer): 1")),
        ('{"a":1}', field("", None, "", inside("a (integer): 2")), ("x.a", 1, "(integer) 2")),
        ('{"a":1}', field("", None, "", inside("b (integer): 1")), ("x.a", 1, "b (integer): 1")),
        ('{"a":1}', field("", None, "", inside("a: unknown type 4c (L)")),
         ("x.a", 1, "a: unknown type 4c (L)")),
        ('{"a":-3.14}', field("", None, "", inside("a (decimal): 42949669.820000")),
         ("x.a", -3.14, "(decimal) 42949669.820000")),
        ('{"a":[1]}', field("", None, "", inside("a (array)", inside("[0] (integer): 2"))),
         ("x.a[0]", 1, "(integer) 2")),
        ('{"a":[1]}', field("", None, "", inside("a (array)")), ("x.a[0]", 1, None)),
        ('{"a":{"b":true}}',
         field("", None, "", inside("a (field table)", inside("b (boolean): false"))),
         ("x.a.b", True, "(boolean) false")),
        ('{"a":"xy"}', field("", None, "", inside("a (string): x")), ("x.a", "xy", "(string) x")),
    ],
)  # fmt: skip
def test_different(ours: str, one: TsharkField, found: tuple[str, Any, Any]) -> None:
    assert differ(ours, one) == [found]


def test_values_are_plain_again() -> None:
    text = '{"a":[1,2.5,null,true,{"b":"c"}]}'
    assert plain(parsed(text)) == json.loads(text)
    assert parsed(None) is None
