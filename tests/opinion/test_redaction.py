"""What differs is told without what may be a secret."""

from __future__ import annotations

import pytest

from amqpsniff.opinion.compare import redacted
from amqpsniff.opinion.difference import ARGUMENT, METHOD, Difference

QUOTE = "FRAME_ERROR - cannot decode <<1,2,3>>"


@pytest.mark.parametrize(
    ("method", "name", "value", "shown"),
    [
        ("connection.start-ok", "locale", "en_US", "[redacted]"),
        ("10.70", "base64", "c2VjcmV0", "[redacted]"),
        ("10.70", "base64", None, None),
        ("100.70", "base64", "b3RoZXI=", "[redacted]"),
        (None, "base64", "b3RoZXI=", "[redacted]"),
        ("queue.declare", "queue", "q", "q"),
        ("channel.close", "reply_text", QUOTE, "FRAME_ERROR - cannot decode <<[redacted]>>"),
        ("connection.blocked", "reason", "low on memory", "low on memory"),
        ("channel.close", "reply_text", 7, 7),
    ],
)
def test_values(method: str, name: str, value: object, shown: object) -> None:
    one = Difference(1, 0, method, ARGUMENT, name, value, value, None, None)
    assert redacted(one)[5:7] == (shown, shown)


def test_what_is_no_value_is_shown() -> None:
    one = Difference(
        1, 0, "connection.start-ok", METHOD, None, "connection.start-ok", "x", None, None
    )
    assert redacted(one) == one
