"""Bitmaps and microseconds agree with their definitions, compiled and uncompiled."""

import importlib.util
from array import array
from itertools import pairwise
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpsniff.null import NULL
from amqpsniff.tables import bitmaps
from tests.conftest import REPO


def uncompiled() -> ModuleType:
    path = REPO / "amqpsniff" / "tables" / "bitmaps.py"
    spec = importlib.util.spec_from_file_location("uncompiled_bitmaps", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module", params=["as it is", "uncompiled"])
def module(request: pytest.FixtureRequest) -> ModuleType:
    return bitmaps if request.param == "as it is" else uncompiled()


def bits(bitmap: bytearray, rows: int) -> list[bool]:
    assert len(bitmap) == (rows + 7) // 8
    unused = len(bitmap) * 8 - rows
    assert not unused or bitmap[-1] >> (8 - unused) == 0
    return [bool(bitmap[row >> 3] >> (row & 7) & 1) for row in range(rows)]


LONG = st.integers(-(2**63), 2**63 - 1)


@given(st.lists(st.one_of(st.just(NULL), LONG), max_size=40), st.integers(0, 3))
def test_integers(module: ModuleType, values: list[int], spare: int) -> None:
    storage = bytearray(array("q", values + [7] * spare))
    bitmap, nulls = module.of_integers(storage, len(values))
    assert nulls == values.count(NULL)
    if 0 < nulls < len(values):
        assert bits(bitmap, len(values)) == [value != NULL for value in values]
    else:
        assert bitmap is None


@given(st.lists(st.integers(-(2**31), 2**31 - 1) | st.just(-1), max_size=40))
def test_codes(module: ModuleType, values: list[int]) -> None:
    storage = bytearray(array("i", values))
    bitmap, nulls = module.of_codes(storage, len(values))
    assert nulls == sum(value < 0 for value in values)
    if 0 < nulls < len(values):
        assert bits(bitmap, len(values)) == [value >= 0 for value in values]
    else:
        assert bitmap is None


@given(st.lists(st.sampled_from([-1, 0, 1]), max_size=40))
def test_truths(module: ModuleType, values: list[int]) -> None:
    made = module.of_truths(bytearray(array("i", values)), len(values))
    assert bits(made, len(values)) == [value == 1 for value in values]


@given(st.binary(max_size=40))
def test_bytes(module: ModuleType, octets: bytes) -> None:
    assert bits(module.of_bytes(bytearray(octets), len(octets)), len(octets)) == [
        octet != 0 for octet in octets
    ]


@given(st.lists(LONG.filter(lambda value: value != NULL), max_size=40))
def test_microseconds_round_down(module: ModuleType, times: list[int]) -> None:
    made = array("q", module.microseconds(bytearray(array("q", times)), len(times)))
    assert list(made) == [time // 1000 for time in times]


@given(st.lists(st.integers(-2, 4), max_size=40))
def test_recoded(module: ModuleType, codes: list[int]) -> None:
    places = array("i", [3, 1, 0, 2, 2])
    made = array("i", module.recoded(bytearray(array("i", codes)), len(codes), places))
    assert list(made) == [places[code] if code >= 0 else code for code in codes]
    with pytest.raises(IndexError):
        module.recoded(bytearray(array("i", [5])), 1, places)


@given(st.lists(st.none() | LONG, max_size=40))
def test_numbers_of_a_list(module: ModuleType, values: list[int | None]) -> None:
    bitmap, numbers, nulls = module.of_numbers(values, False)
    assert nulls == values.count(None)
    known = bits(bitmap, len(values)) if bitmap else [not nulls] * len(values)
    made = [
        value if is_there else None
        for value, is_there in zip(array("q", numbers), known, strict=True)
    ]
    assert made == values


@given(st.lists(st.none() | st.integers(-(2**31), 2**31 - 1), max_size=40))
def test_narrow_numbers_of_a_list(module: ModuleType, values: list[int | None]) -> None:
    _, numbers, _ = module.of_numbers(values, True)
    assert list(array("i", numbers)) == [value or 0 for value in values]
    for large in (2**31, -(2**31) - 1, 2**40):
        with pytest.raises((OverflowError, ValueError)):
            module.of_numbers([*values, large], True)


@given(st.lists(st.none() | st.text(st.characters(), max_size=5), max_size=40))
def test_texts_of_a_list(module: ModuleType, values: list[str | None]) -> None:
    bitmap, storage, octets, nulls = module.of_texts(values)
    assert nulls == values.count(None)
    known = bits(bitmap, len(values)) if bitmap else [not nulls] * len(values)
    ends = array("i", storage)
    made = [octets[begin:end] for begin, end in pairwise(ends)]
    wanted = [(value or "").encode(errors="backslashreplace") for value in values]
    assert (made, known) == (wanted, [value is not None for value in values])


def test_too_many_rows_are_refused_and_not_read(module: ModuleType) -> None:
    with pytest.raises(IndexError):
        module.of_integers(bytearray(8), 2)
    with pytest.raises(IndexError):
        module.microseconds(bytearray(8), 2)
