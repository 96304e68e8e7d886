"""Figures of a live run for Prometheus: counters, gauges and histograms, in OpenMetrics.

Served by prometheus_client from a thread of its own, which takes the figures under the run's lock.
Names of exchanges and queues come from the wire and may be many: the `MAX_NAMES` most used are
told apart, the others are one, called `(others)`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from amqpsniff.errors import UsageError
from amqpsniff.installation import how_to_add

if TYPE_CHECKING:
    from amqpsniff.live.figures import Figures
    from amqpsniff.live.watch import Watch

MAX_NAMES = 100
"""Names of one metric: each is a time series, and what stores them pays for each."""

OTHERS = "(others)"
UNKNOWN = "(unknown)"
"""A name that is not in the capture; the default exchange has the empty one."""

LOOPBACK = "127.0.0.1"

BUCKETS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0,
           2.5, 5.0, 10.0, 30.0, 60.0)  # fmt: skip
"""Bounds of the histograms in seconds."""

_WAYS = (("published", 0), ("delivered", 2))


class Collector:
    """Makes the metrics of a run, whose census is `Figures`, when they are asked for."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._figures: Figures = watch.census

    def collect(self) -> Iterator[Any]:
        """Every metric, as prometheus_client has them."""
        with self._watch.lock:
            metrics = [*self._packets(), *self._traffic(), *self._names(), *self._latencies()]
            metrics += self._findings()
        return iter(metrics)

    def _packets(self) -> Iterator[Any]:
        from prometheus_client.core import CounterMetricFamily as Counter

        watch = self._watch
        yield Counter("amqpsniff_packets", "Packets taken.", value=watch.source.packets)
        statistics = watch.source.statistics()
        if statistics is not None:
            dropped = statistics.dropped_by_system or 0
            description = "Packets that the kernel dropped because this program was too slow."
            yield Counter("amqpsniff_packets_dropped", description, value=dropped)
        totals = watch.pipeline.totals
        description = "Bytes of AMQP connections that ended which are missing from the capture."
        yield Counter("amqpsniff_lost_bytes", description, value=totals.lost_bytes)

    def _traffic(self) -> Iterator[Any]:
        from prometheus_client.core import CounterMetricFamily as Counter
        from prometheus_client.core import GaugeMetricFamily as Gauge

        figures = self._figures
        description = "AMQP connections that are open."
        yield Gauge("amqpsniff_connections", description, value=figures.open)
        description = "AMQP connections that ended."
        yield Counter("amqpsniff_connections_ended", description, value=figures.ended)
        open_now = figures.outstanding()
        description = (
            "Deliveries that were not acknowledged yet, at least: as far as that is known."
        )
        yield Gauge("amqpsniff_unacked_messages", description, value=open_now[0])
        description = "Publishes that were not confirmed yet, at least: as far as that is known."
        yield Gauge("amqpsniff_unconfirmed_messages", description, value=open_now[1])
        methods = Counter("amqpsniff_methods", "Method frames.", labels=["method"])
        for name, count in sorted(figures.census.counts().items()):
            methods.add_metric([name], count)
        yield methods
        outcomes = Counter("amqpsniff_messages", "Messages by outcome.", labels=["outcome"])
        for name, (count, _) in self._watch.pipeline.outcomes().items():
            outcomes.add_metric([name], count)
        yield outcomes

    def _names(self) -> Iterator[Any]:
        """Messages and bytes by exchange and by queue."""
        from prometheus_client.core import CounterMetricFamily as Counter

        for label in ("exchange", "queue"):
            rows, labels = _most_used(self._figures.counts_of(label)), ["vhost", label]
            for way, place in _WAYS:
                if label == "queue" and way == "published":
                    continue
                prefix = f"amqpsniff_{label}_{way}"
                messages = Counter(f"{prefix}_messages", f"Messages {way}.", labels=labels)
                octets = Counter(f"{prefix}_bytes", f"Bytes of bodies {way}.", labels=labels)
                for names, counts in rows:
                    messages.add_metric(names, counts[place])
                    octets.add_metric(names, counts[place + 1])
                yield from (messages, octets)

    def _latencies(self) -> Iterator[Any]:
        from prometheus_client.core import HistogramMetricFamily as Histogram

        outcomes = self._watch.pipeline.outcomes()
        for outcome, name, description in (
            ("confirmed", "confirm", "Time from a publish to its confirm."),
            ("acked", "ack", "Time from a delivery to its acknowledgement."),
        ):
            if outcome in outcomes:
                metric = Histogram(f"amqpsniff_{name}_seconds", description, unit="seconds")
                _add_spread(metric, [], outcomes[outcome][1])
                yield metric
        if self._watch.delivery_times is not None:
            description = "Time from a publish to its delivery, where both were seen."
            metric = Histogram("amqpsniff_deliver_seconds", description, unit="seconds")
            _add_spread(metric, [], self._watch.delivery_times)
            yield metric
        replies = Histogram(
            "amqpsniff_reply_seconds", "Time from a request to its reply.", labels=["method"],
            unit="seconds",
        )  # fmt: skip
        for name, spread in sorted(self._watch.pipeline.replies().items()):
            _add_spread(replies, [name], spread)
        yield replies

    def _findings(self) -> Iterator[Any]:
        from prometheus_client.core import CounterMetricFamily as Counter

        found = Counter("amqpsniff_findings", "What was found.", labels=["code", "severity"])
        for (code, severity), count in sorted(self._watch.counted_findings().items()):
            found.add_metric([code, severity], count)
        yield found


