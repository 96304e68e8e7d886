"""`amqpsniff batch`: the tables of an archive, on Spark.

Spark runs in a process of its own, which says how far it is on its standard output, a JSON object a
line. What Spark itself has to say is shown only when the job fails.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import IO, Annotated, Any

from amqpsniff.analysis.report_tables import REPORTS
from amqpsniff.child_processes import require_room, safe_environment
from amqpsniff.errors import UsageError
from amqpsniff.installation import how_to_add
from amqpsniff.units import plural
from amqpsniff.wire_text import harmless

from .completions import listed, words
from .entry import FAILED, USAGE, complain, tell
from .options import TABLES, Decoding, at_least, offer, spread
from .output import Output, columns
from .reading import keylog
from .render.clock import zoned
from .render.grid import Grid
from .render.text import Words, folded

JOB = "amqpsniff.spark_jobs.batch"

OWN = "amqpsniff: "
"""Beginning of the job's error messages."""

REFUSED = "amqpsniff-batch: error: "
"""The beginning of the job's lines about wrong arguments."""

TELLING = "All masters are unresponsive"
"""Text in a line of Spark that explains a failure: the cluster cannot be reached."""

_ORIGIN = re.compile(r"^\S+ \S+ (?:ERROR|WARN) [^:]*: ")
"""The text before it: the time and the part of Spark."""

MAX_TOLD = 15
"""Lines of what Spark said that are shown when it fails: the last ones."""


@spread("""
    Arguments:
        INPUT...: Capture files, directories, patterns, or URIs such as s3://bucket/captures.

    Output:
        -o --output DIR: Folder of the tables, or a URI of one. What an earlier run has left there
            is used.
        --tables A,B: Tables to write. [default]
        --replace: Delete what an earlier run has made there with more options or tables. Without
            it a run that would leave less is refused.
        --report NAME: Show a report: {REPORTS}; may be repeated.
        --html: Write all reports with charts to DIR/report.html.
        -n --limit N: Rows of a report that are shown. [default]
        --links: Add the columns of messages that link them across connections.
        --frameworks: Add the columns that say what messages mean, as --packs does. The report
            `operations` needs them and --links, and turns both on.

    Input:
        --storage JSON: Options for fsspec, such as {"anon": true}.

    Spark:
        --master URL: Spark master. Default: a Spark in this machine, on all its cores. [default]
""")
def batch(
    inputs: list[str],
    decoding: Decoding,
    output: str,
    tables: Annotated[str, offer(listed(words(TABLES)))] = ",".join(TABLES),
    replace: bool = False,
    report: Annotated[list[str] | None, offer(words(REPORTS))] = None,
    html: bool = False,
    limit: Annotated[int, at_least(1)] = 20,
    bodies: bool = False,
    body_sha256: bool = False,
    links: bool = False,
    frameworks: bool = False,
    storage: str = "{}",
    master: str = "local[*]",
) -> int:
    """Write the tables of an archive as Parquet, with Spark.

    The rows are those that one reader of all captures would give, however connections are spread
    over files. A run decodes only what is new; one that was stopped goes on where it was. What
    could not be read is in the table errors.

    Examples:

        amqpsniff batch captures/ -o tables/
        amqpsniff batch captures/ -o tables/ --html --report latency
        amqpsniff batch "s3://traces/2026-01-*" -o s3://tables/january
    """
    if not output.strip():
        raise UsageError("--output is empty; name a folder for the tables")
    values: dict[str, Iterable[Any] | None] = {
        "--output": [output], "--master": [master], "--tables": [tables], "--rows": [limit],
        "--table-dialect": [decoding.table_dialect], "--storage": [storage],
        "--progress": ["json"], "--report": report, "--port": decoding.port,
        "--tls-key": decoding.tls_key, "--tls-keylog": _as_list(keylog(decoding.tls_keylog)),
        "--dialect": _as_list(decoding.dialect), "--packs": decoding.packs,
    }  # fmt: skip
    flags = {
        "--html": html, "--bodies": bodies, "--body-sha256": body_sha256,
        "--show-secrets": decoding.show_secrets, "--links": links,
        "--frameworks": frameworks, "--replace": replace,
    }  # fmt: skip
    # in one word and behind `--`: any of them may begin with a dash
    arguments = [f"{name}={value}" for name, several in values.items() for value in several or ()]
    arguments += [name for name, is_set in flags.items() if is_set]
    return _run([*arguments, "--", *inputs], decoding.quiet)


def _as_list(value: str | None) -> list[str]:
    return [] if value is None else [value]


def _run(arguments: list[str], quiet: bool) -> int:
    """Run the job in a process of its own; the exit code."""
    require_room()
    with tempfile.TemporaryFile() as log, Shown(quiet) as shown:
        process = subprocess.Popen(
            [sys.executable, "-m", JOB, *arguments],
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
            env=safe_environment(),
        )
        try:
            for fact in _facts(process.stdout):
                shown.take(fact)
            code = process.wait()
        except BaseException:
            _end(process)
            raise
        shown.finish()
        return _explain(log, code) if code else 0


def _facts(lines: IO[bytes] | None) -> Iterator[dict[str, Any]]:
    for line in lines or ():
        try:
            fact = json.loads(line)
        except ValueError:
            continue
        if isinstance(fact, dict):
            yield fact


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the job and the Spark that it has started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(5)
        except (ProcessLookupError, PermissionError, subprocess.TimeoutExpired):
            continue


