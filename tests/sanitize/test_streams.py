"""Bytes by stream offset: what was put stands there, and filler everywhere else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpsniff.sanitize import streams as streams_module
from amqpsniff.sanitize.streams import SafeStreams

PUTS = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 60), st.binary(max_size=12), st.booleans()),
    max_size=12,
)


@given(PUTS, st.lists(st.tuples(st.integers(-10, 80), st.binary(max_size=40))))
def test_as_a_list_of_bytes(
    puts: list[tuple[int, int, bytes, bool]], reads: list[tuple[int, bytes]]
) -> None:
    """What is put later begins where it says, and ends what stood there from that offset on."""
    model: dict[int, dict[int, int]] = {0: {}, 1: {}}
    with SafeStreams() as streams:
        for direction, offset, octets, own in puts:
            if own:
                streams.let_through(7, direction, offset, len(octets))
            else:
                streams.put(7, direction, offset, octets)
            if octets:
                kept = {at: octet for at, octet in model[direction].items() if at < offset}
                new = {offset + at: -1 if own else octet for at, octet in enumerate(octets)}
                model[direction] = kept | new
        streams.seal()
        for offset, octets in reads:
            for direction in (0, 1):
                expected = bytearray()
                for at, octet in enumerate(octets):
                    known = model[direction].get(offset + at, ord("x"))
                    expected.append(octet if known < 0 else known)
                assert streams.read(7, direction, offset, octets) == expected
        assert streams.read(8, 0, 0, b"abc") == b"xxx"


def test_spans_that_touch_are_one() -> None:
    with SafeStreams() as streams:
        for offset in range(0, 4000, 4):
            streams.put(0, 0, offset, b"abcd")
        assert len(streams._spans[0]) == 3
        streams.seal()
        assert streams.read(0, 0, 1998, b"12345678") == b"cdabcdab"


def test_pages_that_were_let_go_are_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams_module, "RELEASED_BYTES", 8)
    with SafeStreams() as streams:
        streams.put(1, 0, 0, b"abcdefgh" * 4)
        streams.seal()
        for _ in range(3):
            assert streams.read(1, 0, 8, bytes(12)) == b"abcdefghabcd"
