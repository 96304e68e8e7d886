"""Links across connections: what the engine says of random conversations, and what must be."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from amqpsniff.limits import Limits
from amqpsniff.session import Memory
from tests.session.crossing import crossings
from tests.session.events import Row
from tests.session.linking import linked
from tests.session.script import Script, feed
from tests.thorough import rounds

CONVERSATIONS = crossings() | crossings(holes=True)


def by_engine(script: Script, **options: Any) -> list[Row]:
    """The links of messages as the engine gives them; connections and packets as in the script."""
    fed = feed(script, **options)
    taken = fed.engine.take("messages").to_pylist()
    names = {row["connection_id"]: fed.names[row["client"]] for row in taken}
    rows = []
    for row in taken:
        found = {
            name: row[name]
            for name in ("published_ns", "link_confidence", "delivery_number", "reply_late")
        }
        found["request_ns"] = row["request_ns"]
        for name in ("packet_number", "published_packet_number", "request_packet_number"):
            found[name] = fed.numbers.get(row[name])
        for name in ("published", "request"):
            found[f"{name}_connection"] = names.get(row[f"{name}_connection_id"])
        rows.append(found)
    return sorted(rows, key=lambda row: row["packet_number"])


@pytest.mark.parametrize("bodies", [False, True])
@given(script=CONVERSATIONS)
@settings(max_examples=rounds(120))
def test_the_engine_links_what_the_reference_links(bodies: bool, script: Script) -> None:
    """Every column of every message."""
    assert by_engine(script, body_sha256=bodies) == linked(script, bodies)


@given(script=CONVERSATIONS)
@settings(max_examples=rounds(40))
def test_links_do_not_depend_on_batches(script: Script) -> None:
    """Packets one by one, rows in small batches."""
    assert by_engine(script, limits=Limits(packets=1, rows_per_batch=5)) == linked(script)


@given(script=CONVERSATIONS)
@settings(max_examples=rounds(80))
def test_what_is_forgotten_links_nothing(script: Script) -> None:
    """Four publishes and two requests are remembered."""
    few = Limits(memory=Memory(publishes=4, calls=2))
    assert by_engine(script, limits=few) == linked(script, memory=(4, 2))
