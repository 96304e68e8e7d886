"""Captures opened as the options say: their rows in one pass, and what is wrong with the files.

Findings about the capture itself go to standard error when the pass is over, one line each.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amqpsniff.analysis.times import outside
from amqpsniff.errors import TsharkError, UsageError
from amqpsniff.process_tuning import take_large_pages
from amqpsniff.units import count, plural, some

from .entry import FAILED, FOUND, complain
from .options import Input, Names, Scope
from .output import settings
from .progress import Progress

if TYPE_CHECKING:
    from amqpsniff.analysis.selection import RowFilter
    from amqpsniff.findings import Finding
    from amqpsniff.reader import Capture


WARNED_OF = frozenset(
    ("capture-truncated", "capture-damaged", "capture-unreadable", "interface-dropped",
     "packets-cut", "tunnel-unreadable", "protocol-header-unknown", "protocol-not-decoded",
     "capture-through-tshark")
)  # fmt: skip
"""Findings that say why something is not there: those about the files, and about protocols that are
not decoded."""

WHY_FAILED = frozenset(("capture-unreadable",))
"""Findings that make a run fail; they are reported with `--quiet` too."""

NO_ROW = "no row matches the options"

KEY_LOG = "SSLKEYLOGFILE"
"""Environment variable that names the file to which programs write the secrets of TLS."""

MAX_WARNINGS = 20
"""Warnings written: a directory of a thousand damaged files is one thing to say, not a thousand."""


class Reading:
    """One pass over the captures of an `Input`.

    `scope` is the part that is wanted: that no packet lies in its time is said at the end.
    `warned_of` are codes of findings that are said on standard error; None for `WARNED_OF`.

    Attributes:
        capture: The `amqpsniff.reader.Capture`.
        passes: The passes over it.
        exit_code: 3 when a capture could not be read, else 0, once the pass is over.
    """

    def __init__(
        self,
        options: Input,
        scope: Names | None = None,
        *,
        bodies: bool = False,
        body_sha256: bool = False,
        warned_of: Collection[str] | None = None,
    ) -> None:
        import amqpsniff

        take_large_pages()
        self.options = options
        self._scope = scope
        self._outside = ""
        self._warned_of = WARNED_OF if warned_of is None else frozenset(warned_of)
        self.exit_code = 0
        self.capture = amqpsniff.open(
            *options.captures,
            **options.given(),
            tls_keylog=keylog(options.tls_keylog),
            bodies=bodies,
            body_sha256=body_sha256,
            reader=options.reader,
        )
        self.passes = self.capture.passes

    def started(self) -> int | None:
        """Time of the first packet; None while no packet with a time was read."""
        return self.passes.started()

    @property
    def several(self) -> bool:
        """True if there are several captures."""
        return len(self.passes.names) > 1

    def row_filter(self, part: Scope, table: str) -> RowFilter:
        """The filter of rows of a table; the captures are read for it first if needed."""
        (rows,) = self.passes.row_filters(part.selection(), table)
        return rows

    def rows(
        self,
        *tables: str,
        columns: Mapping[str, Collection[str]] | None = None,
        progress: bool = False,
        shown: bool = False,
    ) -> Iterator[tuple[str, Any]]:
        """Record batches of the tables, as (table, batch); strings that repeat stay encoded.

        With `progress` a bar says how far it is, on a terminal, when it takes long; where rows are
        `shown` as they come, it is gone by the first one.
        """
        needed = dict(columns) if columns is not None else None
        with self.passing(progress=progress):
            for pair in self.passes.tables(*tables, encoded=True, columns=needed):
                if shown:
                    self._bar.end()
                yield pair

    def chosen(
        self,
        row_filter: RowFilter,
        *,
        columns: Collection[str] | None = None,
        progress: bool = False,
        shown: bool = False,
    ) -> Iterator[Any]:
        """Batches of the wanted rows of a table, none of them empty; else as `rows`."""
        needed = {row_filter.table: row_filter.needed(columns)}
        for _, batch in self.rows(row_filter.table, columns=needed, progress=progress, shown=shown):
            rows = row_filter.of(batch)
            if rows.num_rows:
                yield rows
            if row_filter.done:
                return

    @contextmanager
    def passing(self, *, progress: bool = True) -> Iterator[Capture]:
        """Give the capture to be read; warnings follow if it was read to its end.

        With `progress` a bar says how far it is, on a terminal, when it takes long.
        """
        refused = None
        self._bar = Progress(
            progress and not self.options.quiet, lambda: self.passes.totals.packets
        )
        with self._bar:
            try:
                yield self.capture
            except UsageError as error:  # the part that was asked for is not in the captures
                refused = error
        if self.passes.finished:
            self.judge()
        if refused is not None:
            raise refused

    def judge(self) -> None:
        """Warn of problems of the files, and if there was no AMQP in them."""
        findings = self.passes.found
        if WHY_FAILED & {finding.code for finding in findings}:
            self.exit_code = FAILED
        codes = self._warned_of & WHY_FAILED if self.options.quiet else self._warned_of
        warnings = Counter(
            f"{finding.kind.severity}: {_warning_text(finding)}"
            for finding in findings
            if finding.code in codes
        )
        for warning, places in warnings.most_common(MAX_WARNINGS):
            complain(warning + (f" ({places} times)" if places > 1 else ""))
        if len(warnings) > MAX_WARNINGS:
            complain(f"warning: {len(warnings) - MAX_WARNINGS} more such findings")
        if self.options.quiet:
            return
        totals = self.passes.totals
        if not totals.connections:
            complain(f"warning: {self._nothing()}")
        elif self._scope is not None:
            scope = self._scope
            times = (totals.first_ns, totals.last_ns, settings.zone)
            self._outside = outside(scope.from_, scope.to, *times)
            if self._outside:
                complain(f"warning: {self._outside}")

    def miss(self, rows: RowFilter) -> None:
        """Warn if there is AMQP but no row was chosen: an empty answer looks broken."""
        if not rows.matched and not rows.done:
            chosen = rows.selection.chooses()
            self.warn_of_nothing(NO_ROW if chosen else f"no {rows.table} in what was captured")

    def warn_of_nothing(self, text: str) -> None:
        """Warn with `text` if there is AMQP, unless a warning has said why nothing is shown."""
        if self.passes.totals.connections and not self.options.quiet and not self._outside:
            complain(f"warning: {text}")

    def _nothing(self) -> str:
        totals = self.passes.totals
        segments, others = (totals.counters.get(name, 0) for name in ("segments", "other_ports"))

        text = f"no AMQP in {some(self.passes.names)}: {plural(totals.packets, 'packet')}"
        tcp = segments + others
        text += f", {count(tcp) if tcp else 'none'} of them TCP" if totals.packets else ""
        if others:
            text += f", {count(segments) if segments else 'none'} with such a port"
        through = any(finding.code == "capture-through-tshark" for finding in self.passes.found)
        if totals.packets and not tcp and not through and self.options.reader == "auto":
            text += f"; {self._other_reader()}"
        if totals.sealed:
            from .render.tls_table import unread

            text += f"; {unread(totals, self.passes.encrypted)}"
        if self.options.port:
            text += "; leave out --port to look at every port"
        return text

    def _other_reader(self) -> str:
        """Another way to read a capture in which no TCP was found."""
        from amqpsniff.capture.formats import LINK_TYPES
        from amqpsniff.capture.tshark_reader import found_tshark

        foreign = [str(kind) for kind in self.passes.link_types if kind not in LINK_TYPES]
        if not foreign:
            return "--reader tshark may find it in tunnels that are not read here"
        try:
            found_tshark()
        except TsharkError as error:
            return f"link type {', '.join(foreign)} is not read here; reading it by tshark: {error}"
        return f"link type {', '.join(foreign)} is read with --reader tshark"


def judged(code: int, failures: Iterable[str], *, quiet: bool) -> int:
    """The exit code of a command that ends with `code` if no check failed; prints failed checks."""
    failed = list(failures)
    for failure in [] if quiet else failed:
        complain(failure)
    return code or (FOUND if failed else 0)


def keylog(given: str | None, *, exists: bool = True) -> str | None:
    """The key log that was given, else the one that other programs write to, where it can be used
    and, if it must be, is there.

    Nothing is said where it cannot: no option asked for it.
    """
    if given is not None:
        return given

    from amqpsniff.tls.secrets import can_decrypt

    name = os.environ.get(KEY_LOG)
    return name if name and can_decrypt() and (not exists or Path(name).is_file()) else None


def _warning_text(finding: Finding) -> str:
    name, detail = finding.capture, finding.detail
    if not detail or not finding.code.startswith("capture-"):
        detail = ": ".join(filter(None, (finding.kind.title, detail)))
    return detail if not name or detail.startswith(name) else f"{name}: {detail}"
