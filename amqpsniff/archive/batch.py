"""Incremental build of an archive's tables in a folder; up-to-date outputs are reused.

    OUT/_manifest.json                        the valid files, written last, in one step
    OUT/messages/_delta_log/*.json            the same for readers of Delta tables (`delta_log`)
    OUT/messages/capture_date=2026-01-31/*.parquet, and so for every table
    OUT/_work/surveys, OUT/_work/tasks        finished work to reuse
    OUT/_work/sightings, OUT/_work/linkables  event logs of tasks, to be merged

A task's files are named by a hash of its input and options. A run after a killed one continues its
work; new files change only the tasks of connections that continue in them. Messages that are to be
linked are written in a second step (`linking`). Files that no task of the present plan has written
are deleted once the manifest no longer names them.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from io import BytesIO
from itertools import chain
from typing import Any, Protocol

from amqpsniff.errors import CaptureError, UsageError
from amqpsniff.options import Options
from amqpsniff.process_tuning import gc_paused
from amqpsniff.session.event_logs import ROWS
from amqpsniff.tables.file_errors import error_rows, error_table
from amqpsniff.tables.file_errors import schema as error_schema
from amqpsniff.tables.schema import TABLES, batch_schema

from .dealing import PIECE, Deal, Parts
from .delta_log import DeltaLog
from .filesystem import Folder, Opener, StorageOptions, whole_path
from .linking import STATE, Joining, Linked, join, known_links, link_all, links_name
from .listing import Listed, list_captures
from .lock import FolderLock
from .merging import merge_findings
from .output_folder import (
    SIZES,
    claim,
    form_of_rows,
    is_outdated,
    require_kept,
    sound,
    tidy,
    without_own,
    write_manifest,
)
from .plan import KEY_DIGITS, TASK_BYTES, Plan, Task, make_plan
from .progress import Progress, RunProgress
from .secrets import carried, digest, task_bytes_for, with_secrets_of
from .surveys import (
    HERE_SECONDS,
    Surveyed,
    known_surveys,
    survey_all,
    survey_in_process,
    survey_name,
    survey_orders,
)
from .task_io import RESULTS, TIMES, Done, TaskResult, TaskSpec, by_day, carry_out


class Runner(Protocol):
    """Calls a function for each of some items, in any order and anywhere."""

    def __call__(
        self, function: Callable[[Any], Any], items: Sequence[Any], watch: Callable[[], None]
    ) -> list[Any]:
        """Results in the order of the items; `watch` is to be called now and then until then."""
        ...


def run_in_process(
    function: Callable[[Any], Any], items: Sequence[Any], watch: Callable[[], None]
) -> list[Any]:
    """A `Runner` for this process."""
    results = []
    for item in items:
        results.append(function(item))
        watch()
    return results


HELD_ROWS, MIN_ROWS = 1 << 20, 1 << 10
"""Rows of what tasks write down that are read at a time, from all buckets together: 100 to 170 MB.
At least so many are of one bucket: 100 kB, which are read at once."""

LONGER = 1.2
"""How much longer than its core's part of the work a task is that is helped by a thread."""


@dataclass
class Summary:
    """The outcome of a run.

    Attributes:
        files, bad_files: Files named, and those among them that could not be read completely.
        unreadable_files: Files that could not be read at all, or not by every task.
        bytes: Captured bytes in them; `read_bytes`: bytes that the tasks read, with skipped
            packets.
        packets, connections: Packets and connections that the tasks followed.
        tasks, done_before: Tasks of the plan, and the number done by an earlier run.
        rows: Rows by table.
        findings: Findings by severity.
    """

    files: int = 0
    bad_files: int = 0
    unreadable_files: int = 0
    bytes: int = 0
    read_bytes: int = 0
    packets: int = 0
    connections: int = 0
    tasks: int = 0
    done_before: int = 0
    rows: dict[str, int] = field(default_factory=dict)
    findings: dict[str, int] = field(default_factory=dict)


