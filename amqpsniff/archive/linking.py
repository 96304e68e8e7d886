"""Messages linked across the tasks of an archive.

A task writes its messages without links, with the ordinal of each, and a link record of each
(`LinkLogFile`). `link_all` reads the records of all tasks in time order, as one reader does, and
writes a file of links for each task; `join` merges the links of one task with its messages, some
rows at a time, on any core. Memory holds only the state of the replay, and about one row group of
each task at the current time.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from amqpsniff.session.event_logs import LINK_LOG_NUMBERS, LinkLog
from amqpsniff.session.link_recorder import id_text
from amqpsniff.session.linker import MATCHES
from amqpsniff.session.log_replay import FOUND, LinkReplay
from amqpsniff.session.log_replay import LINK_COLUMNS as FED
from amqpsniff.tables.batches import integer_array
from amqpsniff.tables.export import ParquetRows
from amqpsniff.tables.schema import EVERYTHING, LINKED, LINKED_MESSAGES

from .encoding import numbers
from .filesystem import Folder
from .ordered_merge import EventLogFile, WrittenLog, in_order, number_columns, ordinals

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds

UNLINKED = "_work/unlinked"
"""The folder of messages without links; they stay, for links may change when files come."""

FOLDER = "_work/links"

STATE = f"{FOLDER}/state.json"
"""The last result of linking, written once it is complete."""

LINK_COLUMNS = [message.name for message in LINKED_MESSAGES if message.name in LINKED]

ROW = "row"
"""The column of a message's ordinal among those of its task."""

GROUP_ROWS = 32_768
"""Links of a row group, some 3 MB; a task of which so many are known by now is held to that."""

DIGEST_DIGITS = 8


class LinkLogFile(EventLogFile):
    """A file of link records."""

    log: LinkLog

    def __init__(self, folder: Folder, name: str, seed: int) -> None:
        super().__init__(folder, name, lambda log: number_columns(log, LINK_LOG_NUMBERS))
        self.log = LinkLog(seed, self.add)


def with_ordinals(batch: pa.RecordBatch, first: int) -> pa.RecordBatch:
    """Messages with the column `ROW`, from an ordinal on."""
    import pyarrow as pa

    rows = ordinals(first, batch.num_rows)
    return pa.RecordBatch.from_arrays([*batch.columns, rows], names=[*batch.schema.names, ROW])


# the links of all tasks


@dataclass
class Linked:
    """The result of linking: `digests` of the links of tasks, by key, and limits that were hit.

    `of` identifies its input.
    """

    of: str
    digests: dict[str, str] = field(default_factory=dict)
    hits: dict[str, int] = field(default_factory=dict)


def known_links(folder: Folder, input_digest: str) -> Linked | None:
    """The last result of linking, if it had this input."""
    with contextlib.suppress(ValueError, TypeError):
        linked = Linked(**json.loads(folder.read(STATE) or b""))
        if linked.of == input_digest:
            return linked
    return None


def link_all(
    files: Mapping[str, WrittenLog], folder: Folder, captures: Iterable[str], input_digest: str
) -> Linked:
    """Link the messages of all tasks; `files` has their link records by key."""
    folder.delete(STATE)
    linked = Linked(input_digest)
    keys = list(files)
    writers: dict[int, LinksFile] = {}
    rows_left = {task: log.rows for task, log in enumerate(files.values())}
    replay = LinkReplay()
    for table in in_order([*files.values()], folder.open, captures, LINK_LOG_NUMBERS):
        replay.feed({name: numbers(table[name]) for name in FED}, table.num_rows)
        for task, rows in _by_task(replay).items():
            if task not in writers:
                writers[task] = LinksFile(folder, keys[task])
            writers[task].add(rows)
        for task, count in _counts(table["task"]).items():
            rows_left[task] -= count
            if not rows_left[task] and task in writers:
                linked.digests[keys[task]] = writers.pop(task).close()
    linked.hits = replay.hits
    folder.write(STATE, json.dumps(asdict(linked)).encode())
    return linked


def _counts(tasks: pa.ChunkedArray) -> dict[int, int]:
    """Number of rows of each task."""
    counts = tasks.value_counts().to_pylist()
    return {row["values"]: row["counts"] for row in counts}


def _by_task(replay: LinkReplay) -> dict[int, pa.Table]:
    """The links that were found, by task."""
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = replay.rows
    if not rows:
        return {}
    columns = {}
    for name in FOUND:
        storage = bytearray(memoryview(replay.columns[name].storage)[: 8 * rows])
        columns[name] = integer_array(storage, rows)
    tasks = columns.pop("task")
    table = pa.table(columns)
    return {task: table.filter(pc.equal(tasks, task)) for task in tasks.unique().to_pylist()}


