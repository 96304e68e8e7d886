"""How long a connection was blocked."""

from __future__ import annotations

import pytest

from amqpsniff.capture.packets import NO_TIME
from tests.session.rules.saying import said
from tests.session.script import Script, feed


def test_blocked_again_after_a_block_that_began_before_the_capture() -> None:
    """How long it was blocked in all is not known; that it is, is."""
    text = """
        midstream
        C1: basic.publish exchange=e routing_key=k
        S: connection.unblocked
        C1: basic.publish exchange=e routing_key=k
        S: connection.blocked reason=memory
        [late] @+900ms C1: basic.publish exchange=e routing_key=k
        """
    found = said(text, "publish-while-blocked", "connection-blocked")
    assert found == [
        "connection-blocked #4 -: memory, for 900 ms until the end, 1 publish meanwhile",
        "publish-while-blocked late 1: published 900 ms after connection.blocked in packet #4",
    ]


@pytest.mark.parametrize("timeless", [{"blocked"}, {"unblocked"}, {"blocked", "unblocked"}])
def test_how_long_it_was_blocked_is_unknown_without_times(timeless: set[str]) -> None:
    """Packets without a time among others, as in Simple Packet Blocks: no number comes of them."""
    script = Script(
        """
        handshake
        [blocked] S: connection.blocked reason=memory
        [unblocked] S: connection.unblocked
        S: connection.blocked reason=memory
        @+30ms S: connection.unblocked
        """
    )
    for label in timeless:
        at = script.labels[label] - 1
        script.packets[at] = script.packets[at]._replace(ts_ns=NO_TIME)
    (row,) = feed(script).engine.take("connections").to_pylist()
    assert row["blocked_ns"] is None
