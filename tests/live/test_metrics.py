"""Metrics that Prometheus can read, while a broker is watched."""

from __future__ import annotations

import socket
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import run
from tests.live.broker import Broker
from tests.live.clients import with_aio_pika, with_pika
from tests.live.sniffing import Sniffer
from tests.waiting import PATIENCE, free_port, wait_for


def scraped(port: int) -> dict[str, float]:
    """Samples by name and labels, as the parser of OpenMetrics reads them."""
    parser = pytest.importorskip("prometheus_client.openmetrics.parser")
    asked = urllib.request.Request(
        f"http://127.0.0.1:{port}/metrics", headers={"Accept": "application/openmetrics-text"}
    )
    with urllib.request.urlopen(asked, timeout=PATIENCE) as answer:
        assert answer.headers["Content-Type"].startswith("application/openmetrics-text")
        text = answer.read().decode()
    return {
        sample.name
        + "".join(f" {value}" for _, value in sorted(sample.labels.items())): sample.value
        for family in parser.text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.mark.broker
def test_metrics_of_a_broker(broker: Broker, tmp_path: Path) -> None:
    """Counters, gauges and histograms say what clients did."""
    port = free_port()
    sniffer = Sniffer(
        "-i", "lo", "--port", str(broker.port), "-t", "findings", "--metrics", f":{port}",
        folder=tmp_path,
    )  # fmt: skip
    began = time.monotonic()
    with_pika("127.0.0.1", broker.port)
    with_aio_pika("127.0.0.1", broker.port)
    wait_for(lambda: scraped(port).get("amqpsniff_connections_ended_total") == 2)
    mismatch = "amqpsniff_findings_total declaration-mismatch error"
    wait_for(lambda: mismatch in scraped(port))
    found: dict[str, Any] = scraped(port)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", port))  # loopback, but not what was asked for
    assert sniffer.stop() == 0, sniffer.err
    assert found["amqpsniff_packets_total"] > 100
    assert found["amqpsniff_packets_dropped_total"] == 0
    assert found["amqpsniff_connections"] == 0
    assert found["amqpsniff_unacked_messages"] == 0
    assert found["amqpsniff_methods_total basic.publish"] == 121
    assert found["amqpsniff_messages_total acked"] == 112
    assert found["amqpsniff_messages_total returned"] == 1
    assert found["amqpsniff_exchange_published_messages_total amq.topic /"] == 60
    assert found["amqpsniff_queue_delivered_messages_total aio /"] == 60
    assert found["amqpsniff_ack_seconds_count"] == found["amqpsniff_ack_seconds_bucket +Inf"] == 112
    delivered = "amqpsniff_queue_delivered_messages_total"
    deliveries = sum(count for name, count in found.items() if name.startswith(delivered))
    assert found["amqpsniff_deliver_seconds_count"] == deliveries > 112
    assert 0 < found["amqpsniff_confirm_seconds_sum"] < 121 * (time.monotonic() - began)
    assert found[mismatch] == 1


def test_addresses() -> None:
    """An address that is none, or taken, is said in one line."""
    done = run("live", "-i", "lo", "--format", "ndjson", "--metrics", "nowhere")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "write :9419" in done.err
    done = run("live", "-i", "lo", "--format", "ndjson", "--metrics", ":\u00b2")
    assert (done.code, "write :9419" in done.err) == (2, True)
