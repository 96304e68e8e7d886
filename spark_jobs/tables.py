"""The tables that a batch has written, as DataFrames of what its manifest names.

Spark's Java reads the Parquet files where it knows their file system. Elsewhere workers do, through
`format("amqp")`: an embedded Spark has no Hadoop connectors for object storage.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from pyspark.errors import PySparkAttributeError
from pyspark.sql import functions
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from amqpsniff.archive.batch_reports import files_of
from amqpsniff.archive.filesystem import Folder, StorageOptions, whole_path
from amqpsniff.archive.output_folder import Manifest, require_manifest
from amqpsniff.capture.formats import is_remote
from amqpsniff.tables.schema import JSON_COLUMNS

from .source import arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PATTERN = re.compile(r"[\[\]{}*?\\]")
"""Characters of a folder's name that Spark takes for a pattern."""


def read_table(
    spark: SparkSession,
    output: str,
    table: str,
    columns: Iterable[str] | None = None,
    storage: StorageOptions | None = None,
    manifest: Manifest | None = None,
    variant: bool = False,
) -> DataFrame:
    """A table that a batch has written to the folder `output`.

    It is that of one run, whatever a later one does: what a manifest names is read, that of now
    unless one is given. Without `columns` it has all, those that link messages if a batch has made
    them, and `capture_date` (DATE). With `variant` the columns of JSON (`arguments`, `headers`, …)
    are VARIANT, null where they are no JSON. Raises UsageError for a folder that no batch has
    written, and for a table or columns that it has not.
    """
    manifest = manifest or require_manifest(Folder(output, storage))
    base = whole_path(output).rstrip("/")
    full = from_arrow_schema(arrow_schema(table, everything=columns is not None))
    chosen = full if columns is None else StructType([full[name] for name in columns])
    files = [f"{base}/{name}" for name in files_of(manifest, table, columns or ())]
    if not files:
        rows = spark.createDataFrame([], chosen)
    elif storage or _PATTERN.search(base) or not java_knows(spark, base):
        options = {"table": table, "storageOptions": json.dumps(dict(storage or {}))}
        rows = spark.read.format("amqp").options(**options).schema(chosen).load(base)
    else:
        reader = spark.read.option("basePath", f"{base}/{table}")
        rows = (reader if columns is None else reader.schema(chosen)).parquet(*files)
    rows = rows if columns is None else rows.select(*chosen.names)
    parsed = JSON_COLUMNS.intersection(rows.columns) if variant else ()
    return rows.withColumns({name: functions.try_parse_json(name) for name in parsed})


def java_knows(spark: SparkSession, name: str) -> bool:
    """True if Java supports the file system of a name."""
    from py4j.protocol import Py4JJavaError

    if not is_remote(name):
        return True
    try:
        context = spark.sparkContext
    except PySparkAttributeError:  # Spark Connect has no Java here
        return False
    assert context._jvm is not None
    path = context._jvm.org.apache.hadoop.fs.Path(name)
    try:
        path.getFileSystem(context._jsc.hadoopConfiguration())
    except Py4JJavaError:
        return False
    return True
