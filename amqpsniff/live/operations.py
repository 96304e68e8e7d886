"""Operations of frameworks in a live run: counts since the beginning, and current rates.

The rows are those of the report `operations`, with rates in place of most numbers that need the
end of the traffic. Messages are counted once their outcome is known.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from typing import Any

from amqpsniff.live.peers import WINDOW
from amqpsniff.session.counts import Histogram
from amqpsniff.spec import PUBLISHES
from amqpsniff.tables.values import values

COLUMNS = (
    "framework", "operation", "method", "retry_count", "error_type", "outcome", "outcome_ns",
    "published_ns",
)  # fmt: skip
"""Columns of messages that are counted."""

MAX_OPERATIONS = 500
"""Operations that have rows: routing keys, which some frameworks take, can be without end. Messages
of others are in one row, whose operation is null."""

MAX_ERRORS = 50
"""Exceptions of one operation that are counted one by one."""

REFUSED = ("requeued", "discarded")
SETTLED = ("acked", *REFUSED)

COUNTS = ("published", "delivered", "retried", "failed", "refused")

Row = dict[str, Any]


class _Operation:
    def __init__(self) -> None:
        self.counts = dict.fromkeys(COUNTS, 0)
        self.before: deque[tuple[float, int, int]] = deque(maxlen=WINDOW + 1)
        self.queue, self.work = Histogram(), Histogram()
        self.errors = Counter[str]()


class Operations:
    """Counts messages with `COLUMNS`; `rows` are those of the last tick, most failures first."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self._operations: dict[tuple[str | None, str | None], _Operation] = {}

    def add(self, batch: Any) -> None:
        """Count messages."""
        for row in zip(*(values(batch, name) for name in COLUMNS), strict=True):
            framework, name, method, retries, error, outcome, outcome_ns, published_ns = row
            operation = self._operation((framework, name))
            counts = operation.counts
            if method in PUBLISHES:
                counts["published"] += 1
                counts["retried"] += bool(retries)
                counts["failed"] += error is not None
                if error is not None and (
                    error in operation.errors or len(operation.errors) < MAX_ERRORS
                ):
                    operation.errors[error] += 1
            elif method != "basic.return":
                counts["delivered"] += 1
                counts["refused"] += outcome in REFUSED
                operation.queue.add(-1 if published_ns is None else published_ns)
                if outcome in SETTLED and outcome_ns is not None:
                    operation.work.add(outcome_ns)

    def tick(self, now: float | None = None) -> None:
        """Take the rows of now."""
        now = time.monotonic() if now is None else now
        rows = [
            {"framework": framework, "operation": name, **_row(operation, now)}
            for (framework, name), operation in self._operations.items()
        ]
        rows.sort(key=lambda row: (-row["failed"], -row["published"] - row["delivered"]))
        self.rows = rows

    def _operation(self, key: tuple[str | None, str | None]) -> _Operation:
        if key not in self._operations:
            if len(self._operations) >= MAX_OPERATIONS:
                key = None, None
            self._operations.setdefault(key, _Operation())
        return self._operations[key]


def _row(operation: _Operation, now: float) -> Row:
    counts = operation.counts
    operation.before.append((now, counts["published"], counts["delivered"]))
    began, published, delivered = operation.before[0]
    spent = max(1.0, now - began)
    times = {}
    for name, seen in (("queue", operation.queue), ("work", operation.work)):
        for share, value in zip((50, 95), seen.quantiles(0.5, 0.95), strict=True):
            times[f"{name}_p{share}_ms"] = None if value is None else value / 1e6
    return {
        **counts,
        **times,
        "published_per_s": (counts["published"] - published) / spent,
        "delivered_per_s": (counts["delivered"] - delivered) / spent,
        "error_type": operation.errors.most_common(1)[0][0] if operation.errors else None,
    }