class Batch:
    """The tables of some captures in a folder, which one run at a time writes to.

    From `find` to the end of `run` it has the lock on the folder, and longer as a context manager:
    to its end.

    Args:
        inputs: Paths, folders, patterns and URIs of captures.
        output: The folder, or a URI of one.
        options: How captures are decoded; files of keys are read here.
        tables: Names of the tables to write; `errors` is always written.
        links: Make the columns of messages that link them across connections too.
        frameworks: Make the columns that packs fill too.
        storage: Options for fsspec, where it is used.
        replace: Delete what an earlier run made with more tables or options; else it is refused.

    Raises UsageError for a table that is not there, CaptureError for a name that is not there,
    OutputError for a folder that cannot be written or to which another run writes.
    """

    def __init__(
        self,
        inputs: Iterable[str],
        output: str,
        options: Options | None = None,
        tables: Iterable[str] = tuple(TABLES),
        *,
        links: bool = False,
        frameworks: bool = False,
        storage: StorageOptions | None = None,
        replace: bool = False,
        task_bytes: int = TASK_BYTES,
    ) -> None:
        self.inputs = list(inputs)
        self.options = carried(options or Options())
        self.tables = tuple(dict.fromkeys(tables))
        self.storage = dict(storage or {})
        for table in self.tables:
            if table not in TABLES:
                raise UsageError(f"no table `{table}`; the tables are {', '.join(TABLES)}")
        if links and "messages" not in self.tables:
            raise UsageError("links are columns of the table messages, which is not among those")
        self.links = links
        self.frameworks = frameworks
        self.replace = replace
        self.folder = Folder(whole_path(output), self.storage)
        self.lock = FolderLock(self.folder)
        self._entered = 0
        self.task_bytes = task_bytes_for(self.options, task_bytes)
        self.plan = Plan()
        self.results: list[TaskResult] = []
        self._seed = 0
        self._linked = Linked("")
        self._listed: Sequence[Listed] = ()
        self._surveys: tuple[list[Surveyed], list[Listed]] | None = None
        self._specs: list[TaskSpec] | None = None
        self._earlier_results: dict[str, TaskResult] = {}

    def __enter__(self) -> Batch:
        self._entered += 1
        return self

    def __exit__(self, *_: object) -> None:
        self._entered -= 1
        if not self._entered:
            self.lock.release()

    def find(self) -> Sequence[Listed]:
        """Find out which captures there are, and make the folder one of a batch.

        Raises CaptureError for a name that is not there or when there is nothing, UsageError and
        OutputError for a folder that cannot hold tables.
        """
        own = self.folder.name.rstrip("/")  # `*` names it too once it is there
        others = [name for name in self.inputs if whole_path(name).rstrip("/") != own]
        listed = without_own(self.folder, list_captures(others or self.inputs, self.storage))
        if not listed:
            raise CaptureError(f"{', '.join(self.inputs)}: no file found")
        self._seed = claim(self.folder, self.inputs, self.lock)
        if not self.replace:
            require_kept(self.folder, (*self.tables, "errors"), self.extra_options())
        self._listed = listed
        return listed

    def extra_options(self) -> list[str]:
        """The options without which tables have less."""
        options = self.options
        extras = {
            "--bodies": options.bodies,
            "--body-sha256": options.body_sha256,
            "--show-secrets": options.show_secrets,
            "--links": self.links,
            "--frameworks": self.frameworks,
            "--packs": options.packs,
            "--tls-keylog or --tls-key": options.secrets or options.tls_keys,
            "all ports": not options.ports,
        }
        return [name for name, is_given in extras.items() if is_given]

    def look(self, seconds: float = HERE_SECONDS) -> None:
        """Survey captures in this process, for a limited time, and plan if none is left: this work
        needs no workers.
        """
        if self._surveys is None:
            self._surveys = known_surveys(self.folder, self._listed or self.find())
        files, missing = self._surveys
        surveyed, missing = survey_in_process(missing, self.folder, seconds)
        self._surveys = [*files, *surveyed], missing
        if not missing and self._specs is None:
            self._make_plan()

    def is_done(self) -> bool:
        """True if earlier runs did all the work: nothing is left to decode."""
        self.look(0)
        return self._specs is not None and len(self._earlier_results) == len(self._specs)

    def run(
        self,
        runner: Runner = run_in_process,
        notice: Callable[[RunProgress], None] = lambda step: None,
        cores: int = 1,
    ) -> Summary:
        """Bring the folder up to date; `cores` is how many items the runner works on at a time."""
        with self:
            try:
                return self._run(runner, notice, cores)
            except Exception:
                self.lock.check()  # what another run has deleted is missed in many ways
                raise

    def _run(self, runner: Runner, notice: Callable[[RunProgress], None], cores: int) -> Summary:
        self._survey(runner, notice)
        specs = self._specs if self._specs is not None else self._make_plan()
        before = self._earlier_results
        self._listed, self._surveys, self._specs, self._earlier_results = (), None, None, {}
        why = self.plan.why
        if is_outdated(self.folder):
            why += "; another version of this program made the tables there, so they are made anew"
        notice(RunProgress("plan", why=why))
        for spec in specs:
            spec.key = before[spec.base].key if spec.base in before else spec.key
        progress = Progress(self.folder, specs, before.values(), notice)
        progress.look()
        todo = [spec for spec in specs if spec.base not in before]
        readers, others = self._readers(todo)
        _help_the_longest(readers, cores)
        done = runner(carry_out, readers, progress.look)
        if others:
            self._hand_over(done, others)
            _help_the_longest(others, cores)
            done += runner(carry_out, others, progress.look)
        with gc_paused():
            read = (TaskResult.from_bytes(task.result) for task in done if task.key)
            self.results = [*before.values(), *read]
            done.clear()
            progress.look()
            if self.links:
                notice(RunProgress("links"))
                self._link(runner)
            notice(RunProgress("tables"))
            return self._commit(len(before))

    def _make_plan(self) -> list[TaskSpec]:
        files, _ = self._surveys or ([], [])
        with gc_paused():
            self.plan = make_plan(files, task_bytes=self.task_bytes, deals=True)
            for file in files:
                file.forget_conversations()
            self._specs = self._orders()
            self._earlier_results = self._read_earlier_results(self._specs)
        return self._specs

    def _orders(self) -> list[TaskSpec]:
        """The tasks of the plan, with all that they need."""
        options = with_secrets_of(self.plan.files, self.options, self.storage)
        mark = digest(options)
        salt = self._salt()
        tables = self.tables if self.frameworks else ()
        columns = {table: batch_schema(table, frameworks=True).names for table in tables}
        rows = min(ROWS, max(MIN_ROWS, HELD_ROWS // max(self.plan.buckets, 1)))
        order = TaskSpec(
            Task([]), "", "", options, self.tables, self.folder, seed=self._seed,
            links=self.links, columns=columns, held_rows=rows, opener=Opener(self.storage),
        )  # fmt: skip
        bases = [(task, task.key(salt)) for task in self.plan.tasks]
        return [replace(order, task=task, key=base + mark, base=base) for task, base in bases]

    def _readers(self, todo: Sequence[TaskSpec]) -> tuple[list[TaskSpec], list[TaskSpec]]:
        """The tasks that read captures, some of which deal out packets, and the tasks of buckets.

        A task that was done before decodes nothing, but may have to deal out packets of its files;
        such a task has no key.
        """
        others = [spec for spec in todo if spec.task.bucket is not None]
        keys = {spec.task.bucket: spec.key for spec in others if spec.task.bucket is not None}
        readers = {id(spec.task): spec for spec in todo if spec.task.bucket is None}
        for pack in self.plan.packs if keys else ():
            if keys.keys().isdisjoint(chain.from_iterable(pack.buckets.values())):
                continue
            spec = readers.get(id(pack.task))
            if spec is None:
                task = replace(pack.task, marks=array("q"), inverted=False, octets=0)
                spec = replace(others[0], task=task, key="", base="", tables=())
                readers[id(pack.task)] = spec
            spec.deal = Deal(pack, keys)
        return list(readers.values()), others

    def _hand_over(self, done: Iterable[Done], others: Sequence[TaskSpec]) -> None:
        """Give tasks the positions of the packets that were dealt out to them."""
        files = {file.path: at for at, file in enumerate(self.plan.files)}
        lost = {finding.capture: finding for result in done for finding in result.lost}
        parts: dict[int | None, Parts] = {}
        for spec in others:
            sources = spec.task.sources
            spec.parts = Parts(self.folder, array("q", [files[source.path] for source in sources]))
            spec.parts.lost = [lost[source.path] for source in sources if source.path in lost]
            parts[spec.task.bucket] = spec.parts
        for result in done:
            for path, pieces in result.dealt.items():
                for at in range(0, len(pieces), len(PIECE)):
                    bucket, *piece = pieces[at : at + len(PIECE)]
                    parts[bucket].numbers.extend((files[path], *piece))

    def _salt(self) -> str:
        """The options on which a task's rows depend, besides its files, without TLS secrets."""
        options = asdict(self.options) | {"ports": sorted(self.options.ports)}
        for name in ("tls_keylog", "tls_keys", "secrets"):
            del options[name]
        flags = [name for name in ("links", "frameworks") if getattr(self, name)]
        return json.dumps([form_of_rows(), options, sorted(self.tables), *flags])

    def _survey(self, runner: Runner, notice: Callable[[RunProgress], None]) -> None:
        """Survey the remaining files."""
        if self._surveys is None:
            notice(RunProgress("files"))
            self.look()
        files, missing = self._surveys or ([], [])
        total = len(files) + len(missing)
        notice(RunProgress("files", len(files), total))
        if missing:
            specs = survey_orders(missing, self.folder)
            found = runner(survey_all, specs, lambda: None)
            self._surveys = [*files, *chain.from_iterable(found)], []
            notice(RunProgress("files", total, total))

    def _link(self, runner: Runner) -> None:
        """Link the messages of all tasks, and write those whose links are new."""
        captures = sorted(file.path for file in self.plan.files)
        results = sorted(self.results, key=lambda result: result.key)
        facts = [captures, [[result.key, bool(result.lost)] for result in results]]
        input_digest = hashlib.blake2b(json.dumps(facts).encode()).hexdigest()
        existing = sound(self.folder)
        links = (
            None
            if any(result.lost for result in results)
            else known_links(self.folder, input_digest)
        )
        if links and not existing.issuperset(map(links_name, links.digests)):
            links = None
        files = {result.key: result.linkable for result in results if result.linkable is not None}
        self._linked = links or link_all(files, self.folder, captures, input_digest)
        joinings = map(self._joining, results)
        missing = [
            joining
            for joining in joinings
            if not (joining.complete and existing.issuperset(joining.targets))
        ]
        runner(join, missing, lambda: None)

    def _joining(self, result: TaskResult) -> Joining:
        """The messages of a task and their links, to be brought together."""
        digest = self._linked.digests.get(result.key, "")
        names = result.files.get("messages", [])
        return Joining(self.folder, result.key, digest, names, complete=not result.lost)

    def _read_earlier_results(self, specs: Sequence[TaskSpec]) -> dict[str, TaskResult]:
        """Results of tasks of the plan that were done before, by their keys without TLS."""
        keys = {spec.base: spec.key for spec in specs}
        results: dict[str, TaskResult] = {}
        existing = sound(self.folder)
        for name in sorted(file for file in existing if file.startswith(f"{RESULTS}/")):
            key = name.rpartition("/")[2].removesuffix(".result")
            if key[:KEY_DIGITS] not in keys:
                continue
            try:
                result = TaskResult.from_bytes(self.folder.read(name))
            except (ValueError, KeyError, TypeError):
                continue
            if result.lost or (result.event_logs and result.seed != self._seed):
                continue  # a file that comes back is read again
            if not existing.issuperset(result.names):
                continue
            if result.key == keys.get(result.base) or not result.encrypted:
                results[result.base] = result
        return results

    def _commit(self, done_before: int) -> Summary:
        """Write the merged results, then the manifest, then delete files that it does not name."""
        from amqpsniff.tables.batches import finding_batch

        findings = merge_findings(self.results, self.plan.files, self.folder, self._linked.hits)
        lost = [finding for result in self.results for finding in result.lost]
        gone = {finding.capture for finding in lost}
        errors = error_rows(((file.size, file.findings) for file in self.plan.files), lost)
        files, rows = self._written()
        if "findings" in self.tables:
            files["findings"] = self._write_dated("findings", finding_batch(findings))
            rows["findings"] = len(findings)
        if "links" in self.tables and not files["links"]:  # most archives have none
            files["links"] = self._write_dated("links", batch_schema("links").empty_table())
        files["errors"] = [self._write("errors", error_table(errors))]
        rows["errors"] = len(errors)
        self.lock.check()
        file_sizes = {name: file.size for name, file in self.folder.files().items()}
        for table, names in files.items():
            DeltaLog(self.folder, table).commit(names, self._schema(table), file_sizes)
        needed = {name for names in files.values() for name in names} | self._needed()
        existing = sorted(
            needed & file_sizes.keys()
        )  # nothing is kept of a file that could not be surveyed
        sizes = {name: file_sizes[name] for name in existing if name.endswith(".parquet")}
        self.folder.write(SIZES, json.dumps(sizes).encode())
        write_manifest(
            self.folder,
            self.inputs,
            self.plan.files,
            files,
            rows,
            self._cost(),
            self.extra_options(),
        )
        tidy(self.folder, needed, files)
        severities: dict[str, int] = {}
        for finding in findings:
            severities[finding.kind.severity] = severities.get(finding.kind.severity, 0) + 1
        return Summary(
            files=len(self.plan.files),
            bad_files=len({row["path"] for row in errors}),
            unreadable_files=sum(
                file.error is not None or file.path in gone for file in self.plan.files
            ),
            bytes=self.plan.octets,
            read_bytes=self.plan.read_bytes,
            packets=sum(file.packets for file in self.plan.files),
            connections=sum(result.connections for result in self.results),
            tasks=len(self.plan.tasks),
            done_before=done_before,
            rows=rows,
            findings=severities,
        )

    def _cost(self) -> dict[str, Any]:
        """The way in which captures are read, and bytes by stage of a complete run.

        For captures these are captured bytes, for dealt packets and tables bytes of files.
        """
        dealt = sum(result.dealt_bytes for result in self.results)
        return {
            "plan": self.plan.why,
            "bytes": self.plan.octets,
            "bytes_read": {
                "survey": self.plan.octets,
                "captures": self.plan.read_bytes,
                "dealt": dealt,
            },
            "bytes_written": {
                "dealt": dealt,
                "tables": sum(result.written_bytes for result in self.results),
            },
        }

    def _schema(self, table: str) -> Any:
        if table == "errors":
            return error_schema()
        return batch_schema(table, links=self.links, frameworks=self.frameworks)

    def _written(self) -> tuple[dict[str, list[str]], dict[str, int]]:
        """The files of tasks and their rows, by table."""
        files: dict[str, list[str]] = {table: [] for table in [*self.tables, "errors"]}
        rows = dict.fromkeys(files, 0)
        for result in self.results:
            for table, names in result.files.items():
                waits = self.links and table == "messages"
                files[table] += self._joining(result).targets if waits else names
            for table, count in result.rows.items():
                rows[table] += count
        return files, rows

    def _write_dated(self, table: str, rows: Any) -> list[str]:
        days = by_day(rows, TIMES.get(table, "ts_ns"))
        return [self._write(f"{table}/capture_date={day}", rows) for day, rows in days]

    def _write(self, folder: str, rows: Any) -> str:
        """Write a Parquet file named by its content; its name."""
        import pyarrow as pa

        from amqpsniff.tables.export import ParquetRows

        buffer = BytesIO()
        writer = ParquetRows(buffer, rows.schema)
        for batch in [rows] if isinstance(rows, pa.RecordBatch) else rows.to_batches():
            writer.add(batch)
        writer.close()
        octets = buffer.getvalue()
        name = f"{folder}/{hashlib.blake2b(octets, digest_size=10).hexdigest()}.parquet"
        self.folder.write(name, octets)
        return name

    def _needed(self) -> set[str]:
        """Files of the folder besides the tables that the next run needs."""
        needed = {result.place for result in self.results}
        needed |= {log.name for result in self.results for log in result.event_logs}
        if self.links:
            needed |= {name for result in self.results for name in result.files.get("messages", ())}
            needed |= {STATE, *map(links_name, self._linked.digests)}
        return needed | {survey_name(file) for file in self.plan.files} | {self.lock.name, SIZES}


def _help_the_longest(specs: Sequence[TaskSpec], cores: int) -> None:
    """Give a writing thread to the tasks that run longer than all others."""
    octets = sum(spec.task.octets for spec in specs)
    for spec in specs:
        spec.beside = spec.task.octets * cores > LONGER * octets
