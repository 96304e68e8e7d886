"""How long things took, and what became of messages: counted batch by batch in bounded memory."""

from __future__ import annotations

from collections import Counter
from typing import Any, Literal

from .counting import counted, is_one_of, texts

FRAME_COLUMNS = ("method", "response_ns")
MESSAGE_COLUMNS = (
    "method", "outcome", "outcome_ns", "reply_to", "published_ns", "delivery_number", "match",
    "request_ns", "late",
)  # fmt: skip
"""Columns of the two tables that are needed."""

PUBLISH = "basic.publish"
DELIVERIES = frozenset(("basic.deliver", "basic.get-ok"))
QUANTILES = (0.5, 0.95, 0.99)

FAN_OUT_TOLD = 16
"""Deliveries of one publish that are told apart; more of them count together."""


class Latencies:
    """Counts batches of frames and messages.

    Attributes:
        requests, outcomes: Times by the request's method, and by (publish or delivery, outcome).
        journeys, service, calls: Times from a publish to its deliveries, from a request to its
            reply's publish, and to its reply's delivery.
        ended: Messages by (publish or delivery, outcome), null outcomes left out.
        matches: Deliveries by how sure their publish is.
        fan_out: Publishes by how many deliveries there are of them at least.
        asked, late: Requests with `reply_to`, and replies that came too late.
        delivered, again: Deliveries, and those of them that were not the first.
    """

    def __init__(self) -> None:
        from amqpsniff.tables.histogram import Histogram

        self.requests: dict[Any, Any] = {}
        self.outcomes: dict[Any, Any] = {}
        self.journeys, self.service, self.calls = Histogram(), Histogram(), Histogram()
        self.ended: Counter[tuple[str, str]] = Counter()
        self.matches: Counter[str] = Counter()
        self.fan_out: Counter[int] = Counter()
        self.asked = self.late = self.delivered = self.again = 0

    def add_frames(self, batch: Any) -> None:
        """Count a batch of the frames table."""
        _count(self.requests, batch.column("method"), batch.column("response_ns"))

    def add_messages(self, batch: Any) -> None:
        """Count a batch of the messages table."""
        methods = batch.column("method")
        for name, wanted in (("publish", frozenset((PUBLISH,))), ("delivery", DELIVERIES)):
            rows = batch.select(MESSAGE_COLUMNS).filter(is_one_of(methods, wanted))
            if rows.num_rows:
                self._add_outcomes(name, rows)
                if name == "publish":
                    self._add_publishes(rows)
                else:
                    self._add_deliveries(rows)

    def _add_outcomes(self, name: str, rows: Any) -> None:
        outcomes = rows.column("outcome")
        for outcome, number in counted(outcomes):
            self.ended[name, outcome] += number
        times: dict[Any, Any] = {
            key[1]: one for key, one in self.outcomes.items() if key[0] == name
        }
        _count(times, outcomes, rows.column("outcome_ns"), leave_out="automatic")
        self.outcomes |= {(name, outcome): one for outcome, one in times.items()}

    def _add_publishes(self, rows: Any) -> None:
        addresses = rows.column("reply_to")
        self.asked += len(addresses) - addresses.null_count
        _count_all(self.service, rows.column("request_ns"))
        self._add_late(rows)

    def _add_deliveries(self, rows: Any) -> None:
        matches = rows.column("match")
        numbers = rows.column("delivery_number")
        self.delivered += len(matches)
        self.matches.update(dict(counted(matches)))
        self.again += numbers.null_count - matches.null_count
        for number, publishes in counted(numbers):
            if number <= FAN_OUT_TOLD:
                self.fan_out[number] += publishes
        _count_all(self.journeys, rows.column("published_ns"))
        _count_all(self.calls, rows.column("request_ns"))

    def _add_late(self, rows: Any) -> None:
        import pyarrow.compute as pc

        late = rows.column("late")
        if late.null_count < len(late):
            self.late += pc.sum(late).as_py() or 0

    # what comes out

    def report(self) -> dict[str, Any]:
        """What the summary says of it, as JSON has it; times in nanoseconds."""
        return {
            "outcomes": [
                {"message": name, "outcome": outcome, "count": number, **times}
                for (name, outcome), number in self.ended.most_common()
                for times in (_times(self.outcomes.get((name, outcome))),)
            ],
            "requests": [
                {"method": method, "count": times.count, **_times(times)}
                for method, times in sorted(self.requests.items(), key=lambda one: -one[1].count)
            ],
            "journeys": self._journeys(),
            "calls": {
                "requests": self.asked,
                "replies": self.service.count,
                "replies_delivered": self.calls.count,
                "late": self.late,
                "reply": _times(self.service),
                "round_trip": _times(self.calls),
            },
        }

    def _journeys(self) -> dict[str, Any]:
        fan_out = {
            str(number): self.fan_out[number] - self.fan_out[number + 1]
            for number in sorted(self.fan_out)
        }
        matched = {name: self.matches[name] for name in ("exact", "likely", "ambiguous")}
        return {
            "deliveries": self.delivered,
            **matched,
            "unmatched": self.delivered - sum(matched.values()),
            "again": self.again,
            "fan_out": {number: publishes for number, publishes in fan_out.items() if publishes},
            **_times(self.journeys),
        }


def _times(histogram: Any) -> dict[str, int | None]:
    """Quantiles in nanoseconds; null where there is no time."""
    names = ("p50_ns", "p95_ns", "p99_ns")
    if histogram is None or not histogram.count:
        return dict.fromkeys((*names, "max_ns"))
    quantiles = histogram.quantiles(*QUANTILES)
    return dict(zip(names, quantiles, strict=True)) | {"max_ns": histogram.largest}


def _count(found: dict[Any, Any], groups: Any, times: Any, leave_out: str = "") -> None:
    """Count times in histograms by the text of their group; nulls do not count."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from amqpsniff.tables.histogram import Histogram, count_grouped

    if times.null_count == len(times):
        return
    if times.null_count:
        known = pc.is_valid(times)
        groups, times = groups.filter(known), times.filter(known)
    if not pa.types.is_dictionary(groups.type):
        groups = groups.dictionary_encode()
    if groups.null_count:
        known = pc.is_valid(groups)
        groups, times = groups.filter(known), times.filter(known)
    names = texts(groups) or []
    used = [name for name, _ in counted(groups) if name != leave_out]
    for name in used:
        if name not in found:
            found[name] = Histogram()
    histograms = [found[name] if name in used else None for name in names]
    count_grouped(histograms, _buffer(groups.indices, "i"), _buffer(times, "q"))


def _count_all(histogram: Any, times: Any) -> None:
    """Count times that are not null."""
    from amqpsniff.tables.histogram import count_all

    if times.null_count < len(times):
        count_all(histogram, _buffer(times.drop_null(), "q"))


def _buffer(column: Any, code: Literal["i", "q"]) -> Any:
    """The values of a column without nulls, as a memoryview."""
    stored = memoryview(column.buffers()[1]).cast("B").cast(code)
    return stored[column.offset : column.offset + len(column)]
