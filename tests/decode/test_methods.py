"""Every method of every dialect comes out as it was encoded, however its bytes arrive."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from amqpsniff.spec import DIALECTS, METHODS, READINGS, Method, methods_for
from tests import encoder
from tests.decode.feeding import CLIENT, SERVER, Feeder, Row, Runs, Talk
from tests.decode.strategies import parsed, same, values
from tests.thorough import THOROUGH, rounds

KNOWN = [row for row in METHODS if row.arguments_known]
CHANNEL = 3


def direction_of(row: Method) -> int:
    """Who may send the method."""
    return SERVER if row.sender == "server" else CLIENT


def decoded(dialect: str, row: Method, octets: bytes, **options: Any) -> list[Row]:
    """Rows of method frames among bytes that follow the dialect's protocol header."""
    feeder = Feeder(Talk(), dialect=dialect, **options)
    feeder.data(CLIENT, encoder.PROTOCOL_HEADERS[dialect])
    feeder.data(direction_of(row), octets)
    return [frame for frame in feeder.finish().frames() if frame["frame_type"] == "method"]


def is_first(dialect: str, row: Method) -> bool:
    """Whether no other definition of the same numbers is tried before this one."""
    return methods_for(dialect, row.class_id, row.method_id)[0] is row


CASES = [
    pytest.param(dialect, row, id=f"{dialect}-{row.name}-{row.source}")
    for at, row in enumerate(KNOWN)
    for dialect in (row.dialects if THOROUGH else [row.dialects[at % len(row.dialects)]])
]
"""Each method in one of its dialects, unless all cases are tried."""


@pytest.mark.parametrize(("dialect", "row"), CASES)
@settings(max_examples=rounds(20), suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_round_trip(dialect: str, row: Method, data: st.DataObject) -> None:
    reading = data.draw(st.sampled_from(READINGS))
    given_values = data.draw(values(row, reading))
    show = data.draw(st.booleans())
    octets = encoder.method(row, given_values, CHANNEL, reading)
    rows = decoded(dialect, row, octets, table_dialect=reading, show_secrets=show)
    assert len(rows) == 1
    got = rows[0]
    assert (got["channel"], got["size"]) == (CHANNEL, len(octets) - 8)
    if not is_first(dialect, row) and got["method"] != row.name:
        # Bytes that are as well a method of the same numbers that is more usual.
        rivals = methods_for(dialect, row.class_id, row.method_id)
        assert got["method"] in [rival.name for rival in rivals]
        return
    assert got["method"] == row.name
    shown = parsed(got["arguments"])
    if is_first(dialect, row) or list(shown) == [argument.name for argument in row.arguments]:
        want = encoder.json_arguments(row, given_values, show, reading)
        assert list(shown) == list(want)
        assert same(shown, want)


def example(row: Method) -> dict[str, Any]:
    """Arguments with something in each."""
    table = [
        (b"a", encoder.Field("I", -7)),
        (b"b", encoder.Field("F", [(b"c", encoder.Field("V", None))])),
    ]
    by_type = {"b": True, "s": b"text", "S": b"longer text", "F": table, "C": (0, b"x")}
    return {each.name: by_type.get(each.type, 5) for each in row.arguments}


FIRST = [
    pytest.param(dialect, [row for row in KNOWN if dialect in row.dialects], id=dialect)
    for dialect in DIALECTS
]


@pytest.mark.parametrize(("dialect", "methods"), FIRST)
def test_every_split(dialect: str, methods: list[Method]) -> None:
    """Whole, byte by byte, and cut in two anywhere: the same row. A prefix alone: no row."""
    runs = Runs(dialect=dialect)
    for row in methods:
        octets = encoder.method(row, example(row), CHANNEL)
        direction = direction_of(row)
        opening = (CLIENT, encoder.PROTOCOL_HEADERS[dialect])
        runs.add([opening, (direction, octets)], True)
        runs.add([opening, *((direction, bytes([octet])) for octet in octets)], True)
        for cut in range(1, len(octets)):
            pieces = [(direction, octets[:cut]), (direction, octets[cut:])]
            runs.add([opening, *pieces], True)
            runs.add([opening, pieces[0]], True)
        whole, single, *rest = runs.take()
        assert len(whole.frames) == 2
        assert single.frames == whole.frames
        for split, prefix in zip(rest[::2], rest[1::2], strict=True):
            assert split.frames == whole.frames
            assert split.errors == whole.errors
            assert prefix.frames == whole.frames[:1]


def test_same_numbers_in_other_dialects() -> None:
    """10/60 closes a connection of 0-8 and blocks one of 0-9-1."""
    by_name = {(row.name, dialect): row for row in KNOWN for dialect in row.dialects}
    close = by_name["connection.close", "0-8"]
    blocked = by_name["connection.blocked", "0-9-1"]
    assert (close.class_id, close.method_id) == (blocked.class_id, blocked.method_id) == (10, 60)
    closing = {"reply_code": 320, "reply_text": b"bye", "class_id": 0, "method_id": 0}
    (row,) = decoded("0-8", close, encoder.method(close, closing, 0))
    assert (row["method"], row["reply_code"], row["reply_text"]) == ("connection.close", 320, "bye")
    (row,) = decoded("0-9-1", blocked, encoder.method(blocked, {"reason": b"low on memory"}, 0))
    assert row["method"] == "connection.blocked"
    assert parsed(row["arguments"]) == {"reason": "low on memory"}


def test_columns_of_arguments() -> None:
    """Arguments that have a column of their own are in it."""
    (deliver,) = (row for row in KNOWN if row.name == "basic.deliver" and "0-9-1" in row.dialects)
    given_values = {
        "consumer_tag": b"tag", "delivery_tag": 2**63 - 1, "redelivered": True,
        "exchange": b"", "routing_key": "clé".encode(),
    }  # fmt: skip
    (row,) = decoded("0-9-1", deliver, encoder.method(deliver, given_values))
    assert row["consumer_tag"] == "tag"
    assert row["delivery_tag"] == 2**63 - 1
    assert row["exchange"] == ""
    assert row["routing_key"] == "clé"
    assert row["queue"] is None
    assert row["reply_code"] is None


def test_delivery_tag_beyond_the_column() -> None:
    """A number of 64 bits without sign does not always fit: null, and the arguments have it."""
    (ack,) = (row for row in KNOWN if row.name == "basic.ack" and "0-9-1" in row.dialects)
    octets = encoder.method(ack, {"delivery_tag": 2**63, "multiple": False})
    feeder = Feeder().data(CLIENT, encoder.PROTOCOL_HEADERS["0-9-1"]).data(CLIENT, octets)
    done = feeder.finish()
    assert done.codes == ["number-out-of-range"]
    row = done.frames()[-1]
    assert row["delivery_tag"] is None
    assert parsed(row["arguments"])["delivery_tag"] == 2**63
