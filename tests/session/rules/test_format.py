"""How findings name and count things."""

from __future__ import annotations

from typing import Any

import pytest

from amqpsniff.session.rules import format


@pytest.mark.parametrize(
    ("name", "given", "text"),
    [
        ("number_of", (0, "hole"), "0 holes"),
        ("number_of", (1, "hole"), "1 hole"),
        ("number_of", (2, "hole"), "2 holes"),
        ("number_of", (1, "entry", "entries"), "1 entry"),
        ("number_of", (2, "entry", "entries"), "2 entries"),
        ("exchange_text", (None,), "an exchange not captured"),
        ("exchange_text", ("",), "the default exchange"),
        ("exchange_text", ("e",), "exchange 'e'"),
        ("queue_text", (None,), "a queue not known"),
        ("queue_text", ("",), "a queue not known"),
        ("queue_text", ("q",), "queue 'q'"),
        ("route", ("e", "k"), "exchange 'e', routing key 'k'"),
        ("route", ("", ""), "the default exchange, routing key ''"),
        ("route", ("", None), "the default exchange, a routing key not captured"),
        ("reason_text", (None,), "reason not captured"),
        ("reason_text", ("",), "no reason given"),
        ("reason_text", ("low on memory",), "low on memory"),
        ("reply_text", (404, "NOT_FOUND - no queue"), "404 NOT_FOUND - no queue"),
        ("reply_text", (404, None), "404 NOT_FOUND, reason not captured"),
        ("reply_text", (530, ""), "530 NOT_ALLOWED, no reason given"),
        ("reply_text", (599, ""), "599, no reason given"),
        ("reply_text", (None, None), "code and reason not captured"),
        ("packets_text", (3, 3), "packet 3"),
        ("packets_text", (3, 4), "packets 3 to 4"),
        ("when_closed", ("client",), "when the client closed it"),
        ("when_closed", ("server",), "when the broker closed it"),
        ("when_closed", ("fin",), "when TCP ended"),
        ("when_closed", ("rst",), "when TCP was reset"),
        ("in_packet", (9,), " in packet 9"),
        ("in_packet", (None,), ""),
    ],
)
def test_words(name: str, given: tuple[Any, ...], text: str) -> None:
    assert getattr(format, name)(*given) == text
