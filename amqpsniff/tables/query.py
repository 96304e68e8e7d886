"""Rows chosen and joined by SQL: the only module that knows DuckDB.

A filter is one boolean expression over the columns of the table shown. DuckDB evaluates it batch
by batch, on the columns that it names, to a mask (Arrow does, if it only tests whether a column
has a value); Arrow filters the batch by the mask. So rows keep their order, types and encoding, and
one batch is in memory at a time. An expression looks at one row only: subqueries, aggregates and
windows are for `sql`.

`sql` runs one SELECT over tables that are read as often as DuckDB scans them, and only the columns
that the statement names. DuckDB may not touch files, the network or extensions; what does not fit
its memory limit goes to a temporary directory. So do the rows of a table that a statement has to
hold before it gives any: the engine that makes them is gone when DuckDB gets them.
"""

from __future__ import annotations

import glob
import json
import os
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import duckdb
import pyarrow as pa

from amqpsniff.errors import AmqpsniffError, CaptureError, FilterError
from amqpsniff.html_repr import ROWS_SHOWN, grid
from amqpsniff.rereadable import Tabular
from amqpsniff.tables.batches import plain, plain_schema
from amqpsniff.tables.schema import JSON_COLUMNS
from amqpsniff.tables.spool import spooled
from amqpsniff.tables.statements import column_names, kind_text, needs_all, nodes_of, said, shown
from amqpsniff.tables.values import python_values

FILTER_MEMORY = "64MB"
"""DuckDB's memory for a filter, which sees one batch at a time."""

SQL_MEMORY = "128MB"
"""DuckDB's memory for a statement; sorts, groups and joins that need more go to disk. With one
thread 1.75 M whole frames are sorted in 96 MB, 440,000 whole messages in this and not in 112 MB. It
has to hold some 120,000 rows for that, however many there are: those of 600 bytes are sorted,
messages with headers of 1.5 kB would take 300 MB."""

SQL_THREADS = 1

FILES_MEMORY = "4GB"
"""DuckDB's memory for a statement over files; what needs more goes to disk."""

STREAMING_BYTES = "1MB"
"""Bytes of a result that DuckDB has ready; 10 MiB, as it has it, are not quicker."""

BATCH_ROWS = 2_048
"""Rows of a result that are taken at once, and of a table that are given at once: what DuckDB works
on. `SELECT *` of messages with headers of 1.5 kB takes 18 MB more with 4,096 and 160 MB more with
32,768, and no less time; with 1,024 all takes 5 % longer."""

_NULL_TESTS = {"OPERATOR_IS_NOT_NULL": True, "OPERATOR_IS_NULL": False}
"""Expressions that Arrow can tell: DuckDB takes 1 ms for each batch, however few its rows. Of what
Spark's workers do to give the methods among the frames that is 8 %."""

PASSING = frozenset("FILTER LIMIT PROJECTION STREAMING_LIMIT STREAMING_WINDOW UNION UNNEST".split())
"""Steps of DuckDB's plans that give rows while they take them."""

GATHERING = frozenset(("HASH_GROUP_BY", "PERFECT_HASH_GROUP_BY", "TOP_N", "UNGROUPED_AGGREGATE"))
"""Steps that keep but a few facts of the rows that they take, and give these."""

ARROW_TYPES = frozenset(
    """
    BOOLEAN TINYINT SMALLINT INTEGER BIGINT HUGEINT UTINYINT USMALLINT UINTEGER UBIGINT FLOAT DOUBLE
    VARCHAR JSON BLOB DATE TIMESTAMP TIME
    """.split()
) | {"TIMESTAMP WITH TIME ZONE", '"NULL"'}
"""Types of DuckDB that Arrow has too, as have decimals, enums, lists and structures of these. Of
other types, such as UHUGEINT, Arrow would be given less than the value: their values are text."""

DIGITS = frozenset(("UHUGEINT", "BIGNUM"))
"""Types whose text is a number of JSON."""

FIRST_DAY, LAST_DAY = -719_162, 2_932_896
"""Days since 1970 of the first day of the year 1 and the last one of 9999."""

DAY_SECONDS = 86_400

TABLE_NAME = "rows"
"""What a filter's table is called in messages and in qualified names."""

Parameters: TypeAlias = "Sequence[Any] | Mapping[str, Any] | None"
"""Values of a statement's parameters."""

Opened = Callable[[Collection[str]], Iterable[pa.RecordBatch]]
"""Reads a table: from names of columns, batches of those in the table's order, encoded or not."""


