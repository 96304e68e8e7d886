"""Names in the details of findings, by which findings of two captures are matched."""

from amqpsniff.compare.names import subjects
from amqpsniff.session.rules.remedies import REMEDIES


def test_the_words_of_a_remedy_are_no_names() -> None:
    assert {row.what: subjects(row.what) for row in REMEDIES if subjects(row.what)} == {}


def test_names_of_a_reply_text() -> None:
    text = "404 NOT_FOUND - no queue 'orders.us' in vhost '/'; answer to queue.declare in packet 6"
    assert subjects(text) == ("404", "orders.us", "/")
