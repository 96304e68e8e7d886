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
from collections.abc import Iterable, Iterator
from typing import IO, Annotated, Any

from amqpsniff.analysis.report_tables import REPORTS
from amqpsniff.child_processes import require_room, safe_environment
from amqpsniff.errors import UsageError
from amqpsniff.installation import how_to_add

from .completions import listed, words
from .entry import FAILED, USAGE, complain
from .options import TABLES, Decoding, at_least, offer, spread
from .reading import keylog

JOB = "amqpsniff.spark_jobs.batch"

OWN = "amqpsniff: "
"""Beginning of the job's error messages."""

REFUSED = "amqpsniff-batch: error: "
"""How the job begins a line that says what is wrong with its arguments."""

TELLING = "All masters are unresponsive"
"""What a line of Spark's has that says enough: a cluster that is not there."""

_ORIGIN = re.compile(r"^\S+ \S+ (?:ERROR|WARN) [^:]*: ")
"""What stands before it: the time and the part of Spark."""

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
        "--tls-key": decoding.tls_key, "--tls-keylog": _given(keylog(decoding.tls_keylog)),
        "--dialect": _given(decoding.dialect), "--packs": decoding.packs,
    }  # fmt: skip
    flags = {
        "--html": html, "--bodies": bodies, "--body-sha256": body_sha256,
        "--show-secrets": decoding.show_secrets, "--links": links,
        "--frameworks": frameworks, "--replace": replace,
    }  # fmt: skip
    # in one word and behind `--`: any of them may begin with a dash
    given = [f"{name}={one}" for name, several in values.items() for one in several or ()]
    given += [name for name, wanted in flags.items() if wanted]
    return _run([*given, "--", *inputs], decoding.quiet)


def _given(value: str | None) -> list[str]:
    return [] if value is None else [value]


def _run(given: list[str], quiet: bool) -> int:
    """Run the job in a process of its own; the exit code."""
    from .render.batch import Shown

    require_room()
    with tempfile.TemporaryFile() as said, Shown(quiet) as shown:
        process = subprocess.Popen(
            [sys.executable, "-m", JOB, *given],
            stdout=subprocess.PIPE,
            stderr=said,
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
        return _explain(said, code) if code else 0


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


def _explain(said: IO[bytes], code: int) -> int:
    """Print why the job failed, in its own words or with the end of Spark's; the exit code."""
    said.seek(0)
    lines = said.read().decode(errors="replace").splitlines()
    # a Java that is killed may leave an unfinished line, and the message stands behind it
    own = [line[line.index(OWN) + len(OWN) :] for line in lines if OWN in line]
    usage = [line.removeprefix(REFUSED) for line in lines if line.startswith(REFUSED)]
    if own or usage:
        for line in own + usage:
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
