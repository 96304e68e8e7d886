"""The Spark data source `amqp`: captures as the tables that the command line serves.

The driver surveys the files and makes a plan (`amqpsniff.archive`); each task of it is a partition,
which runs the whole engine over its files for its conversations and hands Arrow batches to Spark.
Bytes of packets never pass between the JVM and Python. Rows are those of one engine that reads all
files in the order of time.

Findings may be about several connections, and the columns of messages that link them are. For that
table, and for messages where one of these columns is named, partitions share their work through the
folder that the option `scratch` names (`amqpsniff.archive.scan`); without it there is only one.

As a stream it gives the captures of a folder that are closed and were not there before. A file is
closed when it has not been written to for a while. Files are taken in the order of their last
change, and an offset is how far that went; it never goes back, so files that return are not new.
Each micro-batch is read as one capture. A connection that continues from an earlier one is met in
its middle, unless `lookBack` allows for so many bytes of earlier files: those that have packets of
it are read once more before the new ones. So the files are the state, and the checkpoint names
them.

Columns are chosen with `.schema(…)`, rows with the option `where`, before they pass to the JVM.
Conditions of a query are left to Spark: where it reads one data source with several of them,
Spark 4.3 hands the last one to all its readers.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
import uuid
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from amqpsniff.archive.batch_reports import files_of
from amqpsniff.archive.filesystem import Folder, Opener
from amqpsniff.archive.listing import Listed, list_captures
from amqpsniff.archive.output_folder import manifest_of
from amqpsniff.archive.plan import Plan, Task, make_plan
from amqpsniff.archive.scan import Scan
from amqpsniff.archive.secrets import ONE_TASK, task_bytes_for, with_secrets_of
from amqpsniff.archive.surveys import Surveyed, survey_files
from amqpsniff.archive.task import TaskRun
from amqpsniff.archive.task_io import TIMES, TaskSpec
from amqpsniff.capture.formats import is_remote
from amqpsniff.decode.octets import own_seed
from amqpsniff.errors import CaptureError, FilterError, UsageError
from amqpsniff.options import Options
from amqpsniff.tables.file_errors import error_rows, error_table
from amqpsniff.tables.file_errors import schema as error_schema
from amqpsniff.tables.schema import LINKED, schema_of
from amqpsniff.tables.statements import no_column

from .options import NAMES, OF_ARCHIVES, SourceOptions, parse, table_of

if TYPE_CHECKING:
    import pyarrow as pa

ERRORS = "errors"

CAPTURE, ENDS = "capture", "end_ns"
"""Columns that say whether a row is new to a stream."""

UNTIL = "until_ns"
"""The offset: the time of the last change up to which files were taken."""


class AmqpDataSource(DataSource):
    """`spark.read.format("amqp")`: one table of captures, named by path, folder, pattern or list.

    `.schema("method string, body_size long")` chooses columns and saves making the others; those
    that link messages are made where they are named. A folder that a batch has written is read by
    its manifest, a file a partition. Paths are those of the workers' file system. Raises
    UsageError for an option that makes no sense (see `SourceOptions`) and CaptureError for a path
    that is not there.
    """

    @classmethod
    def name(cls) -> str:
        return "amqp"

    def schema(self) -> StructType:
        return from_arrow_schema(arrow_schema(table_of(self.options)))

    def reader(self, schema: StructType) -> DataSourceReader:
        return AmqpReader(self.options, schema)

    def streamReader(self, schema: StructType) -> AmqpStreamReader:  # noqa: N802
        return AmqpStreamReader(self.options, schema)


class Since(NamedTuple):
    """The new rows of a stream: those of some captures, of connections those not over before
    the first packet of these.
    """

    captures: frozenset[str]
    begin_ns: int

    def of(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The new ones of some rows."""
        import pyarrow as pa
        import pyarrow.compute as pc

        from amqpsniff.tables.batches import plain

        rows = plain(batch)
        if ENDS in rows.schema.names:
            over = pc.less(rows.column(ENDS), self.begin_ns)
            return rows.filter(pc.invert(pc.fill_null(over, pa.scalar(value=False))))
        captures = pa.array(sorted(self.captures))
        return rows.filter(pc.is_in(rows.column(CAPTURE), value_set=captures))


