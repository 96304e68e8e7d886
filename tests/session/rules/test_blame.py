"""Which frame a broker's close is about, and which closes are the first."""

from __future__ import annotations

from array import array
from types import SimpleNamespace
from typing import Any

import pytest

from amqpsniff.session.rules import blame
from amqpsniff.spec import METHODS
from tests.findings.cases import packets_of
from tests.session.rules.telling import one, told, told_of

OPEN = "handshake\nC1: channel.open\nS1: channel.open-ok\n"
CODES = {row.name: code for code, row in enumerate(METHODS)}
DECLARE = (0, 0, 1, "queue.declare")
BODY = (0, 0, 1, None)
"""Frames: connection, sender, channel and method."""


def asked(frames: list[tuple[int, int, int, str | None]], close: int, method: str | None) -> Any:
    """The place of the frame that the one at `close` is the answer to."""
    numbers = [(a, b, c, -1 if name is None else CODES[name]) for a, b, c, name in frames]
    connection, sender, channel, code = (
        SimpleNamespace(storage=array("i", column).tobytes())
        for column in zip(*numbers, strict=True)
    )
    rows = SimpleNamespace(
        connection=connection,
        sender=sender,
        channel=channel,
        method=code,
        packet_number=SimpleNamespace(storage=array("q", range(len(frames))).tobytes()),
    )
    scene: Any = SimpleNamespace(event=SimpleNamespace(rows=rows, row=close))
    return blame.request_packet(scene, method)


CLOSE = (0, 1, 1, "channel.close")
FORCED = (0, 1, 0, "connection.close")


@pytest.mark.parametrize(
    ("frames", "method", "place"),
    [
        ([DECLARE, CLOSE], "queue.declare", 0),
        ([DECLARE, CLOSE], "queue.bind", None),
        ([DECLARE, BODY, CLOSE], "queue.declare", 0),
        ([DECLARE, BODY, CLOSE], METHODS[-1].name, None),
        ([(0, 0, 0, "connection.start"), FORCED], "connection.start", 0),
        ([DECLARE, BODY, CLOSE], None, 1),
        ([DECLARE, (1, 0, 1, "queue.declare"), CLOSE], "queue.declare", 0),
        ([DECLARE, (0, 1, 1, "queue.declare"), CLOSE], "queue.declare", 0),
        ([DECLARE, (0, 0, 2, "queue.declare"), CLOSE], "queue.declare", 0),
        ([DECLARE, (0, 0, 2, "queue.declare"), FORCED], "queue.declare", 1),
        ([CLOSE], None, None),
        ([(0, 1, 1, "basic.deliver"), CLOSE, DECLARE], None, None),
    ],
)
def test_the_frame_that_a_close_answers(
    frames: list[tuple[int, int, int, str | None]], method: str | None, place: int | None
) -> None:
    close = max(n for n, frame in enumerate(frames) if frame in (CLOSE, FORCED))
    assert asked(frames, close, method) == place


@pytest.mark.parametrize("between", [blame.LOOK_BACK - 1, blame.LOOK_BACK])
def test_the_search_for_it_ends(between: int) -> None:
    frames = [BODY, DECLARE, *[(1, 1, 1, None)] * between, CLOSE]
    found = asked(frames, len(frames) - 1, None)
    assert found == (1 if between < blame.LOOK_BACK else None)


def test_a_close_of_which_the_request_is_far_away() -> None:
    noise = "b.S1: basic.cancel consumer_tag=t\n" * (blame.LOOK_BACK + 1)
    close = "S: connection.close reply_code=503 reply_text=no class_id=50 method_id={}"
    text = f"handshake\nC1: queue.declare\nb.midstream\nNOISE{close}"
    for method, where, words in (
        (10, "", "503 no; it answers queue.declare in packet 11"),
        (10, noise, "503 no; it answers queue.declare"),
        (0, noise, "503 no"),
    ):
        row = one(text.replace("NOISE", where).format(method), "connection-closed-by-broker")
        assert row["detail"] == words


@pytest.mark.parametrize(("code", "is_error"), [(299, False), (300, True)])
def test_codes_of_errors(code: int, is_error: bool) -> None:
    close = f"S: connection.close reply_code={code} reply_text=no"
    assert bool(told(OPEN + close, "connection-closed-by-broker")) is is_error


def test_closes_that_came_second_or_are_cut_short() -> None:
    close = "S: connection.close reply_code=541 reply_text=no"
    late = OPEN + "C: connection.close reply_code=200\n" + close
    assert not told(late, "connection-closed-by-broker")
    packets = packets_of(OPEN + close)
    last = packets[-1]
    packets[-1] = last._replace(octets=last.octets[: 40 + 12], original=len(last.octets))
    assert not told_of(packets, "connection-closed-by-broker")
