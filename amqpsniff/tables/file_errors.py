"""The table `errors`: what of an archive's files could not be read."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from amqpsniff.findings import Finding

KINDS: Final = ("capture-unreadable", "capture-damaged", "capture-truncated")
"""Codes of findings that are rows of the table, and their `kind` there."""

_SKIPPED = re.compile(r"\((\d+) bytes skipped\)")
_OFFSET = re.compile(r"at offset (\d+)")


def schema() -> Any:
    """The schema: path, offset of the fault in the file (or in its uncompressed bytes) and bytes
    skipped because of it, both null if unknown; kind and detail.
    """
    import pyarrow as pa

    return pa.schema(
        [
            ("path", pa.string()),
            ("offset", pa.int64()),
            ("kind", pa.string()),
            ("detail", pa.string()),
            ("skipped_bytes", pa.int64()),
        ]
    )


def error_rows(
    files: Iterable[tuple[int | None, Iterable[Finding]]], lost: Iterable[Finding] = ()
) -> list[dict[str, Any]]:
    """A row for each fault of a file; `lost` are the faults found later.

    A file is its size in bytes (None if unknown) and its findings.
    """
    rows = []
    for size, findings in files:
        rows += [_row(finding, size) for finding in findings if finding.code in KINDS]
    listed = {(row["path"], row["kind"]) for row in rows}
    for row in [_row(finding, None) for finding in lost]:
        if (row["path"], row["kind"]) not in listed:
            listed.add((row["path"], row["kind"]))
            rows.append(row)
    return rows


def error_table(rows: list[dict[str, Any]]) -> Any:
    """The rows as an Arrow table."""
    import pyarrow as pa

    table_schema = schema()
    columns = [pa.array([row[field.name] for row in rows], field.type) for field in table_schema]
    return pa.Table.from_arrays(columns, schema=table_schema)


def _text(name: str | None) -> str | None:
    """A text with escapes for bytes that are not UTF-8: names of files may be any bytes."""
    if name is None:
        return None
    return name.encode(errors="surrogateescape").decode(errors="backslashreplace")


def _row(finding: Finding, size: int | None) -> dict[str, Any]:
    at = _OFFSET.search(finding.detail)
    offset = int(at[1]) if at else (0 if finding.code == "capture-unreadable" else None)
    skipped = None
    match = _SKIPPED.search(finding.detail)
    if match:
        skipped = int(match[1])
    elif size is not None and offset is not None and "unpacked" not in finding.detail:
        skipped = max(0, size - offset)
    return {
        "path": _text(finding.capture),
        "offset": offset,
        "kind": finding.code,
        "detail": _text(finding.detail),
        "skipped_bytes": skipped,
    }
