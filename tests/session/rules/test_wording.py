"""How findings name and count things."""

from __future__ import annotations

from typing import Any

import pytest

from amqpsniff.session.rules import wording


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (wording.number_of(0, "hole"), "0 holes"),
        (wording.number_of(1, "hole"), "1 hole"),
        (wording.number_of(2, "hole"), "2 holes"),
        (wording.number_of(1, "entry", "entries"), "1 entry"),
        (wording.number_of(2, "entry", "entries"), "2 entries"),
        (wording.exchange_text(None), "an exchange not captured"),
        (wording.exchange_text(""), "the default exchange"),
        (wording.exchange_text("e"), "exchange 'e'"),
        (wording.queue_text(None), "a queue not known"),
        (wording.queue_text(""), "a queue not known"),
        (wording.queue_text("q"), "queue 'q'"),
        (wording.route("e", "k"), "exchange 'e', routing key 'k'"),
        (wording.route("", None), "the default exchange, routing key ''"),
        (wording.packets_text(3, 3), "packet 3"),
        (wording.packets_text(3, 4), "packets 3 to 4"),
        (wording.when_closed("client"), "when the client closed it"),
        (wording.when_closed("server"), "when the broker closed it"),
        (wording.when_closed("fin"), "when TCP ended"),
        (wording.when_closed("rst"), "when TCP was reset"),
        (wording.in_packet(9), " in packet 9"),
        (wording.in_packet(None), ""),
    ],
)
def test_words(written: Any, text: str) -> None:
    assert written == text
