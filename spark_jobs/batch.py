"""The job behind `amqpsniff batch`: the tables of an archive as Parquet, and reports over them.

    spark-submit spark_jobs/batch.py captures/ -o tables/ --report traffic

With `--progress json` it reports its progress on standard output, a JSON object a line.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import resource
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from amqpsniff.analysis.report_tables import ERRORS, OPERATIONS, find, made_of
from amqpsniff.archive.batch import Batch, Summary, run_in_process
from amqpsniff.archive.batch_reports import check_report, make_here, write_page
from amqpsniff.archive.plan import TASK_BYTES
from amqpsniff.archive.progress import RunProgress
from amqpsniff.capture.formats import is_remote
from amqpsniff.errors import CaptureError, FilterError
from amqpsniff.options import Decoding, Options
from amqpsniff.process_tuning import raise_gc_threshold, skip_exit_gc
from amqpsniff.spark_jobs.errors import tell
from amqpsniff.spark_jobs.options import json_object
from amqpsniff.spec import DIALECTS, READINGS
from amqpsniff.tables.schema import TABLES

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

START_SECONDS = 1.5
"""Shortest start of Spark; files are surveyed at the same time."""

LOG = logging.getLogger("amqpsniff.batch")

Say = Callable[[dict[str, Any]], None]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the job with command-line arguments; the exit code."""
    arguments = parser().parse_args(argv)
    _open_more_files()
    say: Say = _say if arguments.progress == "json" else lambda fact: None
    if arguments.progress != "json":
        _log()
    try:
        return _run(arguments, say)
    except Exception as error:  # noqa: BLE001 (raised again where it is not understood)
        return tell(error)


