"""Files of packs: what they may say, and the line that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

import amqpsniff
from amqpsniff.errors import UsageError
from amqpsniff.packs.catalogue import SHAPE, Packs, Shape, load, parse

GOOD = '[shop]\nwhen = "header:shop-event"\n'

WRONG = (
    ("x = 1", 1, "in no section"),
    (GOOD + 'opration = "header:x"', 3, "no key `opration`"),
    (GOOD + "operation = 3", 3, "`3` is not a text"),
    (GOOD + 'operation = "shop-event"', 3, "is not a source"),
    (GOOD + 'operation = "queue"', 3, "no place `queue`"),
    (GOOD + 'operation = "client:product"', 3, "is not a source of `operation`"),
    (GOOD + "operation = 'type ~ ^Shop'", 3, "has no group"),
    (GOOD + "operation = 'type ~ ((Shop)'", 3, "invalid regular expression"),
    (GOOD + 'not_before = "header:x as seconds"', 3, "no form `seconds`"),
    (GOOD + '\n[cart]\noperation = "type"', 4, "nothing recognises it"),
    (GOOD + '[cart]\nwhen = "header:x = 1"', 4, "not its value"),
    (GOOD + '[cart]\nwhen = "routing_key = a"', 4, "no place `routing_key`"),
    (GOOD + '[cart]\nwhen = "client:product = a"', 4, "not a condition of `when`"),
    (GOOD + 'role = "boss"', 3, "no role `boss`; there is task"),
    (GOOD + 'demands = "type"', 3, "no demands `type`"),
    (GOOD + 'client = "type = a"', 3, "no place `type`"),
    (GOOD + 'title = ["a", "b"]', 3, "`title` is one text"),
)


@pytest.mark.parametrize(("text", "line", "why"), WRONG)
def test_line_that_is_wrong(text: str, line: int, why: str) -> None:
    with pytest.raises(UsageError) as said:
        parse(text, "shop.toml")
    assert str(said.value).startswith(f"packs shop.toml, line {line}, [")
    assert why in str(said.value)


def test_not_toml() -> None:
    with pytest.raises(UsageError, match=r"packs shop.toml: .*line 2"):
        parse("[shop]\nwhen = header", "shop.toml")


def test_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        amqpsniff.open("samples/pika_mix.pcap", packs=tmp_path / "none.toml")


def test_packs_of_a_user(tmp_path: Path) -> None:
    """They are asked before ours; other columns stay those of ours."""
    file = tmp_path / "shop.toml"
    file.write_text(
        "[shop]\nframework = 'shop'\nwhen = 'exchange ~ ^x1$'\n"
        "operation = 'routing_key ~ ^(\\w+)'\nclient = 'client:product ~ Pika'\n"
        "application = 'client:platform'\n"
    )
    capture = amqpsniff.open("samples/pika_mix.pcap", packs=file)
    plain = amqpsniff.open("samples/pika_mix.pcap")
    columns = ["client_framework", "client_application"]
    (client, *_) = capture.table("connections", columns=columns).to_pylist()
    assert client["client_framework"] == "shop"
    assert client["client_application"].startswith("Python")
    columns = ["exchange", "routing_key", "framework", "operation"]
    for ours, others in zip(
        capture.table("messages", columns=columns).to_pylist(),
        plain.table("messages", columns=columns).to_pylist(),
        strict=True,
    ):
        shop = ours["exchange"] == "x1"
        assert ours["framework"] == ("shop" if shop else others["framework"])


@pytest.mark.parametrize(
    ("event", "codes"),
    [("RoutingSlipActivityFaulted", ("operation-failed",)), ("RoutingSlipCompleted", ())],
)
def test_routing_slips_that_fail(event: str, codes: tuple[str, ...]) -> None:
    exchange = f"MassTransit.Courier.Contracts:{event}"
    shape = Shape((exchange, "application/vnd.masstransit+json", None), frozenset(), frozenset())
    assert load().reading(shape).findings == codes


WORDS = (
    None, "", "orders", "n0001", "celeryev", "a.celery.pidbox", "_celery_delayed_27",
    "ErrorExchange_x", "hutch", "q_skipped", "x-error", "application/vnd.masstransit+json",
    "application/x-python-pickle", "Shop.Ordered, Shop",
)  # fmt: skip


@pytest.mark.parametrize("place", range(len(SHAPE)))
def test_words_that_are_alike_are_read_alike(place: int) -> None:
    """Whatever names came before, each has the reading that it would have alone."""
    packs = load()
    for word in WORDS:
        words = [None, None, None]
        words[place] = word
        shape = Shape(tuple(words), frozenset(("task", "id")))
        assert packs.reading(shape) == Packs(packs.packs).reading(shape)
