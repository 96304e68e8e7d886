"""docs/report-tables.md, from the catalogue: `python -m tests.docs.report_tables` writes it."""

from __future__ import annotations

from collections.abc import Iterator

from amqpsniff.analysis.report_tables import REPORTS, Report
from tests.docs.blocks import REPO

PAGE = REPO / "docs" / "report-tables.md"

BEGIN = """# Reports as tables

This page explains eleven reports that answer common questions. Each is one SQL query over the
[tables](tables.md), so its rows are the same in every place:

| where | how |
|---|---|
| captures | `amqpsniff report-table latency trace.pcapng`: DuckDB, no Java |
| in Python | `amqpsniff.open("trace.pcapng").report_table("latency")`, a `pyarrow.Table` |
| an archive | `amqpsniff batch … --report latency`: DuckDB or Spark; `--html` for all with charts |

Several captures and folders are read as one, merged by time. A time bucket is 1 second,
10 seconds, a minute, 10 minutes, an hour or a day long, so that there are at most 120.
`--bucket SECONDS` (`bucket_seconds` in Python) chooses another length. [Spark](spark.md#reports)
has more about archives.

`topology` is a graph. Its query chooses the rows, and the code of the command `topology` makes
edges of them.

Percentiles are times that occurred. Spark takes them from `percentile_approx`, whose rank is right
to a ten-thousandth; those of DuckDB are exact. `summary`, `diff` and `report` take the time of the
same rank, rounded down by less than 0.4 %. If several message ids have the most deliveries,
`redelivery` names the first in alphabetical order.
"""


def page() -> str:
    """The whole page."""
    parts = [BEGIN]
    for report in REPORTS.values():
        parts += _section(report)
    return "\n".join(parts) + "\n"


def _section(report: Report) -> Iterator[str]:
    yield f"\n## {report.name}\n"
    yield f"{report.about} First: {report.order}.\n"
    yield "| column | meaning |"
    yield "|---|---|"
    for name, meaning in report.columns.items():
        yield f"| `{name}` | {meaning} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
