"""A batch for people: how far it is on a terminal, what it came to, and its reports."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn
from rich.text import Text

from amqpsniff.units import plural
from amqpsniff.wire_text import harmless

from ..entry import tell
from ..output import Output
from .clock import zoned
from .grid import Grid
from .text import Words, folded

_NUMBER = re.compile(r"-?[\d,]*\.?\d*")
"""A cell of a column of numbers, which may be empty."""

UNITS = (("TB", 10**12), ("GB", 10**9), ("MB", 10**6))

MIN_UNITS = 10
"""A unit is taken when there are at least so many of it."""

STAGES = {
    "spark": "Starting Spark",
    "files": "Looking at files",
    "plan": "Planning",
    "tasks": "Decoding",
    "links": "Linking messages",
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
        """Show the result."""
        self._stop()
        if self._summary is not None and not self._quiet:
            for line in _summed(self._summary, time.monotonic() - self._began):
                width = self._errors.width if self._errors.is_terminal else len(line)
                tell("".join(f"{part}\n" for part in folded(line, width)))
        if self._page is not None and not self._quiet:
            tell(f"report: {self._page}\n")
        output = Output()
        for report in self._reports:
            _show(output, report)

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
        return f"{fact['done']:,} of {plural(fact['total'], 'file')}"
    if fact["stage"] == "report":
        return str(fact["report"])
    if fact["stage"] != "tasks":
        return ""
    whole = fact["total_bytes"]
    unit, octets = next((one for one in UNITS if whole >= one[1] * MIN_UNITS), UNITS[-1])
    return (
        f"{fact['files']:,} of {plural(fact['total_files'], 'file')}, "
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
        f"{plural(count, 'file')}{known}, in {seconds:.0f} s{done}",
        "rows: " + ", ".join(f"{name} {count:,}" for name, count in rows.items()),
    ]
    if summary["bad_files"]:
        count = summary["bad_files"]
        which = "file was" if count == 1 else "files were"
        lines.append(f"{count:,} {which} not read whole: see the table errors")
    return lines


def _show(output: Output, report: dict[str, Any]) -> None:
    """A report as a table: the columns that a terminal has room for, in a pipe all."""
    output.show(Words(report["title"], "heading"))
    rows = report["rows"]
    if not rows:
        output.lines(["nothing of the kind was captured", ""])
        return
    marks = [_mark(cells, at) for at, cells in enumerate(zip(*rows, strict=True))]
    names = [name.replace("_", " ") for name in report["columns"]]
    grid = Grid("|".join(map(str.__add__, marks, names)))
    times = [name in report["times"] for name in report["columns"]]
    for row in rows:
        cells = [_local(cell) if time else cell for cell, time in zip(row, times, strict=True)]
        grid.add(*map(harmless, cells))
    left = [f"{len(rows)} of {report['total']} rows"] if str(len(rows)) != report["total"] else []
    unseen = ", ".join(grid.left_out(output.room))
    left += [f"left out for want of width: {unseen}"] if unseen else []
    lines = list(grid.lines(output.room, output.paint))
    if left:
        note = f"({'; '.join(left)}; see reports/{report['report']}.csv)"
        lines += Words(note, "key").lines(output.room, output.paint)
    output.lines([*lines, ""])


def _local(cell: str) -> str:
    """A time of UTC in the time zone of the command's options."""
    return cell and str(zoned(datetime.fromisoformat(f"{cell}+00:00"))).removesuffix("+00:00")


def _mark(cells: Sequence[str], place: int) -> str:
    """The marks of a column in its place: the later, the sooner left out; times are not cut."""
    if all(map(_is_number, cells)) and any(cells):
        return "?" * place + ">"
    return "?" * place + ("" if all(map(_is_time, cells)) else "*")


def _is_time(cell: str) -> bool:
    return cell[4:5] == cell[7:8] == "-" and cell[13:14] == ":"


def _is_number(cell: str) -> bool:
    return _NUMBER.fullmatch(cell) is not None
