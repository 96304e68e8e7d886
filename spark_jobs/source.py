"""The Spark data source `amqp`: captures as the tables that the command line serves.

Every capture file is one partition; a task runs the whole engine over its file and hands Arrow
batches to Spark, so that octets never pass between the JVM and Python. Rows of a file are the rows
that the engine gives for that file alone: connections that go on in another file are not joined.

What it does not do: split a file, pack small files, push filters down, read from object stores.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from amqpsniff.capture import expand
from amqpsniff.errors import CaptureError, UsageError
from amqpsniff.tables.schema import schema_of

if TYPE_CHECKING:
    import pyarrow as pa

MODES = ("PERMISSIVE", "DROPMALFORMED", "FAILFAST")


class AmqpDataSource(DataSource):
    """`spark.read.format("amqp")`: one table of captures, named by path, folder, pattern or list.

    Options: `table` (default `messages`); `port`, comma-separated; `bodies`, `bodySha256`,
    `showSecrets` (`true`, `false`); `mode` for files that are not captures: `PERMISSIVE` (default:
    a row in the table `findings`, nothing in others), `DROPMALFORMED`, `FAILFAST`.
    `.schema("method string, body_size long")` chooses columns and saves making the others.
    Paths are those of the workers' file system. Raises UsageError for an option that makes no
    sense and CaptureError for a path that is not there.
    """

    @classmethod
    def name(cls) -> str:
        return "amqp"

    def schema(self) -> StructType:
        return from_arrow_schema(schema_of(_table(self.options)))

    def reader(self, schema: StructType) -> DataSourceReader:
        return AmqpReader(self.options, schema)


class Capture(InputPartition):
    """One capture file, the work of one task."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


class AmqpReader(DataSourceReader):
    """Plans one partition a capture and reads it with the engine."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self.table = _table(options)
        self.columns = list(schema.names)
        self.paths = _paths(options)
        self.mode = options.get("mode", MODES[0]).upper()
        self.decoding = _decoding(options)
        _check_columns(self.table, schema)
        if self.mode not in MODES:
            raise UsageError(f"no mode `{self.mode}`; there are {', '.join(MODES)}")

    def partitions(self) -> Sequence[InputPartition]:
        return [Capture(path) for path in expand(self.paths)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        path = partition.value
        try:
            yield from self._batches(path)
        except CaptureError as error:
            if self.mode == "FAILFAST":
                raise
            if self.mode == "PERMISSIVE" and self.table == "findings":
                yield self._unreadable(path, str(error))

    def _batches(self, path: str) -> Iterator[pa.RecordBatch]:
        import amqpsniff

        capture = amqpsniff.open(path, **self.decoding)
        for batch in capture.batches(self.table, columns=self.columns):
            yield batch.select(self.columns)

    def _unreadable(self, path: str, detail: str) -> pa.RecordBatch:
        from amqpsniff.findings import Finding
        from amqpsniff.tables.batches import finding_batch

        return finding_batch([Finding("capture-unreadable", detail, path)]).select(self.columns)


def _table(options: Mapping[str, str]) -> str:
    return options.get("table", "messages")


def _check_columns(table: str, schema: StructType) -> None:
    """Whether a schema that was asked for names columns of the table, with their types."""
    known = from_arrow_schema(schema_of(table))
    types = {field.name: field.dataType for field in known}
    for field in schema:
        if field.name not in types:
            raise UsageError(f"the table {table} has no column `{field.name}`")
        if field.dataType != types[field.name]:
            raise UsageError(
                f"column `{field.name}` is {types[field.name].simpleString()}, "
                f"not {field.dataType.simpleString()}"
            )


def _paths(options: Mapping[str, str]) -> list[str]:
    """The paths given to `load`: one, or a JSON list of several."""
    if "path" in options:
        return [options["path"]]
    paths: list[str] = json.loads(options.get("paths", "[]"))
    if not paths:
        raise UsageError('no captures named; give paths to `load("…")`')
    return paths


def _decoding(options: Mapping[str, str]) -> dict[str, Any]:
    """What the engine is told, from the options."""
    try:
        ports = frozenset(int(port) for port in options.get("port", "").split(",") if port.strip())
    except ValueError:
        raise UsageError(f"option port: `{options['port']}` is no list of numbers") from None
    return {
        "ports": ports,
        "bodies": _flag(options, "bodies"),
        "body_sha256": _flag(options, "bodySha256"),
        "show_secrets": _flag(options, "showSecrets"),
    }


def _flag(options: Mapping[str, str], name: str) -> bool:
    text = options.get(name, "false").lower()
    if text not in ("true", "false"):
        raise UsageError(f"option {name}: `{text}` is neither true nor false")
    return text == "true"
