"""Arguments and headers read back from JSON: one form of text, whatever its bytes are."""

from __future__ import annotations

import pytest

from amqpsniff.decode.json_objects import read_object

BYTES = '{"base64":"//6A"}'
"""ff fe 80"""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"queue":"q","no_wait":false}', {"queue": "q", "no_wait": False}),
        (f'{{"queue":{BYTES}}}', {"queue": "\ufffd\ufffd\ufffd"}),
        ('{"reply_text":{"base64":"YWL/"}}', {"reply_text": "ab\ufffd"}),
        (f'{{"x-death":[{{"queue":{BYTES}}}]}}', {"x-death": [{"queue": "\ufffd\ufffd\ufffd"}]}),
        (f'{{"arguments":{{"x":{BYTES}}}}}', {"arguments": {"x": "\ufffd\ufffd\ufffd"}}),
        # tables: their one name is `base64`
        ('{"arguments":{"base64":"YWI="}}', {"arguments": {"base64": "YWI="}}),
        (BYTES, {"base64": "//6A"}),
        # tables that cannot be bytes
        ('{"x":{"base64":"no"}}', {"x": {"base64": "no"}}),
        ('{"x":{"base64":1}}', {"x": {"base64": 1}}),
        ('{"x":{"tag":122,"base64":"AA=="}}', {"x": {"tag": 122, "base64": "AA=="}}),
        ("", {}),
        ("{", {}),
        ("[]", {}),
    ],
)
def test_objects(text: str, found: dict[str, object]) -> None:
    assert read_object(text) == read_object(text.encode()) == found


def test_nothing_captured() -> None:
    assert read_object(None) == {}
