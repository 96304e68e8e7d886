"""Messages by operation: counts, failures and times of real programs."""

from __future__ import annotations

import json
from typing import Any

import amqpsniff
from amqpsniff.analysis.report_tables import OPERATIONS, find
from tests.cli.running import run
from tests.conftest import REPO, SAMPLES
from tests.decode.amqp10.truth import capture

PACKS = REPO / "tests" / "captures" / "packs"


def rows(name: str, **part: Any) -> dict[tuple[Any, Any], dict[str, Any]]:
    """The rows by framework and operation."""
    table = amqpsniff.open(PACKS / f"{name}.pcap.gz").operations(**part)
    assert table.column_names == list(find(OPERATIONS).columns)
    return {(row["framework"], row["operation"]): row for row in table.to_pylist()}


def test_failures_come_first() -> None:
    found = rows("celery")
    assert next(iter(found)) == ("celery-result", "FAILURE")
    assert found["celery-result", "FAILURE"]["error_type"] == "KeyError"
    charge = found["celery", "ctasks.charge"]
    assert (charge["published"], charge["delivered"], charge["retried"]) == (5, 5, 1)
    assert charge["most_retries"] == 1
    assert charge["work_p95_ms"] > 1000  # the retry waits in the worker for its ETA


def test_a_part() -> None:
    whole, part = rows("dramatiq"), rows("dramatiq", method="basic.deliver")
    (one,), (other,) = whole.values(), part.values()
    assert (one["published"], one["delivered"], one["failed"], one["refused"]) == (6, 6, 2, 1)
    assert (other["published"], other["delivered"], other["per_second"]) == (0, 6, None)
    assert (one["retried"], one["most_retries"]) == (2, 1)
    assert (other["retried"], other["most_retries"]) == (0, None)  # of publishes, as `retried`


def test_traffic_of_no_framework_is_counted() -> None:
    (row,) = amqpsniff.open(SAMPLES / "pika_mix.pcap").operations().to_pylist()
    assert (row["framework"], row["operation"], row["published"]) == (None, None, 53)


def test_commands() -> None:
    capture = str(PACKS / "nameko.pcap.gz")
    told = run("summary", capture, "--by", "operation", "--format", "json")
    assert told.code == 0
    assert {row["operation"] for row in json.loads(told.out)} == {
        None,
        "cart.add",
        "shop.buy",
        "added",
    }
    text = run("messages", capture, "--by", "operation", "--routing-key", "cart.add")
    assert "cart.add" in text.out
    assert "shop.buy" not in text.out
    refused = run("summary", capture, "--by", "queue")
    assert (refused.code, refused.err) == (
        2,
        "amqpsniff: nothing by `queue`; there is operation\n",
    )


def test_amqp10_counts() -> None:
    found = amqpsniff.open(capture("rpc"))
    (row,) = found.operations().to_pylist()
    sent = found.summary()["messages"]
    assert {one["method"]: one["count"] for one in sent} == {
        "send": row["published"],
        "receive": row["delivered"],
    }