@dataclass
class Share(InputPartition):
    """The work of one Spark task: tasks of a plan; rows for `errors`.

    Of a `scan` it is the task of this `number`; where it is `alone`, it has all of the `tasks`.
    """

    tasks: Sequence[Task] = ()
    files: Sequence[Surveyed] = ()
    rows: list[dict[str, Any]] = field(default_factory=list)
    decoding: Options | None = None
    since: Since | None = None
    scan: Scan | None = None
    number: int = 0
    alone: bool = False
    opener: Opener | None = None


@dataclass
class Written(InputPartition):
    """A Parquet file of a batch, by its name in the batch's folder."""

    folder: str
    name: str


class FileReading:
    """Reading of files as partitions, and of partitions as rows; for batch and stream readers."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self.options: SourceOptions = parse(options)
        self.given = {name.lower() for name in options}
        self.table = self.options.table
        self.columns = list(schema.names)
        _check_columns(self.table, schema)
        self.needed = [*self.columns, *self._where_columns()]
        if self.options.look_back:
            ending = ENDS in arrow_schema(self.table).names
            self.needed.append(ENDS if ending else CAPTURE)

    def shares(self, listed: Sequence[Listed], earlier: Sequence[Listed] = ()) -> list[Share]:
        """Partitions that read these files, and conversations of earlier files that continue."""
        files = survey_files(listed, self.options.storage, self.options.surveys)
        bad = error_rows((file.size, file.findings) for file in files)
        if bad and self.options.mode == "FAILFAST":
            raise CaptureError(bad[0]["detail"])
        if self.options.mode == "DROPMALFORMED":
            dropped = {row["path"] for row in bad}
            files = [file for file in files if file.path not in dropped]
        files = [file for file in files if self.options.has_time(file)]
        if self.table == ERRORS:
            return [Share(rows=error_rows((file.size, file.findings) for file in files))]
        since = None
        if earlier and files:
            marks = set().union(*(file.marks for file in files))
            begin = min((file.least_ns for file in files if file.least_ns is not None), default=0)
            since = Since(frozenset(file.path for file in files), begin)
            surveys = survey_files(earlier, self.options.storage, self.options.surveys)
            files = [
                *files,
                *(file for file in map(partial(_continuing, marks), surveys) if file.marks),
            ]
        task_bytes = task_bytes_for(self.options.decoding, self.options.task_bytes)
        linked = self.table == "messages" and not LINKED.isdisjoint(self.needed)
        if linked and not self.options.scratch:
            task_bytes = ONE_TASK
        plan = make_plan(files, task_bytes=task_bytes, max_reads=self.options.max_reads)
        decoding = with_secrets_of(files, self.options.decoding, self.options.storage)
        if self.table == "findings" or (linked and self.options.scratch and plan.tasks):
            return self._of_all(plan, decoding, since)
        settings: dict[str, Any] = {"since": since, "opener": Opener(self.options.storage)}
        shares = [Share([task], decoding=decoding, **settings) for task in plan.tasks]
        return shares or [Share()]

    def _of_all(self, plan: Plan, decoding: Options, since: Since | None) -> list[Share]:
        """Partitions of a table whose rows need the results of all tasks."""
        for file in plan.files:
            file.forget_conversations()
        scratch = f"{self.options.scratch or tempfile.gettempdir()}/{uuid.uuid4().hex}"
        names = [name for name in self.needed if name not in LINKED]
        order = TaskSpec(
            Task([]), "", "", decoding, (self.table,), Folder(scratch, self.options.storage),
            seed=own_seed(), links=self.table == "messages",
            columns={"messages": list(dict.fromkeys([*names, TIMES["messages"]]))},
            opener=Opener(self.options.storage),
        )  # fmt: skip
        scan = Scan(order)
        last = len(plan.tasks) - 1
        if not (self.options.scratch and plan.tasks):
            settings: dict[str, Any] = {"scan": scan, "number": last, "alone": True}
            return [Share(plan.tasks, plan.files, since=since, **settings)]
        scan.begin(plan.tasks)
        return [
            Share(files=plan.files if at == last else (), since=since, scan=scan, number=at)
            for at in range(last + 1)
        ]

    def written(self) -> list[InputPartition] | None:
        """The files of the table, if what is to be read is the folder of a batch; else None.

        Raises UsageError for columns that it has not, and options that say how captures are read.
        """
        if len(self.options.paths) != 1:
            return None
        (base,) = self.options.paths
        manifest = None
        with contextlib.suppress(OSError):  # said by who lists captures
            manifest = manifest_of(Folder(base, self.options.storage))
        if manifest is None:
            return None
        for name in NAMES:
            if name.lower() in self.given and name not in OF_ARCHIVES:
                raise UsageError(
                    f"option {name} is for captures, and {base} is the folder of a batch, whose "
                    f"options are {', '.join(OF_ARCHIVES[2:])}"
                )
        return [Written(base, name) for name in files_of(manifest, self.table, self.needed)]

    def rows(self, share: Share | Written) -> Iterator[pa.RecordBatch]:
        """The rows of a partition."""
        batches = self._batches(share)
        if isinstance(share, Share) and share.since is not None:
            batches = map(share.since.of, batches)
        if not self.options.where:
            for batch in batches:
                yield batch.select(self.columns)
            return
        from amqpsniff.tables.batches import plain
        from amqpsniff.tables.query import filtered

        for batch in filtered(batches, self._schema(), self.options.where):
            yield plain(batch.select(self.columns))

    def _batches(self, share: Share | Written) -> Iterator[pa.RecordBatch]:
        if isinstance(share, Written):
            yield from self._read(share)
        elif self.table == ERRORS:
            yield from error_table(share.rows).to_batches()
        elif self.table == "findings":
            yield from self._findings(share)
        elif share.scan is not None:
            for name in share.scan.messages(share.number):
                yield from self._read(Written(share.scan.order.folder.name, name))
        else:
            for task in share.tasks:
                for _, batch in self._run(share, task).batches():
                    yield batch

    def _read(self, file: Written) -> Iterator[pa.RecordBatch]:
        """The rows of a file; columns that it does not have are null."""
        import pyarrow as pa
        import pyarrow.dataset as ds

        full = self._schema()
        schema = pa.schema([full.field(name) for name in dict.fromkeys(self.needed)])
        with Folder(file.folder, self.options.storage).open(file.name) as opened:
            fragment = ds.ParquetFileFormat().make_fragment(opened)
            yield from fragment.to_batches(schema=schema, batch_readahead=1)

    def _schema(self) -> pa.Schema:
        return arrow_schema(self.table, everything=True)

    def _where_columns(self) -> Sequence[str]:
        """Columns of the condition; raises UsageError if it is invalid."""
        if not self.options.where:
            return ()
        from amqpsniff.tables.query import Filter

        try:
            chosen = Filter(self._schema(), self.options.where)
        except FilterError as error:
            raise UsageError(f"option where: {error}") from None
        chosen.close()
        return sorted(chosen.columns)

    def _run(self, share: Share, task: Task) -> TaskRun:
        return TaskRun(
            task, share.decoding, [self.table], columns={self.table: self.needed},
            encoded=bool(self.options.where), opener=share.opener,
        )  # fmt: skip

    def _findings(self, share: Share) -> Iterator[pa.RecordBatch]:
        from amqpsniff.tables.batches import finding_batch

        assert share.scan is not None
        scan = share.scan
        with contextlib.ExitStack() as stack:
            if share.alone:
                made = stack.enter_context(tempfile.TemporaryDirectory(prefix="amqpsniff-"))
                folder = Folder(made, self.options.storage)
                scan = Scan(replace(scan.order, folder=folder))
                scan.begin(share.tasks)
            found = scan.findings(share.number, share.files)
        if found is not None:
            yield finding_batch(found)


class AmqpReader(DataSourceReader):
    """Reads all captures."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self.reading = FileReading(options, schema)

    def partitions(self) -> Sequence[InputPartition]:
        written = self.reading.written()
        if written is not None:
            return written or [Share()]
        options = self.reading.options
        return self.reading.shares(list_captures(options.paths, options.storage))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, (Share, Written))
        yield from self.reading.rows(partition)


