"""What of a message's headers a broker adds, and what is left without it."""

from __future__ import annotations

import pytest

from amqpsniff.session.fingerprint import without_added


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("{}", ""),
        ('{"a":1}', '"a":1'),
        ('{"x-death":[{"a":"}]"}],"b":{"x-death":1}}', '"b":{"x-death":1}'),
        ('{"a":"x,\\"y","BCC":["q"],"c":[1,2]}', '"a":"x,\\"y","c":[1,2]'),
        ('{"x-delivery-count":2}', ""),
        ('{"x-mine":2}', '"x-mine":2'),
    ],
)
def test_members_are_cut_out_as_they_are(text: str, rest: str) -> None:
    """Only at the top, whatever is in strings."""
    assert without_added(text.encode()).decode() == rest
