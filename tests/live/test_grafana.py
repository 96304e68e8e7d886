"""The dashboard for Grafana asks for metrics that there are, by labels that they have."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from amqpsniff.capture.tail import follow
from amqpsniff.live.figures import Figures
from amqpsniff.live.metrics import Collector
from amqpsniff.live.watch import Watch
from amqpsniff.options import Options
from tests.conftest import REPO, SAMPLES

PAGE = REPO / "dashboards" / "grafana.json"
GIVEN_BY_PROMETHEUS = {"instance", "le"}


def metrics() -> dict[str, set[str]]:
    """Samples of a run and their labels, by name."""
    pytest.importorskip("prometheus_client")
    figures = Figures(10)
    watch = Watch(
        follow([str(SAMPLES / "pika_mix.pcap")]), Options(), ("findings",), census=figures,
        time_deliveries=True,
    )  # fmt: skip
    try:
        while watch.source.packets < 568:
            watch.step()
            list(watch.rows())
        found: dict[str, set[str]] = {"amqpsniff_packets_dropped_total": set()}
        for family in Collector(watch).collect():
            for sample in family.samples:
                found.setdefault(sample.name, set()).update(sample.labels)
    finally:
        watch.close()
    return found


def expressions() -> list[str]:
    """Queries of all panels and variables."""
    page: dict[str, Any] = json.loads(PAGE.read_text(encoding="utf-8"))
    queries = [target["expr"] for panel in page["panels"] for target in panel["targets"]]
    variables = [one["query"] for one in page["templating"]["list"] if one["type"] == "query"]
    return queries + variables


def test_every_metric_is_there() -> None:
    there = metrics()
    asked = {name for text in expressions() for name in re.findall(r"amqpsniff_\w+", text)}
    assert len(asked) > 10
    assert asked <= there.keys()


def test_every_label_is_there() -> None:
    there = metrics()
    for text in expressions():
        (name, *_) = re.findall(r"amqpsniff_\w+", text)
        for labels in re.findall(r"by \(([^)]*)\)", text):
            assert {one.strip() for one in labels.split(",")} <= there[name] | GIVEN_BY_PROMETHEUS


def test_every_metric_but_totals_of_names_is_shown() -> None:
    """A metric that is added is shown too."""
    families = {re.sub(r"_(total|bucket|count|sum)$", "", name) for name in metrics()}
    asked = {
        re.sub(r"_(total|bucket)$", "", name)
        for text in expressions()
        for name in re.findall(r"amqpsniff_\w+", text)
    }
    hidden = {"amqpsniff_exchange_delivered_messages", "amqpsniff_queue_delivered_bytes"}
    assert families - asked == hidden


def test_panels_do_not_lie_on_each_other() -> None:
    page = json.loads(PAGE.read_text(encoding="utf-8"))
    cells = [
        (x, y)
        for panel in page["panels"]
        for place in [panel["gridPos"]]
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells))
    assert len({panel["id"] for panel in page["panels"]}) == len(page["panels"])
