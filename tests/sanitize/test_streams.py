"""Bytes by stream offset: what was put stands there, and filler everywhere else."""

from __future__ import annotations

import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from amqpsniff.sanitize.streams import RELEASED_BYTES, SafeStreams

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
        tracemalloc.start()
        for offset in range(0, 40_000, 4):
            streams.put(0, 0, offset, b"abcd")
        kept_bytes, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert kept_bytes < 10_000  # each by itself would take 24
        streams.seal()
        assert streams.read(0, 0, 1998, b"12345678") == b"cdabcdab"


def test_pages_that_were_let_go_are_read_again() -> None:
    block = b"abcdefgh" * (1 << 17)
    with SafeStreams() as streams:
        streams.put(1, 0, 0, block)
        streams.seal()
        for _ in range(RELEASED_BYTES // len(block) + 2):
            assert streams.read(1, 0, 0, block) == block
