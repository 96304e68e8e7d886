"""Values of a JSON object by name, against `json`."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as some

from amqpsniff.decode.json_names import ObjectNames
from amqpsniff.packs import forms

LONG = "a name of more than so many bytes as there are bits in the widest number"
NAMES = ("a", "task", 'with "quotes"', "back\\slash", "é", LONG)
VALUES = some.recursive(
    some.none() | some.booleans() | some.integers(-(2**60), 2**60) | some.text(max_size=8),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.text(max_size=3), inner),
    max_leaves=6,
)
OBJECTS = some.dictionaries(some.sampled_from(NAMES) | some.text(max_size=5), VALUES)


def read(octets: bytes) -> dict[str, object]:
    """The values of known names."""
    found = ObjectNames(NAMES)
    found.read(octets, 0, len(octets))
    assert found.found() <= set(NAMES)
    return {name: found.value(NAMES.index(name)) for name in found.found()}


@given(OBJECTS, some.sampled_from([None, 1]), some.booleans())
def test_as_json(whole: dict[str, object], indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(whole, indent=indent, ensure_ascii=ascii_only)
    known = {name: value for name, value in whole.items() if name in NAMES}
    if ascii_only:  # a name in escapes is not told
        known.pop("é", None)
    assert read(text.encode()) == known


@given(OBJECTS, some.integers(0, 200))
def test_cut(whole: dict[str, object], end: int) -> None:
    """A cut object has values of the whole one, those that ended before the cut."""
    text = json.dumps(whole).encode()
    for name, value in read(text[:end]).items():
        assert value == whole[name]


@given(some.binary(max_size=60))
def test_anything(octets: bytes) -> None:
    read(octets)
    read(b'{"a":' + octets)


@given(
    OBJECTS,
    some.lists(
        some.tuples(some.integers(0, 200), some.sampled_from(b'ax09 "\\{}[],:')), max_size=4
    ),
    some.booleans(),
)
def test_learned(whole: dict[str, object], changes: list[tuple[int, int]], few: bool) -> None:
    """A text like one that came before is read as by who never read another."""
    text = bytearray(json.dumps(whole, ensure_ascii=False).encode())
    wanted = bytes(name == "a" for name in NAMES) if few else None
    found, fresh = ObjectNames(NAMES), ObjectNames(NAMES)
    for _ in range(3):
        found.read(bytes(text), 0, len(text), wanted)
    for place, octet in changes:
        text[place % len(text)] = octet
    for one in (found, fresh):
        one.read(b"__" + text, 2, len(text) + 2, wanted)
    assert (found.shape, found.found()) == (fresh.shape, fresh.found())
    for place in range(len(NAMES)):
        assert found.value(place) == fresh.value(place)


def test_shape() -> None:
    """It depends on the known names alone."""
    found = ObjectNames(NAMES)
    shapes = []
    for text in (b'{"a":1,"task":2}', b'{"task":[],"x":0,"a":{}}', b'{"a":1}', b"{}", b"[1]"):
        found.read(text, 0, len(text))
        shapes.append(found.shape)
    assert shapes[0] == shapes[1]
    assert len(set(shapes)) == 3


def inside(value: object, path: tuple[str | int, ...]) -> object:
    """The value at the end of a path; a text on the way is read as JSON."""
    for step in path:
        try:
            value = json.loads(value) if isinstance(value, str) else value
            value = None if isinstance(value, str) else value[step]  # type: ignore[index]
        except (ValueError, KeyError, IndexError, TypeError):
            return None
    return value


STEPS = some.sampled_from(("a", "b", "c d")) | some.integers(-3, 2)
NESTED = some.recursive(
    some.none() | some.integers(-9, 9) | some.text(max_size=3),
    lambda inner: (
        some.lists(inner, max_size=3)
        | some.dictionaries(some.sampled_from(("a", "b", "c d")), inner, max_size=3)
        | inner.map(json.dumps)
    ),
    max_leaves=8,
)


@given(NESTED, some.lists(STEPS, min_size=1, max_size=3), some.sampled_from([None, 1]))
def test_along(value: object, steps: list[str | int], indent: int | None) -> None:
    text = json.dumps({"task": value}, indent=indent).encode()
    found = ObjectNames({"task": ("a", "b", "c d")})
    found.read(text, 0, len(text))
    first = steps[0]
    within = ("a", "b", "c d").index(first) if isinstance(first, str) else -1
    rest = tuple(one.encode() if isinstance(one, str) else one for one in steps[within >= 0 :])
    assert found.along(0, within, rest) == inside(value, tuple(steps))


def micros(text: str) -> int:
    """A time that the value of a name is."""
    found = ObjectNames(("eta",))
    octets = json.dumps({"eta": text}).encode()
    found.read(octets, 0, len(octets))
    return found.instant(0)


@given(some.datetimes(datetime(1970, 1, 1), datetime(2099, 12, 31), timezones=some.just(UTC)))
def test_instants(time: datetime) -> None:
    text = time.isoformat()
    assert micros(text) == (forms.instant(text) if time.day < 29 else -1)


@given(some.integers(0, 31), some.characters(codec="ascii"))
def test_no_instants(place: int, other: str) -> None:
    text = "2026-11-28T09:26:36.491398+00:00"
    text = text[:place] + other + text[place + 1 :]
    assert micros(text) in (-1, forms.instant(text))
