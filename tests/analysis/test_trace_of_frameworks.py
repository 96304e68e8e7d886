"""Traces over hops that only frameworks know: tasks of a task, calls of a call."""

from __future__ import annotations

from typing import Any

import pytest

import amqpsniff
from tests.cli.running import run
from tests.conftest import REPO

PACKS = REPO / "tests" / "captures" / "packs"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4731"


def published(name: str, **wanted: Any) -> list[str]:
    """Routing keys of the publishes that a trace has, replies left out, in the order of time."""
    found = amqpsniff.open(PACKS / f"{name}.pcap.gz").trace(**wanted)
    return [one.rows[0]["routing_key"] for one in found]


def key_of(name: str, operation: str) -> str:
    table = amqpsniff.open(PACKS / f"{name}.pcap.gz").table(
        "messages", columns=["operation", "message_key"]
    )
    rows = (row for row in table.to_pylist() if row["operation"] == operation)
    return str(next(rows)["message_key"])


def test_a_call_brings_about_others() -> None:
    keys = published("nameko", operation="shop.buy")
    assert [key for key in keys if "." in key or key == "added"] == [
        "shop.buy",
        "cart.add",
        "added",
        "shop.buy",
        "cart.add",
    ]


def test_what_led_to_a_message_is_not_what_it_brought_about() -> None:
    assert "shop.buy" not in published("nameko", operation="cart.add")


def test_a_task_with_the_task_it_sends_and_its_result() -> None:
    capture = amqpsniff.open(PACKS / "celery.pcap.gz")
    found = capture.trace(key=key_of("celery", "ctasks.place"))
    answers = [reply for one in found for reply in one.replies]
    tasks = [one.rows[0] for one in found if '"task"' in (one.rows[0]["headers"] or "")]
    assert [row["headers"].count("ctasks.ship") for row in tasks] == [0, 1]
    assert answers


@pytest.mark.parametrize("trace_id", [TRACE, TRACE.upper()])
def test_trace_id(trace_id: str) -> None:
    """A message and its dead letter have the same trace."""
    assert published("amqplib", trace_id=trace_id) == ["n", "n.dead"]


def test_nothing_of_that_kind() -> None:
    assert published("amqplib", trace_id="0" * 32) == []
    done = run("trace", str(PACKS / "nameko.pcap.gz"), "--operation", "cart.sell")
    assert done.err == "amqpsniff: warning: no row matches the options\n"
