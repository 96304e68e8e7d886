"""Options of the data source: Spark passes them as text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Any

from amqpsniff.archive.filesystem import whole_path
from amqpsniff.archive.plan import MAX_READS, TASK_BYTES
from amqpsniff.archive.secrets import carried
from amqpsniff.archive.surveys import Surveyed
from amqpsniff.errors import UsageError
from amqpsniff.options import Options

MODES = ("PERMISSIVE", "DROPMALFORMED", "FAILFAST")

NAMES = (
    "path", "paths", "table", "where", "mode", "from", "to", "port", "dialect", "tableDialect",
    "bodies", "bodySha256", "showSecrets", "tlsKeylog", "tlsKey", "packs", "storageOptions",
    "surveys", "scratch", "taskBytes", "maxReads", "closeAfter", "lookBack",
)  # fmt: skip
"""Options that there are; the first two are what `load` is given."""

OF_ARCHIVES = ("path", "paths", "table", "where", "storageOptions")
"""Those of them that mean something for the folder of a batch too."""

CLOSE_AFTER_SECONDS = 10.0
"""Time without a write after which a file counts as closed: tcpdump and dumpcap write whenever a
buffer is full, and a rotation begins another file."""


@dataclass(frozen=True)
class SourceOptions:
    """Options of a reader.

    Attributes:
        table: The table, or `errors`.
        paths: Captures, folders, patterns, URIs.
        decoding: How captures are decoded.
        where: A condition on rows, the same as `--where` of the command line; empty for all.
        mode: Handling of files that cannot be read whole, one of `MODES`.
        from_ns, to_ns: Files without a packet in this time are left out; None for no bound.
        storage: Options for fsspec.
        surveys: A folder of surveys, which is read and written; empty for none.
        scratch: A folder that all workers see; empty for none.
        task_bytes, max_reads: As for `amqpsniff.archive.make_plan`.
        close_after_ns: For streams: how long a file must have been left alone.
        look_back: For streams: bytes of earlier files that are read again for connections that go
            on.
    """

    table: str
    paths: tuple[str, ...]
    decoding: Options
    where: str = ""
    mode: str = MODES[0]
    from_ns: int | None = None
    to_ns: int | None = None
    storage: dict[str, Any] = field(default_factory=dict)
    surveys: str = ""
    scratch: str = ""
    task_bytes: int = TASK_BYTES
    max_reads: int = MAX_READS
    close_after_ns: int = int(CLOSE_AFTER_SECONDS * 1e9)
    look_back: int = 0

    def has_time(self, file: Surveyed) -> bool:
        """True if a file may hold packets of the wanted time."""
        if file.least_ns is None or file.last_ns is None:
            return True
        after = self.from_ns is None or file.last_ns >= self.from_ns
        return after and (self.to_ns is None or file.least_ns < self.to_ns)


def parse(options: Mapping[str, str]) -> SourceOptions:
    """Read the options; raises UsageError for an invalid or unknown one."""
    names = {name.lower() for name in NAMES}
    for name in options:
        if name.lower() not in names:
            matches = get_close_matches(name, NAMES, 1)
            hint = f" (did you mean {matches[0]}?)" if matches else ""
            raise UsageError(f"no option `{name}`{hint}; the options are {', '.join(NAMES[2:])}")
    mode = options.get("mode", MODES[0]).upper()
    if mode not in MODES:
        raise UsageError(f"no mode `{mode}`; there are {', '.join(MODES)}")
    return SourceOptions(
        table=table_of(options),
        paths=_paths(options),
        decoding=carried(_decoding(options)),
        where=options.get("where", ""),
        mode=mode,
        from_ns=_time(options, "from"),
        to_ns=_time(options, "to"),
        storage=json_object("option storageOptions", options.get("storageOptions") or "{}"),
        surveys=options.get("surveys", ""),
        scratch=whole_path(options["scratch"]) if options.get("scratch") else "",
        task_bytes=_number(options, "taskBytes", TASK_BYTES),
        max_reads=_number(options, "maxReads", MAX_READS),
        close_after_ns=int(_seconds(options, "closeAfter", CLOSE_AFTER_SECONDS) * 1e9),
        look_back=_number(options, "lookBack", 0) if options.get("lookBack", "0") != "0" else 0,
    )


def table_of(options: Mapping[str, str]) -> str:
    """The name of the table."""
    return options.get("table", "messages")


def _paths(options: Mapping[str, str]) -> tuple[str, ...]:
    """The paths given to `load`: one, or a JSON list of several."""
    if "path" in options:
        return (options["path"],)
    paths: list[str] = json.loads(options.get("paths", "[]"))
    if not paths:
        raise UsageError('no captures named; give paths to `load("…")`')
    return tuple(paths)


def _decoding(options: Mapping[str, str]) -> Options:
    try:
        ports = frozenset(int(port) for port in options.get("port", "").split(",") if port.strip())
    except ValueError:
        raise UsageError(f"option port: `{options['port']}` is not a list of numbers") from None
    return Options(
        ports=ports,
        dialect=options.get("dialect") or None,
        table_dialect=options.get("tableDialect") or "rabbitmq",
        bodies=_flag(options, "bodies"),
        body_sha256=_flag(options, "bodySha256"),
        show_secrets=_flag(options, "showSecrets"),
        tls_keylog=options.get("tlsKeylog") or None,
        tls_keys=tuple(filter(None, options.get("tlsKey", "").split(","))),
        packs=tuple(filter(None, options.get("packs", "").split(","))),
    )


def _flag(options: Mapping[str, str], name: str) -> bool:
    text = options.get(name, "false").lower()
    if text not in ("true", "false"):
        raise UsageError(f"option {name}: `{text}` is neither true nor false")
    return text == "true"


def _number(options: Mapping[str, str], name: str, default: int) -> int:
    text = options.get(name, str(default))
    if not text.isdigit() or not int(text):
        raise UsageError(f"option {name}: `{text}` is not a number above 0")
    return int(text)


def _seconds(options: Mapping[str, str], name: str, default: float) -> float:
    text = options.get(name, str(default))
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < 1e9:
        raise UsageError(f"option {name}: `{text}` is not a number of seconds")
    return seconds


def _time(options: Mapping[str, str], name: str) -> int | None:
    """A time as RFC 3339 text (UTC where it names no zone) or seconds since 1970, in ns."""
    text = options.get(name, "").strip()
    if not text:
        return None
    try:
        return int(float(text) * 1e9)
    except ValueError:
        pass
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"option {name}: `{text}` is not a time; "
            "give 2026-01-31T12:00:00Z or seconds since 1970"
        ) from None
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    return int(time.timestamp() * 1e6) * 1000


def json_object(name: str, text: str) -> dict[str, Any]:
    """A JSON object from its text; raises UsageError for anything else."""
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise UsageError(f"{name}: `{text}` is not a JSON object")
    return value