class LinksFile:
    """A task's links: rows of a `LinkReplay`, written `GROUP_ROWS` at a time."""

    def __init__(self, folder: Folder, key: str) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        self._stack = contextlib.ExitStack()
        sink = self._stack.enter_context(folder.create(links_name(key)))
        schema = pa.schema([(name, pa.int64()) for name in FOUND if name != "task"])
        self._writer = parquet.ParquetWriter(sink, schema, compression="zstd", compression_level=1)
        self._held = schema.empty_table()
        self._digest = hashlib.blake2b(digest_size=DIGEST_DIGITS // 2)

    def add(self, rows: pa.Table) -> None:
        """More links."""
        import pyarrow as pa

        self._held = pa.concat_tables([self._held, rows])
        while self._held.num_rows >= GROUP_ROWS:
            self._write(self._held.slice(0, GROUP_ROWS))
            self._held = self._held.slice(GROUP_ROWS)

    def close(self) -> str:
        """Write the rest; a digest of all links."""
        if self._held.num_rows:
            self._write(self._held)
        self._writer.close()
        self._stack.close()
        return self._digest.hexdigest()

    def _write(self, rows: pa.Table) -> None:
        for column in rows.columns:
            for chunk in column.fill_null(-(2**63)).chunks:
                octets = memoryview(chunk.buffers()[1])
                self._digest.update(octets[8 * chunk.offset : 8 * (chunk.offset + len(chunk))])
        self._writer.write_table(rows, row_group_size=GROUP_ROWS)


def links_name(key: str) -> str:
    """The name of the file of a task's links."""
    return f"{FOLDER}/{key}.parquet"


# links and messages


@dataclass
class Joining:
    """Messages of a task, by the names of their files, to be written with their links.

    `digest` is that of the links, empty without links. Messages of a task with unreadable files are
    not `complete`, and have other names: a repeated task must not reuse them.
    """

    folder: Folder
    key: str
    digest: str
    names: Sequence[str]
    complete: bool = True

    @property
    def targets(self) -> list[str]:
        """The names of the files with links."""
        linked = self.key + self.digest + ("" if self.complete else "lost")
        return [
            f"messages{name.removeprefix(UNLINKED).replace(self.key, linked)}"
            for name in self.names
        ]


def join(order: Joining) -> None:
    """Write the messages of a task with their links."""
    import pyarrow.dataset as ds

    folder = order.folder
    with contextlib.ExitStack() as stack:
        links = None
        if order.digest:
            file = stack.enter_context(folder.open(links_name(order.key)))
            links = ds.ParquetFileFormat().make_fragment(file)
        for name, target in zip(order.names, order.targets, strict=True):
            _join_file(folder, name, target, links)


def _join_file(
    folder: Folder, name: str, target: str, links: ds.ParquetFileFragment | None
) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    with folder.open(name) as file, folder.create(target) as sink:
        names = [name for name in parquet.read_schema(file).names if name != ROW]
        full = EVERYTHING["messages"]
        schema = pa.schema([full.field(name) for name in (*names, *LINK_COLUMNS)])
        texts = [field.name for field in schema if field.type == pa.string()]
        encoded = [name for name in texts if name not in LINKED]
        source = parquet.ParquetFile(file, read_dictionary=encoded)
        writer = ParquetRows(sink, schema)
        for group in range(source.num_row_groups):
            messages = source.read_row_group(group)
            found = _links_of(messages[ROW], links)
            columns = [*messages.drop_columns([ROW]).columns, *found]
            rows = pa.Table.from_arrays(columns, names=schema.names)
            for batch in rows.combine_chunks().to_batches():
                writer.add(batch)
        writer.close()


def _links_of(rows: pa.ChunkedArray, links: ds.ParquetFileFragment | None) -> list[Any]:
    """The columns of links of messages, by their ordinals, which rise."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if links is None or not len(rows):
        types = [LINKED_MESSAGES.field(name).type for name in LINK_COLUMNS]
        return [pa.nulls(len(rows), type_) for type_ in types]
    message = pc.field("message")
    found = links.to_table(filter=(message >= rows[0]) & (message <= rows[-1]))
    found = found.take(pc.index_in(rows, value_set=found["message"]))
    return [_typed(found[name], LINKED_MESSAGES.field(name)) for name in LINK_COLUMNS]


def _typed(column: pa.ChunkedArray, field: pa.Field) -> Any:
    """A column of integers in the type of the table."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if field.type == pa.int64():
        return column
    if field.type == pa.bool_():
        return column.cast(pa.bool_())
    if field.name == "link_confidence":
        names = [*MATCHES]
        codes = column.cast(pa.int32())
    else:
        ids = column.drop_null().unique()
        names = [id_text(id_) for id_ in ids.to_pylist()]
        codes = pc.index_in(column, value_set=ids)
    words = pa.array(names, pa.string())
    return pa.DictionaryArray.from_arrays(codes.combine_chunks(), words)
