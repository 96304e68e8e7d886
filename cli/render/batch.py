"""A batch for people: how far it is on a terminal, what it came to, and its reports."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from amqpsniff.wire_text import harmless

from ..entry import tell
from ..output import UNCUT
from .text import folded

WIDEST = (48, 32, 24, 18, 12)
"""Characters of a cell that are shown at most: the most with which all columns have room."""

TIME_WIDTH = 19
"""Characters of a time to the second, which says nothing when it is cut."""

GAP = 2
"""Spaces between columns."""

UNITS = (("TB", 10**12), ("GB", 10**9), ("MB", 10**6))

MIN_UNITS = 10
"""A unit is taken when there are at least so many of it."""

STAGES = {
    "spark": "Starting Spark",
    "files": "Looking at files",
    "plan": "Planning",
    "tasks": "Decoding",
    "links": "Linking messages",
    "frames": "Spark writes tables",
    "tables": "Writing what is about the whole",
    "report": "Making reports",
    "page": "Writing the page",
}


class Shown:
    """Takes what the job says, one fact after the other; `finish` when it was the last."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        self._errors = Console(stderr=True)
        self._live: Any = None
        self._bar: Any = None
        self._more = Text()
        self._reports: list[dict[str, Any]] = []
        self._summary: dict[str, Any] | None = None
        self._page: str | None = None
        self._stage = ""
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
                width = self._errors.width if self._errors.is_terminal else len(line)
                tell("".join(f"{part}\n" for part in folded(line, width)))
        if self._page is not None and not self._quiet:
            tell(f"report: {self._page}\n")
        wide = sys.stdout.isatty() or os.environ.get("COLUMNS")
        console = Console() if wide else Console(width=UNCUT)
        for report in self._reports:
            with console.capture() as shown:
                _show(console, report)
            # rich itself exits with 1 where nobody reads any more
            sys.stdout.writelines(f"{line.rstrip(' ')}\n" for line in shown.get().splitlines())

    def _progress(self, fact: dict[str, Any]) -> None:
        if not self._wanted:
            return
        if self._live is None:
            self._start()
        stage = fact["stage"]
        done, total = fact.get("done", 0), fact.get("total") or None
        if stage == "tasks":
            done, total = fact["bytes"], fact["total_bytes"] or None
        if stage != self._stage:  # the time that is left is that of a stage
            for task in self._bar.task_ids:
                self._bar.remove_task(task)
            self._bar.add_task(STAGES.get(stage, stage), total=total, part="", left="")
            self._stage = stage
        part, left = (f"{done / total:4.0%}", "left") if total else ("", "")
        task = self._bar.task_ids[0]
        self._bar.update(task, completed=done, total=total, part=part, left=left)
        self._more.plain = _more(fact)

    def _start(self) -> None:
        self._bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[part]}"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[left]}"),
            console=self._errors,
        )
        shown = Group(self._bar, self._more)
        self._live = Live(shown, console=self._errors, transient=True)
        self._live.start()

    def _stop(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None


def _more(fact: dict[str, Any]) -> str:
    """What a step came to so far, for the line below the bar: 80 columns hold a terabyte's."""
    if fact["stage"] == "files" and fact.get("total"):
        return f"{fact['done']:,} of {fact['total']:,} files"
    if fact["stage"] == "report":
        return str(fact["report"])
    if fact["stage"] != "tasks":
        return ""
    whole = fact["total_bytes"]
    unit, octets = next((one for one in UNITS if whole >= one[1] * MIN_UNITS), UNITS[-1])
    return (
        f"{fact['files']:,} of {fact['total_files']:,} files, "
        f"{fact['bytes'] / octets:,.0f} of {whole / octets:,.0f} {unit}, "
        f"{fact['rows']:,} rows, {fact['findings']:,} findings"
    )


def _summed(summary: dict[str, Any], seconds: float) -> list[str]:
    count, octets = summary["files"], summary["bytes"]
    known = f", {octets / 1e6:,.1f} MB of packets" if octets else ""
    before = summary["done_before"]
    done = f" ({before:,} of {summary['tasks']:,} tasks were done before)" if before else ""
    rows = summary["rows"]
    lines = [
        f"{count:,} {'file' if count == 1 else 'files'}{known}, in {seconds:.0f} s{done}",
        "rows: " + ", ".join(f"{name} {count:,}" for name, count in rows.items()),
    ]
    if summary["bad_files"]:
        count = summary["bad_files"]
        which = "file was" if count == 1 else "files were"
        lines.append(f"{count:,} {which} not read whole: see the table errors")
    return lines


def _show(console: Console, report: dict[str, Any]) -> None:
    """A report as a table: the columns that a terminal has room for, in a pipe all."""
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
    """The width of a column: that of its longest word or cell, within bounds; times are whole."""
    words = max(map(len, name.split()), default=1)
    longest = max(map(len, cells), default=1)
    if longest <= TIME_WIDTH and all(map(_is_time, cells)):
        return max(words, longest)
    return max(words, min(widest, longest), 1)


def _is_time(cell: str) -> bool:
    return cell[4:5] == cell[7:8] == "-" and cell[13:14] == ":"


def _cut(cell: str, width: int) -> str:
    return cell if len(cell) <= width else cell[: width - 1] + "…"


def _is_number(cell: str) -> bool:
    return cell.replace(",", "").replace(".", "").replace("-", "").isdigit() or not cell
