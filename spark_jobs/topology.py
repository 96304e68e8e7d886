"""The topology that the traffic shows: who publishes where, what is bound to what, who consumes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from amqpsniff.spark_jobs.reports import Config

TITLE = "Topology"

MESSAGES = (
    "method string, exchange string, routing_key string, queue string, client string, "
    "body_size long, body_captured long, status string"
)
FRAMES = "method string, exchange string, routing_key string, queue string, arguments string"

BINDS = ("queue.bind", "exchange.bind")


def build(spark: SparkSession, config: Config) -> DataFrame:
    """The edges of the graph, from clients over exchanges and queues to clients.

    Columns: source_kind, source, target_kind, target (kinds: `client`, `exchange`, `queue`; the
    default exchange is ""), label (a binding's routing key, else null), messages, octets (null for
    bindings). A queue that is not known, of a consumer that began before the capture, is left out.
    """
    from pyspark.sql import functions as f

    from amqpsniff.spark_jobs.reports import host, load, sent_octets

    rows = load(spark, config, "messages", MESSAGES).withColumn("client", host())
    none = f.lit(None).cast("string")
    published = rows.where("method = 'basic.publish'")
    delivered = rows.where("method IN ('basic.deliver', 'basic.get-ok') AND queue IS NOT NULL")
    counts = (f.count("*").alias("messages"), f.sum(sent_octets()).alias("octets"))
    edges = [
        _edge(published, "client", "client", "exchange", "exchange", none).agg(*counts),
        _edge(
            published.where("exchange = ''"), "exchange", "exchange", "queue", "routing_key", none
        ).agg(*counts),
        _edge(delivered, "queue", "queue", "client", "client", none).agg(*counts),
    ]
    binds = load(spark, config, "frames", FRAMES).where(f.col("method").isin(*BINDS))
    binds = binds.withColumn("exchange", f.coalesce("exchange", _argument("source")))
    of_queues = binds.where("method = 'queue.bind'")
    of_exchanges = binds.where("method = 'exchange.bind'")
    of_exchanges = of_exchanges.withColumn("queue", _argument("destination"))
    bare = (f.lit(None).cast("long").alias("messages"), f.lit(None).cast("long").alias("octets"))
    for bound, kind in ((of_queues, "queue"), (of_exchanges, "exchange")):
        grouped = _edge(bound, "exchange", "exchange", kind, "queue", f.col("routing_key"))
        edges.append(grouped.agg(f.count("*").alias("n")).drop("n").select("*", *bare))
    whole = edges[0]
    for more in edges[1:]:
        whole = whole.union(more)
    return whole.orderBy(f.desc_nulls_last("messages"), "source_kind", "source", "target")


def _argument(name: str) -> Any:
    """A text among the arguments; octets that are not UTF-8 are U+FFFD, as in columns."""
    from pyspark.sql import functions as f

    octets = f.unbase64(f.get_json_object("arguments", f"$.{name}.base64"))
    text = f.make_valid_utf8(octets.cast("string"))
    return f.coalesce(text, f.get_json_object("arguments", f"$.{name}"))


def _edge(
    rows: DataFrame, source_kind: str, source: str, target_kind: str, target: str, label: Any
) -> Any:
    from pyspark.sql import functions as f

    return rows.groupBy(
        f.lit(source_kind).alias("source_kind"),
        f.col(source).alias("source"),
        f.lit(target_kind).alias("target_kind"),
        f.col(target).alias("target"),
        label.alias("label"),
    )


MOST_EDGES = 60
COLUMN_OF = {("client", "from"): 0, ("exchange", ""): 1, ("queue", ""): 2, ("client", "to"): 3}
"""Where the nodes of a graph stand, from left to right."""


def charts(rows: list[dict[str, Any]]) -> list[dict[str, Any] | None]:
    """The graph of the busiest edges, publishers on the left, consumers on the right."""
    from amqpsniff.quantities import UNKNOWN

    nodes: dict[tuple[int, str], int] = {}
    places: list[dict[str, Any]] = []
    edges = []
    counts = [0, 0, 0, 0]
    for row in rows[:MOST_EDGES]:
        ends = []
        for end, side in (("source", "from"), ("target", "to")):
            kind, name = row[f"{end}_kind"], row[end]
            column = COLUMN_OF.get((kind, side), COLUMN_OF.get((kind, ""), 0))
            if (column, name) not in nodes:
                nodes[column, name] = counts[column]
                shown = "(default exchange)" if name == "" else name or UNKNOWN
                places.append({"x": column, "y": -counts[column], "name": shown, "kind": kind})
                counts[column] += 1
            ends.append((column, nodes[column, name]))
        (x, y), (x2, y2) = ends
        edges.append({"x": x, "y": -y, "x2": x2, "y2": -y2, "messages": row["messages"] or 0})
    if not edges:
        return []
    axis = {"axis": None, "type": "quantitative", "scale": {"domain": [-0.4, 3.4]}}
    down = {"axis": None, "type": "quantitative"}
    return [
        {
            "title": "Clients → exchanges → queues → clients",
            "width": "container",
            "height": max(160, 26 * max(counts)),
            "layer": [
                {
                    "data": {"values": edges},
                    "mark": {"type": "rule", "tooltip": True, "opacity": 0.6, "color": "#8a94a6"},
                    "encoding": {
                        "x": {"field": "x", **axis},
                        "y": {"field": "y", **down},
                        "x2": {"field": "x2"},
                        "y2": {"field": "y2"},
                        "strokeWidth": {
                            "field": "messages",
                            "type": "quantitative",
                            "scale": {"type": "symlog", "range": [1, 6]},
                            "legend": None,
                        },
                    },
                },
                {
                    "data": {"values": places},
                    "mark": {"type": "circle", "size": 90, "opacity": 1, "tooltip": True},
                    "encoding": {
                        "x": {"field": "x", **axis},
                        "y": {"field": "y", **down},
                        "color": {
                            "field": "kind",
                            "type": "nominal",
                            "title": None,
                            "legend": {"orient": "bottom"},
                        },
                    },
                },
                {
                    "data": {"values": places},
                    "mark": {"type": "text", "dy": -10, "fontSize": 11},
                    "encoding": {
                        "x": {"field": "x", **axis},
                        "y": {"field": "y", **down},
                        "text": {"field": "name"},
                    },
                },
            ],
        }
    ]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the job: show the first rows, or write them all to a folder; the exit code."""
    from amqpsniff.spark_jobs.reports import run_job

    return run_job("topology", argv)


if __name__ == "__main__":
    sys.exit(main())