class AmqpStreamReader(DataSourceStreamReader):
    """Reads new captures."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self.reading = FileReading(options, schema)
        self._taken_ns = 0

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {UNTIL: 0}

    def latestOffset(self, start: dict[str, int] | None = None, *_: Any) -> dict[str, int]:  # noqa: N802
        """The last change of a closed file; Spark before 4.2 does not pass `start`."""
        closed = time.time_ns() - self.reading.options.close_after_ns
        times = [when for when, _ in self._listed() if when <= closed]
        self._taken_ns = max([*times, self._taken_ns, start[UNTIL] if start else 0])
        return {UNTIL: self._taken_ns}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        if start[UNTIL] >= end[UNTIL]:
            return []
        timed = sorted(self._listed())
        new = [file for when, file in timed if start[UNTIL] < when <= end[UNTIL]]
        earlier = [file for when, file in timed if when <= start[UNTIL]]
        held = list(accumulate(file.size or 0 for file in reversed(earlier)))
        count = bisect_right(held, self.reading.options.look_back)
        return self.reading.shares(new, earlier[len(earlier) - count :]) if new else []

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Share)
        yield from self.reading.rows(partition)

    def commit(self, end: dict[str, int]) -> None:
        """Nothing to do: the offset is all of the state."""

    def _listed(self) -> list[tuple[int, Listed]]:
        """The files, with the time of their last change or move."""
        options = self.reading.options
        try:
            listed = list_captures(options.paths, options.storage)
        except CaptureError:  # none has come yet
            return []
        return [(_changed_ns(file), file) for file in listed]


def _continuing(marks: set[int], file: Surveyed) -> Surveyed:
    """A file with no other conversations than these."""
    pairs = zip(file.marks, file.mark_bytes, strict=True)
    chosen = {mark: octets for mark, octets in pairs if mark in marks}
    return replace(file, marks=array("q", chosen), mark_bytes=array("q", chosen.values()))


def _changed_ns(file: Listed) -> int:
    """Time of the last change of a file, or of the move to its folder."""
    if file.modified_ns is None or is_remote(file.path):
        return file.modified_ns or 0
    try:
        return max(file.modified_ns, Path(file.path).stat().st_ctime_ns)
    except OSError:
        return file.modified_ns


def arrow_schema(table: str, *, everything: bool = False) -> pa.Schema:
    """The schema of a table, or of `errors`; `everything`: with columns that must be named."""
    return error_schema() if table == ERRORS else schema_of(table, everything=everything)


def _check_columns(table: str, schema: StructType) -> None:
    """Raise UsageError unless a schema has columns of the table, with their types."""
    expected = from_arrow_schema(arrow_schema(table, everything=True))
    types = {column.name: column.dataType for column in expected}
    for column in schema:
        if column.name not in types:
            raise UsageError(f"{table}: {no_column(column.name, types)}")
        if column.dataType != types[column.name]:
            raise UsageError(
                f"column `{column.name}` is {types[column.name].simpleString()}, "
                f"not {column.dataType.simpleString()}"
            )