def _explain(log: IO[bytes], code: int) -> int:
    """Print why the job failed, in its own words or with the end of Spark's; the exit code."""
    log.seek(0)
    lines = log.read().decode(errors="replace").splitlines()
    # a Java that is killed may leave an unfinished line, and the message stands behind it
    own_lines = [line[line.index(OWN) + len(OWN) :] for line in lines if OWN in line]
    usage = [line.removeprefix(REFUSED) for line in lines if line.startswith(REFUSED)]
    if own_lines or usage:
        for line in own_lines + usage:
            complain(line)
        return code
    if any("No module named 'pyspark'" in line for line in lines):
        complain(f"batch needs PySpark; run `{how_to_add('spark')}`")
        return USAGE
    if code == -signal.SIGKILL:
        complain(
            "the Spark job was killed, as the system does where memory is short; what is done is "
            "kept: run it again"
        )
        return FAILED
    telling = [line for line in lines if TELLING in line]
    if telling:
        complain(f"the Spark job failed: {_ORIGIN.sub('', telling[0])}")
        return FAILED
    complain("the Spark job failed; it said:")
    worth = [line for line in lines if line.strip() and not line.lstrip().startswith("at ")]
    for line in worth[-MAX_TOLD:]:
        complain(f"  {line}")
    return FAILED


_NUMBER = re.compile(r"-?[\d,]*\.?\d*")
"""A cell of a column of numbers, which may be empty."""

UNITS = (("TB", 10**12), ("GB", 10**9), ("MB", 10**6))

MIN_UNITS = 10
"""Least number of units: a smaller amount is shown in the next smaller unit."""

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
    """Shows the facts that the job reports, one after the other; `finish` after the last."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        self._live: Any = None
        self._bar: Any = None
        self._detail: Any = None
        self._reports: list[dict[str, Any]] = []
        self._summary: dict[str, Any] | None = None
        self._page: str | None = None
        self._stage = ""
        self._began = time.monotonic()
        self._enabled = not quiet and sys.stderr.isatty()

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
                width = columns(sys.stderr) if sys.stderr.isatty() else len(line)
                tell("".join(f"{part}\n" for part in folded(line, width)))
        if self._page is not None and not self._quiet:
            tell(f"report: {self._page}\n")
        output = Output()
        for report in self._reports:
            _show(output, report)

    def _progress(self, fact: dict[str, Any]) -> None:
        if not self._enabled:
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
        self._detail.plain = _detail_text(fact)

    def _start(self) -> None:
        from rich.console import Console, Group
        from rich.live import Live
        from rich.progress import (
            BarColumn,
            Progress,
            SpinnerColumn,
            TextColumn,
            TimeRemainingColumn,
        )
        from rich.text import Text

        errors = Console(stderr=True)
        self._detail = Text()
        self._bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[part]}"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[left]}"),
            console=errors,
        )
        shown = Group(self._bar, self._detail)
        self._live = Live(shown, console=errors, transient=True)
        self._live.start()

    def _stop(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None


def _detail_text(fact: dict[str, Any]) -> str:
    """The progress of a step, for the line below the bar; that of a terabyte fits 80 columns."""
    if fact["stage"] == "files" and fact.get("total"):
        return f"{fact['done']:,} of {plural(fact['total'], 'file')}"
    if fact["stage"] == "report":
        return str(fact["report"])
    if fact["stage"] != "tasks":
        return ""
    total_bytes = fact["total_bytes"]
    unit, octets = next((pair for pair in UNITS if total_bytes >= pair[1] * MIN_UNITS), UNITS[-1])
    return (
        f"{fact['files']:,} of {plural(fact['total_files'], 'file')}, "
        f"{fact['bytes'] / octets:,.0f} of {total_bytes / octets:,.0f} {unit}, "
        f"{fact['rows']:,} rows, {fact['findings']:,} findings"
    )


def _summed(summary: dict[str, Any], seconds: float) -> list[str]:
    count, octets = summary["files"], summary["bytes"]
    size = f", {octets / 1e6:,.1f} MB of packets" if octets else ""
    before = summary["done_before"]
    done = f" ({before:,} of {summary['tasks']:,} tasks were done before)" if before else ""
    rows = summary["rows"]
    lines = [
        f"{plural(count, 'file')}{size}, in {seconds:.0f} s{done}",
        "rows: " + ", ".join(f"{name} {count:,}" for name, count in rows.items()),
    ]
    if summary["bad_files"]:
        count = summary["bad_files"]
        noun = "file was" if count == 1 else "files were"
        lines.append(f"{count:,} {noun} not read whole: see the table errors")
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
        cells = [_local_time(cell) if time else cell for cell, time in zip(row, times, strict=True)]
        grid.add(*map(harmless, cells))
    notes = [f"{len(rows)} of {report['total']} rows"] if str(len(rows)) != report["total"] else []
    unseen = ", ".join(grid.left_out(output.room))
    notes += [f"left out for want of width: {unseen}"] if unseen else []
    lines = list(grid.lines(output.room, output.paint))
    if notes:
        note = f"({'; '.join(notes)}; see reports/{report['report']}.csv)"
        lines += Words(note, "key").lines(output.room, output.paint)
    output.lines([*lines, ""])


def _local_time(cell: str) -> str:
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
