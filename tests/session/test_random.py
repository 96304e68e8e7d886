"""Random conversations: the engine sees all of them, and everybody gives the rows that must be."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.session.comparing import ENGINES, by_reference, same
from tests.session.script import Script, feed
from tests.session.strategies import scripts
from tests.thorough import rounds

CONVERSATIONS = st.one_of(scripts(), scripts(losses=True), scripts(midstream=True))


@given(script=CONVERSATIONS)
@settings(max_examples=rounds(150))
def test_the_engine_sees_every_method(script: Script) -> None:
    """Packets, channels and methods are those of the script, whatever is lost between them."""
    fed = feed(script)
    seen = [
        (fed.names[frame.client], fed.numbers[frame.packet_number], frame.channel, frame.method)
        for frame in fed.engine.frames()
        if frame.method is not None
    ]
    said = [
        (event.connection, event.packet, event.channel, event.method)
        for event in script.events
        if "." in event.method
    ]
    assert sorted(seen) == sorted(said)


@pytest.mark.parametrize("name", [name for name in ENGINES if name != "reference"])
@given(script=CONVERSATIONS)
@settings(max_examples=rounds(300))
def test_everybody_agrees_with_the_reference(name: str, script: Script) -> None:
    """Frames, messages, channels and connections of random conversations."""
    same(ENGINES[name](script), by_reference(script))


@given(script=CONVERSATIONS)
@settings(max_examples=rounds(150))
def test_the_reference_adds_up(script: Script) -> None:
    """Counts of channels are those of their messages, and those of connections their sums."""
    rows = by_reference(script)
    for connection in rows.connections:
        mine = [row for row in rows.channels if row["connection"] == connection["connection"]]
        assert connection["channels"] == len(mine)
        for count in ("published", "delivered", "acknowledged"):
            assert connection[count] == sum(row[count] for row in mine)
    outcomes = [row["outcome"] for row in rows.messages]
    for column, outcome, end in (
        ("confirmed", "confirmed", "unconfirmed"),
        ("acknowledged", "acked", "unsettled"),
    ):
        assert sum(row[column] or 0 for row in rows.channels) == outcomes.count(outcome)
        if all(row["opened_packet_number"] for row in rows.channels):
            ends = sum(row[f"{end}_end"] or 0 for row in rows.channels)  # null: not known
            assert ends <= outcomes.count(end)
    for row in rows.messages:
        assert (row["outcome_packet_number"] is None) == (row["outcome_ns"] is None)
        if row["outcome_ns"] is not None:
            assert row["outcome_ns"] >= 0
