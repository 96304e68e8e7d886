"""Every command and format over a capture, and a look at what comes out.

`WAYS` are command lines with `{capture}`, `{other}`, `{connection}` and `{out}` in them.
"""

from __future__ import annotations

import csv
import io
import json
import shlex
from importlib import import_module
from pathlib import Path
from typing import Any

from amqpsniff.analysis.report_tables import REPORTS
from amqpsniff.cli.commands import COMMANDS, function_of
from tests.cli.running import Result, run

TABLES = ("frames", "messages", "connections", "channels", "links", "findings")

WAYS = (
    "inspect {capture}",
    "inspect {capture} --verbose",
    "inspect {capture} --frames --hex --time absolute",
    "inspect {capture} --format ndjson",
    "summary {capture}",
    "summary {capture} --format json",
    *(
        f"{command} {{capture}} {form}"
        for command in ("connections", "channels", "links")
        for form in ("", "--verbose", "--format ndjson", "--format csv")
    ),
    "messages {capture}",
    "messages {capture} --verbose --bodies",
    "messages {capture} --format ndjson --bodies",
    "messages {capture} --format csv --bodies",
    "trace {capture} --header tenant=42",
    "trace {capture} --header tenant=42 --format ndjson",
    "trace {capture} --header tenant=42 --format csv",
    "follow {capture} --connection {connection}",
    "follow {capture} --connection {connection} --bodies --time absolute",
    "follow {capture} --connection {connection} --format ndjson",
    "topology {capture}",
    "topology {capture} --format dot",
    "topology {capture} --format mermaid",
    "topology {capture} --format json",
    "diagnose {capture}",
    "diagnose {capture} --format ndjson",
    "diagnose {capture} --format sarif",
    "report {capture} -o {out}/page.html",
    *(f"report-table {name} {{capture}}" for name in REPORTS),
    *(f"report-table {name} {{capture}} --format json" for name in REPORTS),
    *(f"report-table traffic {{capture}} --format {form}" for form in ("ndjson", "csv")),
    "diff {capture} {other}",
    "diff {other} {capture}",
    "diff {capture} {other} --format json",
    "diff {other} {capture} --format json",
    "diff --same-traffic {capture} {other}",
    "diff --same-traffic {capture} {other} --format json",
    *(
        f"export {{capture}} -t {table} --format {form}"
        for table in TABLES
        for form in ("ndjson", "csv")
    ),
    *(
        f"export {{capture}} -t {table} --format {form} -o {{out}}/{table}.{form}"
        for table in TABLES
        for form in ("parquet", "arrow")
    ),
    "export {capture} -t messages --format otlp -o {out}/spans.json",
    *(f"sql {{capture}} 'SELECT * FROM {table}'" for table in TABLES),
    *(
        f"sql {{capture}} 'SELECT * FROM messages' --format {form} -o {{out}}/sql.{form}"
        for form in ("ndjson", "csv", "parquet", "arrow")
    ),
    "bodies {capture} -o {out}/bodies --decode --format ndjson",
    "bodies {capture} -o {out}/bodies-csv --format csv",
    "cut {capture} -o {out}/part.pcapng --errors",
    "annotate {capture} -o {out}/told.pcapng",
    "sanitize {capture} -o {out}/safe.pcapng",
    "sanitize {capture} -o {out}/safe-names.pcapng --names --addresses",
)
"""Command lines over one capture (`other` is one to compare it with)."""

ELSEWHERE = {
    "live": "tests/live/test_not_text.py",
    "extcap": "reads no capture",
    "batch": "tests/spark/test_null_rows.py",
    "verify": "tests/cli/test_verify.py",
    "explain": "reads no capture",
    "spec": "reads no capture",
}
"""Commands without a way here."""

MAX_FIELD = 10_000_000
"""Characters of the longest body in a CSV file."""

SAME_TRAFFIC = "--same-traffic"
"""Exits with 1 where no connection is in both captures."""


def go(way: str, capture: Path, other: Path, connection: str, out: Path) -> Result:
    """Run one way."""
    out.mkdir(parents=True, exist_ok=True)
    words = shlex.split(way)
    names = {"capture": capture, "other": other, "connection": connection, "out": out}
    return run(*(word.format(**names) for word in words))


def written(result: Result, out: Path) -> str:
    """The output of a run, with that of its files."""
    files = [path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()]
    return result.out + b"".join(files).decode(errors="replace")


def rows_of(way: str, text: str) -> Any:
    """The output of a way that is for programs, read by a program; None for text."""
    if "-o {out}" in way:
        return None
    if "ndjson" in way:
        return [json.loads(line, parse_constant=_refused) for line in text.splitlines()]
    if "json" in way or "sarif" in way:
        return json.loads(text, parse_constant=_refused)
    if "csv" in way:
        csv.field_size_limit(MAX_FIELD)
        rows = list(csv.reader(io.StringIO(text, newline="")))
        assert len({len(row) for row in rows}) <= 1
        return rows
    return None


def _refused(constant: str) -> None:
    raise AssertionError(f"{constant} is not JSON")


def check(way: str, result: Result) -> Any:
    """No run fails, and what is for programs can be read; the rows."""
    assert "internal error" not in result.err, (way, result.err)
    assert "Traceback" not in result.err, (way, result.err)
    assert result.code == 0 or (SAME_TRAFFIC in way and result.code == 1), (way, result)
    assert "{'base64'" not in result.out, (way, "a dict of Python is shown")
    return rows_of(way, result.out)


def missing() -> set[str]:
    """Commands, and formats of a command, without a way."""
    found = set()
    for command in set(COMMANDS) - ELSEWHERE.keys():
        ways = [way for way in WAYS if way.split()[0] == command]
        module = import_module(function_of(command).__module__)
        forms = getattr(module, "FORMATS", getattr(module, "ENDINGS", ()))
        told = [form for form in forms if form != "text"]
        found |= {f"{command} {form}" for form in told if not any(form in way for way in ways)}
        if not ways:
            found.add(command)
    return found
