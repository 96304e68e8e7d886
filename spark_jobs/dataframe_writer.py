"""Tables written by Spark itself, for formats that only it knows (Delta, Iceberg).

The manifest is written last; while tables are written there is none. Rows pass through the JVM, and
captures are decoded once for each table, on every run. The direct writer is cheaper for Parquet. It
also makes messages with links, which need the records of all tasks.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from amqpsniff.archive.batch import Batch, Summary
from amqpsniff.archive.listing import MANIFEST
from amqpsniff.archive.output_folder import clear, write_manifest
from amqpsniff.archive.survey_cache import survey_files
from amqpsniff.archive.task_io import DAY_NS, TIMES
from amqpsniff.tables.file_errors import error_rows
from amqpsniff.tables.schema import LINKED_MESSAGES, TABLES

from .errors import saving

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

LINKED = "_work/linked"
"""Folder of the messages with links before Spark writes them; kept for the next run."""


def write_frames(spark: SparkSession, batch: Batch, form: str) -> Summary:
    """Write every table of a batch as a DataFrame, partitioned by capture date."""
    with batch:
        return _write_frames(spark, batch, form)


def _write_frames(spark: SparkSession, batch: Batch, form: str) -> Summary:
    options, given = batch.options, batch.given
    listed = batch.find()
    names = [one.path for one in listed]
    clear(batch.folder, set(TABLES).difference(batch.tables))
    source = spark.read.format("amqp").options(
        port=",".join(map(str, sorted(options.ports))),
        dialect=options.dialect or "",
        tableDialect=options.table_dialect,
        bodies=str(options.bodies).lower(),
        bodySha256=str(options.body_sha256).lower(),
        showSecrets=str(options.show_secrets).lower(),
        tlsKeylog=str(given.tls_keylog or ""),
        tlsKey=",".join(os.fspath(one) for one in given.tls_keys),
        packs=",".join(os.fspath(one) for one in options.packs),
        storageOptions=json.dumps(batch.storage),
        surveys=batch.folder.name,
        taskBytes=str(batch.task_bytes),
    )
    counts: dict[str, int] = {}
    for table in [*batch.tables, "errors"]:
        if table == "messages" and batch.links:
            rows = _linked(spark, batch)
        else:
            rows = source.option("table", table).load(names)
        target = f"{batch.folder.name}/{table}"
        writer = rows.write
        if table != "errors":
            dated = rows.withColumn("capture_date", day(TIMES.get(table, "ts_ns")))
            writer = dated.write.partitionBy("capture_date")
        with saving(target):
            writer.mode("overwrite").format(form).save(target)
        counts[table] = spark.read.format(form).load(target).count()
    files = batch.plan.files = survey_files(listed, batch.storage, batch.folder.name)
    batch.lock.check()
    write_manifest(batch.folder, batch.inputs, files, dict.fromkeys(counts, ()), counts, form=form)
    bad = error_rows((one.size, one.findings) for one in files)
    return Summary(
        files=len(files),
        bad_files=len({row["path"] for row in bad}),
        unreadable_files=sum(one.error is not None for one in files),
        bytes=batch.plan.octets,
        packets=sum(one.packets for one in files),
        rows=counts,
    )


def day(column: str = "ts_ns") -> Column:
    """The day of a time in UTC, in any time zone of the session; null without a time."""
    from pyspark.sql import functions as f

    days = f"({column} - pmod({column}, {DAY_NS})) div {DAY_NS}"  # of integers, so it is exact
    return f.date_from_unix_date(f.expr(days).cast("int"))


def _linked(spark: SparkSession, batch: Batch) -> DataFrame:
    """The messages of a batch with their links."""
    from pyspark.sql.pandas.types import from_arrow_schema

    from .runner import SparkRunner

    direct = Batch(
        batch.inputs,
        f"{batch.folder.name}/{LINKED}",
        batch.given,
        ("messages",),
        links=True,
        storage=batch.storage,
        task_bytes=batch.task_bytes,
    )
    runner = SparkRunner(spark.sparkContext)
    direct.run(runner, cores=runner.cores)
    manifest = json.loads(direct.folder.read(MANIFEST) or b"{}")
    names = [f"{direct.folder.name}/{name}" for name in manifest["tables"]["messages"]]
    schema = from_arrow_schema(LINKED_MESSAGES)
    if not names:
        return spark.createDataFrame([], schema)
    return spark.read.schema(schema).parquet(*names)