def _log() -> None:
    """Log the decisions of the job to standard error, as Spark does."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s INFO amqpsniff: %(message)s"))
    LOG.addHandler(handler)
    LOG.setLevel(logging.INFO)


def _open_more_files() -> None:
    """Raise the limit of open files: the driver reads files of many tasks at the same time."""
    _, limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))


def _run(arguments: argparse.Namespace, say: Say) -> int:
    from .session import check_master

    check_master(arguments.master)
    for name in arguments.report:
        find(name)
    with _batch(arguments) as batch:
        return _run_batch(batch, arguments, say)


def _run_batch(batch: Batch, arguments: argparse.Namespace, say: Say) -> int:
    from .session import session

    names = [*made_of(batch.frameworks and batch.links)] if arguments.html else arguments.report
    tables = dict.fromkeys((*batch.tables, ERRORS), ())
    for name in names:
        check_report(name, {"tables": tables, "options": batch.extra_options()})
    batch.find()  # report a wrong name before Spark starts
    spark = None
    if not (arguments.master and batch.is_done()):
        spark = _start(arguments, say, batch.look)
    try:
        summary = _written(spark, batch, say)
        say({"summary": asdict(summary)})
        if summary.unreadable_files == summary.files:
            raise CaptureError(no_file_read(batch))
        if names:
            master = str(spark.master if spark else arguments.master)
            local = master.startswith("local") and not is_remote(batch.folder.name)

            def by_spark() -> SparkSession:
                nonlocal spark
                spark = spark or _start(arguments, say)
                return session()

            _report(by_spark, local, arguments, batch, names, say)
    finally:
        if spark is not None:
            spark.stop()
    return 0


def _start(
    arguments: argparse.Namespace, say: Say, look: Callable[[float], None] = lambda seconds: None
) -> SparkContext:
    """Spark; `look` surveys captures on this machine while it starts."""
    from .session import context

    say({"stage": "spark"})
    with ThreadPoolExecutor(1) as pool:
        looking = pool.submit(look, START_SECONDS)
        spark = context(arguments.master, "amqpsniff batch", brief=True)
        looking.result()
    spark.setLogLevel("ERROR")
    return spark


def _batch(arguments: argparse.Namespace) -> Batch:
    decoding = {
        name: value for name, value in vars(arguments).items() if name in Decoding.__annotations__
    }
    operations = OPERATIONS in arguments.report
    return Batch(
        arguments.inputs,
        arguments.output,
        Options.of(**decoding),
        [name.strip() for name in arguments.tables.split(",")],
        links=arguments.links or operations,
        frameworks=bool(arguments.frameworks or arguments.packs or operations),
        storage=json_object("--storage", arguments.storage),
        replace=arguments.replace,
        task_bytes=arguments.task_bytes,
    )


def no_file_read(batch: Batch) -> str:
    """The reason why no file could be read, in a line."""
    lost = {finding.capture: finding.detail for result in batch.results for finding in result.lost}
    errors = [file.error or lost.get(file.path) for file in batch.plan.files]
    if any(file.path in lost for file in batch.plan.files):
        errors[0] = f"{errors[0]}; can the workers see the captures?"
    if len(errors) == 1:
        return str(errors[0])
    return f"none of {len(errors)} files could be read; the first: {errors[0]}"


def _written(spark: SparkContext | None, batch: Batch, say: Say) -> Summary:
    """Write the tables; without Spark only those about the whole archive."""
    from .runner import SparkRunner

    def notice(step: RunProgress) -> None:
        say(asdict(step))
        if step.why:
            LOG.info(step.why)

    runner = None if spark is None else SparkRunner(spark)
    return batch.run(runner or run_in_process, notice, runner.cores if runner else 1)


def _report(
    spark: Callable[[], SparkSession],
    local: bool,
    arguments: argparse.Namespace,
    batch: Batch,
    names: list[str],
    say: Say,
) -> None:
    """Make the reports, by DuckDB if `local`, show and write them."""
    from .reports import make

    reports = []
    for name in names:
        say({"stage": "report", "report": name})
        report = None
        if local:
            with contextlib.suppress(FilterError):  # more than DuckDB is given memory for
                report = make_here(batch.folder, name, arguments.rows)
        report = report or make(
            spark(), name, arguments.output, arguments.rows, storage=batch.storage
        )
        report.write(batch.folder)
        reports.append(report)
        if name in arguments.report:
            if arguments.progress == "json":
                say(report.as_json())
            else:
                print(report.as_text())
    if arguments.html:
        say({"stage": "page"})
        write_page(batch.folder, reports)
        say({"page": f"{arguments.output.rstrip('/')}/report.html"})


def _say(fact: dict[str, Any]) -> None:
    print(json.dumps(fact, default=str), flush=True)


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(prog="amqpsniff-batch", description=__doc__)
    add = result.add_argument
    add("inputs", nargs="+", metavar="INPUT", help="captures, folders, patterns, URIs")
    add("-o", "--output", required=True, metavar="DIR", help="folder of the tables")
    add("--master", help="Spark master; default: what spark-submit says")
    add("--tables", default=",".join(TABLES), help="comma-separated")
    add("--replace", action="store_true", help="delete what a run with more options has made")
    add(
        "--port",
        dest="ports",
        type=int,
        action="append",
        default=[],
        help="may be repeated; default: any",
    )
    add("--dialect", choices=DIALECTS, help="default: what each connection says")
    add("--table-dialect", choices=READINGS, default=READINGS[0])
    add("--bodies", action="store_true", help="fill the column body")
    add("--body-sha256", action="store_true", help="fill the column body_sha256")
    add("--links", action="store_true", help="fill the columns that link messages")
    add("--frameworks", action="store_true", help="fill the columns that packs fill")
    add("--packs", action="append", default=[], metavar="FILE", help="and with these packs too")
    add("--show-secrets", action="store_true")
    add("--tls-keylog", metavar="FILE", help="open TLS with this key log")
    add("--tls-key", action="append", default=[], metavar="FILE", help="and with this RSA key")
    add("--storage", default="{}", metavar="JSON", help="options for fsspec")
    add("--report", action="append", default=[], metavar="NAME", help="may be repeated")
    add("--html", action="store_true", help="write all reports to DIR/report.html")
    add("--rows", type=int, default=20, help="rows of a report that are shown")
    add("--task-bytes", type=int, default=TASK_BYTES)
    add("--progress", choices=("none", "json"), default="none")
    return result


if __name__ == "__main__":
    # spark-submit runs this file alone; its package is the installed one
    from amqpsniff.spark_jobs.batch import main as installed

    raise_gc_threshold()
    skip_exit_gc()
    sys.exit(installed())
