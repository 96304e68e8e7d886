"""The charts of a report, from its data."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from amqpsniff.analysis.graph import Graph
from amqpsniff.analysis.times import offset_ns, zone_name
from amqpsniff.analysis.top_rows import Row, close_reason, end_of
from amqpsniff.report import charts
from amqpsniff.report.drawing import Drawing, Line, Node
from amqpsniff.report.sequences import name_of
from amqpsniff.spec import SIDES
from amqpsniff.units import duration, octets
from amqpsniff.wire_text import harmless, shortened

if TYPE_CHECKING:
    from amqpsniff.analysis.report_data import ReportData

MAX_POINTS, MIN_POINTS = 120, 24
"""Points of a line: what can be distinguished on half a screen, and what still shows a course."""

PER_POINT = 5
"""Events to a point: with fewer each of them would be a peak, at a rate that there never was."""

MAX_LIVES = 60
"""Connections drawn as bars: what fits on a screen or two."""

MAX_NAME = 18
"""Characters of a name beside a bar; the address after it distinguishes equal names."""

UTC_FROM_NS = 300_000_000_000
"""Length from which on times are those of the clock, not seconds since the beginning."""

QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
DELAYS = {"confirm": "Confirms", "ack": "Acknowledgements", "reply": "Replies"}

END_COLOURS = {
    "closed by the client": "#3b7dd8",
    "closed by the broker": "#7a4fb5",
    "closed with an error": "#d3382f",
    "TCP reset": "#e07b1a",
    "TCP ended without a close": "#c2a000",
    "open when the capture ended": "#3f9f63",
}
"""Colours of the bars of connections by how these ended, seen on light and dark ground."""


Spec = dict[str, Any]


class Figures:
    """Makes charts of a data.

    Attributes:
        step_ns: Width of a point of the lines; None without several times.
        utc: Whether times are those of the clock; otherwise seconds since the beginning.
    """

    def __init__(self, data: ReportData) -> None:
        self._data = data
        steps = data.steps
        self._points = max(MIN_POINTS, min(_events(data) // PER_POINT, MAX_POINTS))
        groups = steps.groups(self._points)
        self._first_ns = steps.at(groups[0].start) if groups else 0
        last_ns = steps.at(groups[-1].stop) if groups else 0
        self.step_ns = (last_ns - self._first_ns) // len(groups) if steps.several else None
        self.utc = last_ns - self._first_ns >= UTC_FROM_NS
        self._clock = zone_name(data.zone) if self.utc else None
        self._ahead_ns = offset_ns(self._first_ns, data.zone)
        self._times = [self._time(steps.at(group.start)) for group in groups]
        self._span = (self._time(self._first_ns), self._time(last_ns))
        spans = list(data.spans.values())
        self._captured = [
            len(spans) < 2
            or any(
                begin < steps.at(group.stop) and end >= steps.at(group.start)
                for begin, end in spans
            )
            for group in groups
        ]

    def rates(self) -> list[Spec | None]:
        """Messages and bytes per second."""
        rates = self._data.rates
        named = {
            "published": "published", "delivered": "delivered", "confirmed": "confirmed",
            "acked": "acknowledged",
        }  # fmt: skip
        messages = {
            text: rates[name].rates(self._points)
            for name, text in named.items()
            if rates[name].total
        }
        sent = {
            text: rates[name].rates(self._points)
            for name, text in (("client", "from clients"), ("server", "from the broker"))
            if rates[name].total
        }
        specs: list[Spec | None] = []
        if messages:
            specs.append(self._courses(messages, _titled("Messages", messages), "per second"))
        if sent:
            title = _titled("Bytes of AMQP", sent)
            specs.append(self._courses(sent, title, "bytes per second"))
        return specs

    def levels(self) -> list[Spec | None]:
        """Outstanding messages, and open connections."""
        levels = self._data.levels
        depth = {name: levels[name].levels(self._points) for name in ("unacked", "unconfirmed")}
        depth = {name: values for name, values in depth.items() if any(values)}
        specs: list[Spec | None] = []
        if depth:
            title = " and ".join(depth).capitalize()
            specs.append(self._courses(depth, title, "messages", levels=True))
        open_ = levels["connections"].levels(self._points)
        if any(open_):
            specs.append(self._courses({"open": open_}, "Open connections", "", levels=True))
        return specs

    def latencies(self) -> list[Spec | None]:
        """Quantiles of latencies over time."""
        specs: list[Spec | None] = []
        for name, title in DELAYS.items():
            delays = self._data.delays[name]
            if not delays.number:
                continue
            rows = delays.quantiles(tuple(QUANTILES.values()), self._points)
            series = {
                kind: [_milliseconds(row[place]) for row in rows]
                for place, kind in enumerate(QUANTILES)
            }
            specs.append(
                charts.courses(
                    series, f"{title}: time taken", self._times, "ms", clock=self._clock, log=True
                )
            )
        return specs

    def spreads(self) -> list[Spec | None]:
        """Distributions of latencies."""
        specs: list[Spec | None] = []
        for name, title in DELAYS.items():
            delays = self._data.delays[name]
            if not delays.number:
                continue
            places = [
                {"low": low / 1e6, "high": high / 1e6, "share": 100 * number / delays.number}
                for low, high, number in delays.spread()
            ]
            found = delays.overall(tuple(QUANTILES.values()))
            marks = {
                f"{kind} {duration(value)}": value / 1e6
                for kind, value in zip(QUANTILES, found, strict=True)
                if value is not None
            }
            specs.append(charts.spread(places, f"{title}: how long they took", "ms", marks))
        return specs

    def lives(self, rows: Collection[Row]) -> Spec | None:
        """Connections as bars, in the order in which they began.

        A bar reaches to the beginning of its capture where the connection is older, and to its end
        where it stayed open.
        """
        shown = sorted(rows, key=lambda row: row["start_ns"] or 0)
        data = [self._lifetime(row) for row in shown if row["start_ns"] is not None]
        data.sort(key=lambda life: life["begin"])
        return charts.lives(data, "", END_COLOURS, clock=self._clock, span=self._span)

    def _lifetime(self, row: Row) -> Row:
        sent = [row[f"{side}_bytes"] for side in SIDES]
        about = [] if None in sent else [octets(sum(sent))]
        if row["end_ns"] is not None:
            about.insert(0, duration(row["end_ns"] - row["start_ns"]))
        if row["midstream"]:
            about.append("began before the capture")
        if why := close_reason(row):
            about.append(shortened(harmless(why), 120))
        first_ns, last_ns = self._data.spans[row["capture"]]
        begin_ns = first_ns if row["midstream"] else row["start_ns"]
        end_ns = last_ns if row["closed_by"] is None else row["end_ns"]
        return {
            "name": name_of(row, MAX_NAME),
            "kind": end_of(row),
            "begin": self._time(begin_ns),
            "end": self._time(begin_ns if end_ns is None else end_ns),
            "about": " · ".join(about),
        }

    def _courses(
        self, series: dict[str, list[float]], title: str, unit: str, *, levels: bool = False
    ) -> Spec | None:
        rounded = {
            name: [
                round(value, 3) if captured else None
                for value, captured in zip(values, self._captured, strict=True)
            ]
            for name, values in series.items()
        }
        return charts.courses(rounded, title, self._times, unit, clock=self._clock, levels=levels)

    def _time(self, time_ns: int) -> float:
        """A time in the form of the charts."""
        if self.utc:
            return (time_ns + self._ahead_ns) / 1e6  # a page has no time zones of its own
        start = self._data.start_ns
        since = time_ns - (self._first_ns if start is None else start)
        return round(max(since, 0) / 1e9, 6)  # the first step may begin before the capture


def _titled(title: str, series: Collection[str]) -> str:
    """A title that says what a single line is: only several have a legend."""
    return f"{title} {next(iter(series))}" if len(series) == 1 else title


def _events(data: ReportData) -> int:
    """The number of messages and replies to draw over time."""
    messages = sum(data.rates[name].total for name in ("published", "delivered"))
    return messages + data.delays["reply"].number


def over_time(rows: list[Row], limit: int) -> list[Row]:
    """At most `limit` rows: half are the first ones, half the first of equal parts of the time."""
    shown, rest = rows[: limit // 2], rows[limit // 2 :]
    times = [row["start_ns"] for row in rows if row["start_ns"] is not None]
    begin = min(times, default=0)
    width = (max(times, default=0) - begin) // (limit - len(shown)) + 1
    parts: dict[int, Row] = {}
    for row in rest:
        if row["start_ns"] is not None:
            parts.setdefault((row["start_ns"] - begin) // width, row)
    shown += parts.values()
    taken = {id(row) for row in shown}
    return shown + [row for row in rest if id(row) not in taken][: limit - len(shown)]


def topology(result: Mapping[str, Any]) -> str:
    """The picture of the topology as SVG; empty without nodes."""
    graph = Graph(result)
    if not graph.nodes:
        return ""
    heaviest = max((edge.weight for edge in graph.edges), default=0)
    edges = [
        Line(
            edge.start,
            edge.end,
            edge.label,
            edge.weight / heaviest if heaviest else 0.0,
            edge.bound,
        )
        for edge in graph.edges
    ]
    nodes = [Node(kind, lines) for kind, lines in graph.nodes]
    kinds = ("publisher", "exchange", "queue", "consumer")
    label = "Publishers, exchanges, queues and consumers, and what went between them"
    return Drawing(nodes, edges, kinds, label).svg()


def capture_name(names: list[str]) -> str:
    """Name of the captures for a title."""
    first = harmless(PurePath(names[0]).name) if names else ""
    return first if len(names) < 2 else f"{first} and {len(names) - 1} more"


def _milliseconds(time_ns: float | None) -> float | None:
    return None if time_ns is None else float(f"{time_ns / 1e6:.4g}")
