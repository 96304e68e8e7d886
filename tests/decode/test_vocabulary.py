"""Texts that repeat: each once, whatever bytes they are."""

import random

import pytest

from amqpsniff.columns import Codes, Vocabulary
from amqpsniff.decode.rows import copy_name
from amqpsniff.decode.values import NOT_UTF8, ValueReader


def _enter(vocabulary, texts):
    """The codes that a column gets for bytes, null for None, and the oddities seen."""
    reader = ValueReader(None)
    column = Codes()
    column.reserve(len(texts))
    for row, octets in enumerate(texts):
        reader.read_from(octets or b"")
        start = -1 if octets is None else 0
        copy_name(column, vocabulary, row, reader, start, len(octets or b""))
    return memoryview(column.take(len(texts))).cast("i").tolist(), reader.oddities


def test_equal_texts_have_one_code() -> None:
    vocabulary = Vocabulary()
    codes, oddities = _enter(vocabulary, [b"a", b"", b"a", None, "ü".encode(), b"", b"ab"])
    assert codes == [0, 1, 0, -1, 2, 1, 3]
    assert [vocabulary.text(code) for code in range(4)] == ["a", "", "ü", "ab"]
    assert vocabulary.text(-1) is None
    assert oddities == 0


def test_bytes_that_are_not_text_have_the_code_of_what_is_shown() -> None:
    vocabulary = Vocabulary()
    codes, oddities = _enter(vocabulary, [b"\xff", "\ufffd".encode(), b"x", b"\xff", b"\xfe"])
    assert oddities == NOT_UTF8
    assert [vocabulary.text(code) for code in codes] == [
        "\ufffd",
        "\ufffd",
        "x",
        "\ufffd",
        "\ufffd",
    ]
    assert len(set(codes)) == 2


@pytest.mark.parametrize("distinct", [3, 127, 128, 129, 5_000])
def test_any_number_of_texts(distinct: int) -> None:
    rng = random.Random(distinct)
    texts = [rng.randbytes(rng.randrange(40)).hex()[: rng.randrange(80)] for _ in range(distinct)]
    drawn = [rng.choice(texts).encode() for _ in range(20_000)]
    vocabulary = Vocabulary()
    codes, _ = _enter(vocabulary, drawn)
    assert [vocabulary.text(code) for code in codes] == [octets.decode() for octets in drawn]
    assert vocabulary.count == len(set(drawn))
    offsets, octets = vocabulary.entries()
    ends = memoryview(offsets).cast("i")
    listed = [bytes(octets[ends[n] : ends[n + 1]]) for n in range(vocabulary.count)]
    assert len(set(listed)) == vocabulary.count
    assert set(listed) == set(drawn)