class Filter:
    """One boolean SQL expression over the columns of a schema.

    Raises FilterError, in one line, for an expression that cannot be evaluated.

    Attributes:
        columns: Names of the columns that the expression needs.
    """

    def __init__(self, schema: pa.Schema, where: str) -> None:
        self._schema = plain_schema(schema)
        self._where = where
        self._has_value: bool | None = None
        self._connection = _connect(FILTER_MEMORY, threads=1)
        try:
            self.columns = self._check()
        except FilterError:
            self._connection.close()
            raise

    def of(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of a batch for which the expression is true."""
        if not batch.num_rows:
            return batch
        names = [name for name in batch.schema.names if name in self.columns]
        if self._has_value is None:
            needed = batch.select(names or batch.schema.names[:1])
            mask = self._evaluate(pa.Table.from_batches([needed]))
        else:
            column = batch.column(names[0])
            mask = column.is_valid() if self._has_value else column.is_null()
        if mask.true_count == batch.num_rows:
            return batch
        return batch.filter(mask) if mask.true_count else batch.slice(0, 0)

    def close(self) -> None:
        """Let DuckDB go."""
        self._connection.close()

    def _evaluate(self, rows: pa.Table) -> pa.BooleanArray:
        connection = self._connection
        try:
            connection.register(TABLE_NAME, rows)
            relation = connection.sql(f"SELECT ({self._where}\n) AS wanted FROM {TABLE_NAME}")
            mask = relation.to_arrow_table().column(0).combine_chunks()
        except duckdb.Error as error:
            raise FilterError(said(error, self._where, self._schema.names)) from None
        finally:
            connection.unregister(TABLE_NAME)
        return mask.chunk(0) if isinstance(mask, pa.ChunkedArray) else mask

    def _check(self) -> frozenset[str]:
        """True if it is one boolean expression over one row; the columns it needs."""
        if not self._where.strip():
            raise FilterError("the expression is empty; compare a column with something")
        tree = self._parsed(self._where)
        statement, *further = tree["statements"]
        (model,) = self._parsed("true")["statements"]
        condition = statement["node"].get("where_clause")
        select_node = {**statement["node"], "where_clause": None}
        if further or select_node != {**model["node"], "where_clause": None}:
            raise FilterError(f"`{shown(self._where)}` is not one expression")
        nodes = list(nodes_of(condition))
        if any(node.get("class") == "SUBQUERY" for node in nodes):
            raise FilterError(
                f"`{shown(self._where)}` has a subquery; an expression looks at one row at a "
                "time: use sql for more"
            )
        if any(node.get("class") == "STAR" for node in nodes):
            raise FilterError(f"`{shown(self._where)}` has a star; name the columns that it means")
        try:
            self._bind()
        except duckdb.Error as error:
            raise FilterError(said(error, self._where, self._schema.names)) from None
        if needs_all(nodes, (TABLE_NAME,)):
            return frozenset(self._schema.names)
        if len(nodes) == 2:  # the test, and its column
            self._has_value = _NULL_TESTS.get(condition["type"])
        return frozenset(column_names(nodes, self._schema.names))

    def _parsed(self, where: str) -> dict[str, Any]:
        return _tree(self._connection, f"SELECT 1 FROM {TABLE_NAME} WHERE ({where}\n)", where)

    def _bind(self) -> None:
        connection = self._connection
        connection.register(TABLE_NAME, self._schema.empty_table())
        connection.sql(f"SELECT 1 FROM {TABLE_NAME} WHERE ({self._where}\n)")
        (kind,) = connection.sql(f"SELECT ({self._where}\n) FROM {TABLE_NAME}").types
        if str(kind) != "BOOLEAN":
            raise FilterError(
                f"`{shown(self._where)}` is {kind_text(kind)}, not true or false; compare it with "
                "something"
            )
        connection.unregister(TABLE_NAME)


def filtered(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, where: str
) -> Iterator[pa.RecordBatch]:
    """The rows for which the expression `where` is true, in their order; no empty batches.

    Raises FilterError at once for an expression that cannot be evaluated, and while rows are taken
    for one that fails on a row.
    """
    chosen = Filter(schema, where)
    return _filtered(chosen, batches)


def _filtered(chosen: Filter, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    try:
        for batch in batches:
            rows = chosen.of(batch)
            if rows.num_rows:
                yield rows
    finally:
        chosen.close()


class Result(Tabular[pa.RecordBatch]):
    """The rows that a statement gives, as record batches of this `schema`.

    Every loop over it and every `table()` runs the statement once more. A field whose strings are
    JSON is marked in its metadata, for `amqpsniff.tables.ndjson`. Values of types other than
    `ARROW_TYPES` are strings: DuckDB's text of them.
    """

    def __init__(
        self,
        statement: str,
        tables: Mapping[str, tuple[pa.Schema, Opened]],
        parameters: Parameters = None,
    ) -> None:
        self._query = statement, tables, parameters
        self._ready: _Run | None = _Run(*self._query)
        self.schema = self._ready.schema

    def __repr__(self) -> str:
        return f"<Result {', '.join(self.schema.names)}>"

    def _repr_html_(self) -> str:
        """For notebooks: the first rows."""
        if self._ready is None:
            self._ready = _Run(*self._query)
        ahead = self._ready.look_ahead()
        columns = [python_values(column[: ROWS_SHOWN + 1]) for batch in ahead for column in batch]
        rows = list(zip(*columns, strict=True))
        has_more = len(rows) > ROWS_SHOWN
        return grid("Result", self.schema.names, rows[:ROWS_SHOWN], more=has_more)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        run, self._ready = self._ready or _Run(*self._query), None
        return run.batches()

    def arrow(self) -> pa.Table:
        """All rows as one table."""
        return pa.Table.from_batches(iter(self), self.schema)

    def table(self) -> pa.Table:
        """The same."""
        return self.arrow()

    def close(self) -> None:
        """Close DuckDB and its files after a loop over the rows that ended early."""
        self._iterator = None
        if self._ready is not None:
            self._ready.close()
            self._ready = None


class _Run:
    """A statement that runs once.

    Attributes:
        schema: Of its rows.
        sources: The tables that it scans, by name.
        folder: Where rows wait; gone when the run is over.
    """

    def __init__(
        self,
        statement: str,
        tables: Mapping[str, tuple[pa.Schema, Opened]],
        parameters: Parameters,
    ) -> None:
        self._statement = statement
        self._parameters = parameters
        self.folder = tempfile.TemporaryDirectory(prefix="amqpsniff-")
        self._connection = _connect(SQL_MEMORY, SQL_THREADS, self.folder.name)
        self.sources: dict[str, StreamedTable] = {}
        self._reader: Any = None
        self._ahead: list[pa.RecordBatch] = []
        try:
            columns = self._needed(tables)
            for name, (schema, opened) in tables.items():
                source = self.sources[name] = StreamedTable(schema, opened, columns)
                self._connection.register(name, source)
            relation = self._run(lambda: self._connection.sql(statement, params=parameters))
            if relation is None:
                raise FilterError("not a statement that gives rows; begin it with SELECT")
            if any(map(_holds_rows, self._plan())):
                for source in self.sources.values():
                    source.folder = self.folder.name
            answer = self._run(lambda: _carried(relation))
            self._reader = self._run(lambda: answer.to_arrow_reader(BATCH_ROWS))
            self.schema = _marked(self._reader.schema, relation.types)
        except BaseException:
            self.close()
            raise

    def look_ahead(self) -> list[pa.RecordBatch]:
        """The first rows, which a loop gives again; empty without rows."""
        while not self._ahead:
            batch = self._run(self._next)
            if batch is None:
                break
            if batch.num_rows:
                self._ahead.append(batch)
        return self._ahead

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, batch by batch; closes the run when they are over or let go."""
        try:
            while (batch := self._run(self._next)) is not None:
                if batch.num_rows:
                    yield batch
                del batch
        finally:
            self.close()

    def __del__(self) -> None:
        if hasattr(self, "_connection"):  # else it could not be made
            self.close()

    def close(self) -> None:
        """Close DuckDB and its files; no more rows come then."""
        self._reader, self._ahead = None, []
        self._connection.close()
        self.folder.cleanup()

    def _next(self) -> pa.RecordBatch | None:
        if self._ahead:
            return self._ahead.pop()
        batch = next(self._reader or iter(()), None)
        for name, column in zip(batch.schema.names, batch.columns, strict=True) if batch else ():
            if _is_far(column):
                raise FilterError(
                    f"`{name}` has a time outside the years 1 to 9999; cast it to VARCHAR"
                )
        return batch

    def _needed(self, tables: Mapping[str, tuple[pa.Schema, Opened]]) -> frozenset[str] | None:
        """Names of the columns that the statement uses, over all tables; None for all."""
        tree = _tree(self._connection, self._statement, self._statement)
        if len(tree["statements"]) != 1:
            problem = "several statements" if tree["statements"] else "no statement"
            raise FilterError(f"{problem}; give one SELECT")
        nodes = list(nodes_of(tree))
        used = [name for name in tables if any(node.get("table_name") == name for node in nodes)]
        self._names = [name for table in used for name in tables[table][0].names]
        names = {name for schema, _ in tables.values() for name in schema.names}
        return None if needs_all(nodes, tables) else frozenset(column_names(nodes, names))

    def _plan(self) -> list[Any]:
        """DuckDB's plan for the statement: steps, with the steps that feed them as `children`."""
        explain = f"EXPLAIN (FORMAT json) {self._statement}"
        ((_, plan),) = self._run(
            lambda: self._connection.execute(explain, self._parameters).fetchall()
        )
        steps: list[Any] = json.loads(plan)
        return steps

    def _run(self, step: Callable[[], Any]) -> Any:
        """Run a step; an error of a source is raised as it was raised there."""
        try:
            return step()
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            # the reader raises DuckDB's error as an error of its own
            if isinstance(error, duckdb.OutOfMemoryException) or "Out of Memory" in str(error):
                raise FilterError(
                    f"`{shown(self._statement)}` needs more than the {SQL_MEMORY} of memory that "
                    "it may take; name only the columns that you need, or export the table to "
                    "Parquet and ask there"
                ) from None
            _raise_what_reading_raised(self.sources)
            raise FilterError(said(error, self._statement, self._names, self.sources)) from None


def sql(
    statement: str,
    tables: Mapping[str, tuple[pa.Schema, Opened]],
    parameters: Parameters = None,
) -> Result:
    """Run one SELECT over tables, each given as its schema and a function that reads it again.

    `parameters` are the values of `?` in order, or of `$name` by name.
    Raises FilterError, in one line, for a statement that does not run, and what reading raises.
    """
    return Result(statement, tables, parameters)


def answer(
    statement: str, tables: Mapping[str, tuple[pa.Schema, Opened]], setup: Iterable[str]
) -> pa.Table:
    """All rows of a statement of our own over tables that can be read at any time.

    `setup` is run before it, as macros. Raises FilterError where its memory does not suffice, and
    what reading raises.
    """
    sources = {
        name: StreamedTable(schema, opened, None) for name, (schema, opened) in tables.items()
    }
    with _ready(setup, SQL_MEMORY, SQL_THREADS) as connection:
        for name, source in sources.items():
            connection.register(name, source)
        try:
            return connection.sql(statement).to_arrow_table()
        except duckdb.Error:
            _raise_what_reading_raised(sources)
            raise


def answer_files(
    statement: str,
    tables: Mapping[str, tuple[pa.Schema, Sequence[Path]]],
    setup: Iterable[str],
) -> pa.Table:
    """All rows of a statement of our own over tables, each given as its columns and Parquet files.

    `setup` is run before it, as macros. All cores are used; see `FILES_MEMORY`. Raises CaptureError
    for files that cannot be read.
    """
    with _ready(setup, FILES_MEMORY, os.cpu_count() or 1, files=True) as connection:
        try:
            for name, (schema, files) in tables.items():
                if not files:
                    connection.register(name, schema.empty_table())
                    continue
                names = [glob.escape(str(file)) for file in files]
                rows = connection.read_parquet(names, hive_partitioning=False)
                rows.select(*schema.names).create_view(name)
            return connection.sql(statement).to_arrow_table()
        except duckdb.OutOfMemoryException:
            raise
        except duckdb.Error as error:
            reason = str(error).partition("\n")[0]
            raise CaptureError(
                f"the tables cannot be read: {reason}; delete what is damaged and run `batch` again"
            ) from None


@contextmanager
def _ready(
    setup: Iterable[str], memory: str, threads: int, *, files: bool = False
) -> Iterator[Any]:
    """A DuckDB for one statement of our own."""
    with tempfile.TemporaryDirectory(prefix="amqpsniff-") as folder:
        connection = _connect(memory, threads, folder, files=files)
        try:
            for step in setup:
                connection.execute(step)
            yield connection
        except duckdb.OutOfMemoryException:
            raise FilterError(f"this needs more than {memory} of memory") from None
        finally:
            connection.close()


def _raise_what_reading_raised(sources: Mapping[str, StreamedTable]) -> None:
    """Raise the error with which reading a table ended; DuckDB has only its text."""
    for source in sources.values():
        if source.error is not None:
            raise source.error from None


class StreamedTable:
    """A table that DuckDB scans: a new stream of it at every scan.

    Attributes:
        schema: The columns that are read.
        error: What reading raised.
        folder: Where rows wait until all were read; None where they need not.
    """

    def __init__(self, schema: pa.Schema, opened: Opened, columns: frozenset[str] | None) -> None:
        fields = [field for field in schema if columns is None or field.name in columns]
        self.schema = pa.schema(fields or [schema.field(0)])
        self.error: BaseException | None = None
        self.folder: str | None = None
        self._opened = opened

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        reader = pa.RecordBatchReader.from_batches(self.schema, self._batches())
        return reader.__arrow_c_stream__(requested_schema)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        try:
            for batch in self._read():
                for begin in range(0, batch.num_rows, BATCH_ROWS):
                    yield plain(batch.slice(begin, BATCH_ROWS))
                del batch
        except AmqpsniffError as error:
            self.error = error
            raise

    def _read(self) -> Iterable[pa.RecordBatch]:
        batches = self._opened(self.schema.names)
        return batches if self.folder is None else spooled(batches, self.folder)


def _connect(memory: str, threads: int, folder: str = "", *, files: bool = False) -> Any:
    """A separate DuckDB that sees only the tables registered with it, and files with `files`."""
    connection = duckdb.connect(
        config={
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "enable_external_access": files,
            "memory_limit": memory,
            "temp_directory": folder,
            "threads": threads,
        }
    )
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute("SET enable_progress_bar = false")  # it is drawn among the rows
    connection.execute(f"SET streaming_buffer_size = '{STREAMING_BYTES}'")
    return connection


def _carried(relation: Any) -> Any:
    """The same rows, with text in place of what Arrow has no values for."""
    casts = []
    for position, (name, kind) in enumerate(zip(relation.columns, relation.types, strict=True), 1):
        quoted = name.replace('"', '""')
        casts.append(f'#{position}{"" if _is_of_arrow(kind) else "::VARCHAR"} AS "{quoted}"')
    return (
        relation if all(map(_is_of_arrow, relation.types)) else relation.project(", ".join(casts))
    )


def _is_of_arrow(kind: Any) -> bool:
    """True if Arrow has every value of a type of DuckDB."""
    if kind.id in ("list", "array", "struct", "map"):
        parts = [part for part in kind.children if isinstance(part[1], type(kind))]
        return all(name and _is_of_arrow(part) for name, part in parts)
    return kind.id in ("decimal", "enum") or str(kind) in ARROW_TYPES


def _is_far(array: Any) -> bool:
    """True if dates or times of an array are ones that Python and Arrow's text do not have."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        return False
    if pa.types.is_nested(kind):
        parts = array.flatten()
        return any(map(_is_far, parts if isinstance(parts, list) else (parts,)))
    is_date = kind == pa.date32()
    if array.null_count == len(array) or not (
        is_date or pa.types.is_timestamp(kind) or pa.types.is_time64(kind)
    ):
        return False
    from pyarrow import compute

    ends = compute.min_max(array.view(pa.int32() if is_date else pa.int64())).as_py()
    day = 1 if is_date else DAY_SECONDS * 10**6
    if pa.types.is_time64(kind):
        return bool(ends["max"] >= day)
    return bool(ends["min"] < FIRST_DAY * day or ends["max"] >= (LAST_DAY + 1) * day)


def _holds_rows(step: dict[str, Any]) -> bool:
    """True if a step of DuckDB's plan, or one beneath it, holds rows of a table for a while.

    A step is an object with a `name`, and in `children` the steps whose rows it takes.
    """
    if any(map(_holds_rows, step["children"])):
        return True
    return step["name"].strip() not in PASSING | GATHERING and any(
        map(_gives_rows, step["children"])
    )


def _gives_rows(step: dict[str, Any]) -> bool:
    """True if a step gives rows of a table, and not only aggregates of it."""
    if step["name"].strip() in GATHERING:
        return False
    return not step["children"] or any(map(_gives_rows, step["children"]))


def _marked(schema: pa.Schema, types: Iterable[object]) -> pa.Schema:
    """The schema, with a mark on the strings that are JSON, or may be by their name."""
    fields = []
    for field, kind in zip(schema, types, strict=True):
        mark = None
        if str(kind) == "JSON" or str(kind) in DIGITS:
            mark = {"json": "any"}
        elif field.name in JSON_COLUMNS and field.type == pa.string():
            mark = {"json": "object"}
        fields.append(field.with_metadata(mark))
    return pa.schema(fields)


def _tree(connection: Any, statement: str, expression: str) -> dict[str, Any]:
    """A statement as DuckDB's parser sees it."""
    try:
        ((text,),) = connection.execute("SELECT json_serialize_sql(?)", [statement]).fetchall()
        tree: dict[str, Any] = json.loads(text)
    except (duckdb.Error, RecursionError) as error:
        raise FilterError(said(error, expression, ())) from None
    if tree.get("error"):
        raise FilterError(said(str(tree.get("error_message", "")), expression, ()))
    return tree
