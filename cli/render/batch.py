"""A batch for people: how far it is on a terminal, what it came to, and its reports."""

from __future__ import annotations

import sys
import time
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

WIDEST = (48, 32, 24, 18, 12)
"""Characters of a cell that are shown at most: the most with which all columns have room."""

GAP = 2
"""Spaces between columns."""

STAGES = {
    "spark": "Starting Spark",
    "files": "Looking at files",
    "tasks": "Decoding",
    "tables": "Writing what is about the whole",
    "report": "Making reports",
    "page": "Writing the page",
}


class Shown:
    """Takes what the job says, one fact after the other; `finish` when it was the last."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        self._errors = Console(stderr=True)
        self._bar: Any = None
        self._reports: list[dict[str, Any]] = []
        self._summary: dict[str, Any] | None = None
        self._page: str | None = None
        self._began = time.monotonic()
        self._wanted = not quiet and sys.stderr.isatty()

    def __enter__(self) -> Shown:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def take(self, fact: dict[str, Any]) -> None:
        """One fact."""
        if "stage" in fact:
            self._progress(fact)
        elif "summary" in fact:
            self._summary = fact["summary"]
        elif "report" in fact:
            self._reports.append(fact)
        elif "page" in fact:
            self._page = fact["page"]

    def finish(self) -> None:
        """Show what it came to."""
        self._stop()
        if self._summary is not None and not self._quiet:
            for line in _summed(self._summary, time.monotonic() - self._began):
                self._errors.print(line, highlight=False, soft_wrap=True)
        if self._page is not None and not self._quiet:
            self._errors.print(f"report: {self._page}", highlight=False, soft_wrap=True)
        console = Console()
        for report in self._reports:
            _show(console, report)

    def _progress(self, fact: dict[str, Any]) -> None:
        if not self._wanted:
            return
        if self._bar is None:
            self._bar = _bar(self._errors)
            self._bar.start()
            self._bar.add_task("", total=None, more="")
        stage = fact["stage"]
        done, total = fact.get("done", 0), fact.get("total") or None
        more = f"{done:,} of {total:,} files" if stage == "files" and total else ""
        if stage == "tasks":
            more = (
                f"{fact['octets'] / 1e6:,.0f} of {fact['total_octets'] / 1e6:,.0f} MB, "
                f"{fact['rows']:,} rows, {fact['findings']:,} findings"
            )
            done, total = fact["octets"], fact["total_octets"] or None
        if stage == "report":
            more = fact["report"]
        self._bar.update(
            self._bar.task_ids[0], description=STAGES.get(stage, stage), completed=done,
            total=total, more=more,
        )  # fmt: skip

    def _stop(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def _bar(console: Console) -> Any:
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[more]}"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    )


def _summed(summary: dict[str, Any], seconds: float) -> list[str]:
    """A summary in lines."""
    octets = summary["octets"]
    known = f", {octets / 1e6:,.1f} MB of packets" if octets else ""
    before = summary["done_before"]
    done = f" ({before:,} of {summary['tasks']:,} tasks were done before)" if before else ""
    rows = summary["rows"]
    lines = [
        f"{summary['files']:,} files{known}, in {seconds:.0f} s{done}",
        "rows: " + ", ".join(f"{name} {count:,}" for name, count in rows.items()),
    ]
    if summary["bad_files"]:
        count = summary["bad_files"]
        which = "file was" if count == 1 else "files were"
        lines.append(f"{count:,} {which} not read whole: see the table errors")
    return lines


def _show(console: Console, report: dict[str, Any]) -> None:
    """A report as a table: the columns that the terminal has room for."""
    from .text import harmless

    rows = [[harmless(cell) for cell in row] for row in report["rows"]]
    names = [name.replace("_", " ") for name in report["columns"]]
    widths: list[int] = []
    for widest in WIDEST:
        widths = [_width(name, [row[at] for row in rows], widest) for at, name in enumerate(names)]
        if sum(widths) + GAP * (len(widths) - 1) <= console.width:
            break
    shown, room = 0, console.width
    while shown < len(names) and room >= widths[shown]:
        room -= widths[shown] + GAP
        shown += 1
    console.print(report["title"], style="bold")
    if not rows:
        console.print("nothing of the kind was captured\n")
        return
    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0))
    for at, name in enumerate(names[:shown]):
        numbers = all(_is_number(row[at]) for row in rows) and any(row[at] for row in rows)
        right = "right" if numbers else "left"
        table.add_column(name, justify=right, width=widths[at], vertical="bottom")  # type: ignore[arg-type]
    for row in rows:
        cells = zip(row[:shown], widths, strict=False)
        table.add_row(*(Text(_cut(cell, width)) for cell, width in cells))
    console.print(table)
    left = [f"{len(rows)} of {report['total']} rows"] if str(len(rows)) != report["total"] else []
    if shown < len(names):
        left.append(f"without {', '.join(names[shown:])}")
    if left:
        console.print(f"({'; '.join(left)}: see reports/{report['report']}.csv)", style="dim")
    console.print()


def _width(name: str, cells: list[str], widest: int) -> int:
    """The width of a column: that of its longest word or cell, within bounds."""
    words = max(map(len, name.split()), default=1)
    return max(words, min(widest, max(map(len, cells), default=1)), 1)


def _cut(cell: str, width: int) -> str:
    return cell if len(cell) <= width else cell[: width - 1] + "…"


def _is_number(cell: str) -> bool:
    return cell.replace(",", "").replace(".", "").replace("-", "").isdigit() or not cell
