"""A data source for Parquet files on file systems that Spark's Java does not support.

An embedded Spark has no Hadoop connectors for object storage. Workers read captures and write
tables with Arrow or fsspec (`amqpsniff.archive.filesystem`). Here they read tables, a file a
partition.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.errors import PySparkAttributeError
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from amqpsniff.archive.filesystem import Folder, StorageOptions
from amqpsniff.capture.formats import is_remote

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


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


def read_tables(
    spark: SparkSession, folder: str, files: Sequence[str], columns: str, storage: StorageOptions
) -> DataFrame:
    """Columns, given as `name type, …`, of Parquet files in a folder."""
    source = spark.read.format(TablesSource.name()).schema(columns)
    told = {"files": json.dumps(list(files)), "storage": json.dumps(dict(storage))}
    return source.options(folder=folder, **told).load()


class TablesSource(DataSource):
    """Parquet files by name: `folder`, `files` and `storage` are options, the last two in JSON."""

    @classmethod
    def name(cls) -> str:
        return "amqp-tables"

    def reader(self, schema: StructType) -> DataSourceReader:
        return TablesReader(self.options, schema)


class File(InputPartition):
    """One file of a table."""

    def __init__(self, name: str) -> None:
        super().__init__(None)
        self.file = name


class TablesReader(DataSourceReader):
    """Reads a file in each partition."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self._folder = options["folder"]
        self._storage = json.loads(options["storage"])
        self._files = json.loads(options["files"])
        self._schema = to_arrow_schema(schema, timezone="UTC")

    def partitions(self) -> Sequence[InputPartition]:
        return [File(one) for one in self._files]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from pyarrow import parquet

        assert isinstance(partition, File)
        names = self._schema.names
        with Folder(self._folder, self._storage).open(partition.file) as file:
            rows = parquet.ParquetFile(file).read(names)
        yield from rows.select(names).cast(self._schema).to_batches()
