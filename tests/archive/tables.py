"""What a batch has written, read back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from amqpsniff.archive.listing import MANIFEST

from .splits import rows_of


def manifest(output: Path) -> dict[str, Any]:
    """The manifest of a batch."""
    read: dict[str, Any] = json.loads((output / MANIFEST).read_text())
    return read


def written(output: Path, table: str) -> pa.Table:
    """The rows of a table of a batch, as its manifest names them."""
    names = manifest(output)["tables"][table]
    return pa.concat_tables(
        [parquet.ParquetFile(output / name).read() for name in names],
        promote_options="permissive",
    )


def written_rows(output: Path, table: str) -> list[tuple[Any, ...]]:
    """The same as tuples, in an order that depends on nothing but them."""
    return rows_of(written(output, table))


def everything(output: Path) -> dict[str, list[tuple[Any, ...]]]:
    """The rows of all tables."""
    return {table: written_rows(output, table) for table in manifest(output)["tables"]}


def files_there(output: Path) -> set[str]:
    """Names of the Parquet files of tables in a folder, hidden ones included."""
    return {
        str(path.relative_to(output))
        for path in output.rglob("*.par*")
        if "_work" not in path.parts and "reports" not in path.parts
    }