def _most_used(rows: Iterable[tuple[Any, list[int]]]) -> list[tuple[list[str], list[int]]]:
    """The most used names, with their virtual hosts and counts, all others as one."""
    ranked = sorted(rows, key=lambda row: -(row[1][0] + row[1][2]))
    named = [
        ([UNKNOWN if name is None else str(name) for name in names], counts)
        for names, counts in ranked
    ]
    rest = [
        sum(column) for column in zip(*(counts for _, counts in named[MAX_NAMES:]), strict=True)
    ]
    return named[:MAX_NAMES] + ([([OTHERS, OTHERS], rest)] if rest else [])


def _add_spread(metric: Any, labels: list[str], spread: Any) -> None:
    """Add a `Histogram` of times in ns to a histogram in seconds."""
    number, total, _ = spread.facts()
    counts = spread.upto(*(round(bound * 1e9) for bound in BUCKETS))
    buckets = [(str(bound), count) for bound, count in zip(BUCKETS, counts, strict=True)]
    metric.add_metric(labels, [*buckets, ("+Inf", number)], sum_value=total / 1e9)


class Server:
    """Serves the metrics of a run over HTTP, at any path.

    Raises UsageError when prometheus_client is not installed or the address cannot be had.

    Args:
        address: `:PORT` for loopback only, or `HOST:PORT`; `0.0.0.0:PORT` for all addresses.
    """

    def __init__(self, address: str, watch: Watch) -> None:
        host, port = parse_address(address)
        try:
            from prometheus_client import CollectorRegistry, start_http_server
        except ImportError:
            raise UsageError(
                f"metrics need prometheus_client; run `{how_to_add('live')}`"
            ) from None
        registry = CollectorRegistry(auto_describe=False)
        registry.register(Collector(watch))
        try:
            self._server, self._thread = start_http_server(port, host, registry)
        except OSError as error:
            reason = error.strerror or error
            raise UsageError(f"metrics at {address}: cannot listen there: {reason}") from None

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def parse_address(address: str) -> tuple[str, int]:
    """Host and port; raises UsageError if invalid."""
    host, _, port = address.rpartition(":")
    if not port.isdecimal() or not 0 < int(port) < 65_536:
        raise UsageError(f"invalid address of metrics {address!r}; write :9419 or 0.0.0.0:9419")
    return host.strip("[]") or LOOPBACK, int(port)
