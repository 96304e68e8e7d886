"""The folder that a batch writes to: which of its files are the batch's, and which are valid."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

from amqpsniff import __version__
from amqpsniff.capture.formats import MANIFEST
from amqpsniff.errors import OutputError, UsageError
from amqpsniff.tables.schema import ROWS_FORM, TABLES

from .delta_log import LOG
from .filesystem import Folder, is_part, whole_path
from .listing import SEED, Listed
from .lock import FolderLock
from .surveys import FORM, Surveyed

_TABLES = (*TABLES, "errors")

_OWN = {*_TABLES, "_work", "reports", "report.html"}
"""Folders that a batch makes in its folder, besides the manifest."""

_BEGUN = tuple(f".{name}." for name in (MANIFEST, "report.html"))

SIZES = "_work/sizes.json"
"""The bytes of Parquet files by name; not in the manifest, since some depend on the seed."""

Manifest = dict[str, Any]


def manifest_of(folder: Folder) -> Manifest | None:
    """The manifest of a batch's folder, or None."""
    content = folder.read(MANIFEST)
    return None if content is None else dict(json.loads(content))


def require_manifest(folder: Folder) -> Manifest:
    """The manifest of a batch's folder; raises UsageError where no batch has written."""
    manifest = manifest_of(folder)
    if manifest is None:
        raise UsageError(f"{folder.name}: no batch has written there; run `amqpsniff batch` first")
    return manifest


def claim(folder: Folder, inputs: Iterable[str], lock: FolderLock) -> int:
    """Lock a folder for a batch; returns the seed of sightings, which is made once and kept there.

    Raises OutputError if the folder cannot be written or another run writes there; UsageError if it
    is an input, or if a table's folder has files that no batch has written: a batch deletes all
    files there that are not part of its tables.
    """
    base = folder.name.rstrip("/")
    try:
        if folder.read(SEED) is None:
            _require_own(folder, base, inputs)
        lock.acquire()
        with contextlib.suppress(ValueError):
            return int(folder.read(SEED) or b"", 16)
        seed = int.from_bytes(os.urandom(8), "big")
        folder.write(SEED, b"%016x" % seed)
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else error
        raise OutputError(f"{base}: tables cannot be written there: {why}") from None
    return seed


def _require_own(folder: Folder, base: str, inputs: Iterable[str]) -> None:
    """Refuse a folder that a batch cannot have for itself."""
    if base in (whole_path(name).rstrip("/") for name in inputs):
        raise UsageError(f"{base} is to be read: give tables a folder of their own, {base}/tables")
    if folder.read(MANIFEST) is None and not folder.names("_work"):
        for table in _TABLES:
            if folder.names(table):
                raise UsageError(
                    f"{base}/{table} has files that no batch has written; choose another folder"
                )


def require_kept(folder: Folder, tables: Iterable[str], options: Iterable[str]) -> None:
    """Refuse a run that would delete what an earlier one made with more tables or options.

    Raises UsageError that names them.
    """
    manifest = manifest_of(folder) or {}
    lost = [option for option in manifest.get("options", ()) if option not in options]
    lost += [f"table {table}" for table in manifest.get("tables", ()) if table not in tables]
    if lost:
        raise UsageError(
            f"{folder.name}: an earlier run made more there than this one would leave: "
            f"{', '.join(lost)}; give the same again, or `replace`",
            "replace",
        )


def without_own(folder: Folder, listed: Iterable[Listed]) -> list[Listed]:
    """The files without those that a batch has made in its folder."""
    base = folder.name.rstrip("/") + "/"
    own = tuple(f"{base}{name}/" for name in _OWN)
    return [file for file in listed if not f"{whole_path(file.path)}/".startswith(own)]


@cache
def form_of_rows() -> str:
    """Identification of the form of results: results of another form do not count.

    A hash of the numbers of the layouts, and of the code of rules and sessions, which makes the
    records that tasks give each other and has no number of its own.
    """
    hasher = hashlib.blake2b(json.dumps([FORM, ROWS_FORM]).encode(), digest_size=8)
    for room in ("findings", "session", "session/rules"):
        modules = resources.files("amqpsniff").joinpath(room).iterdir()
        for module in sorted(modules, key=lambda module: module.name):
            if module.name.endswith(".py"):
                hasher.update(module.read_bytes())
    return hasher.hexdigest()


def is_outdated(folder: Folder) -> bool:
    """True if there are tables in a folder that were made under another form of rows."""
    content = folder.read(MANIFEST)
    return content is not None and form_of_rows().encode() not in content


def sound(folder: Folder) -> set[str]:
    """Names of the files in a folder; one of another size than it was written with was damaged, and
    does not count.
    """
    sizes = json.loads(folder.read(SIZES) or b"{}")
    files = folder.files().items()
    return {name for name, file in files if sizes.get(name, file.size) == file.size}


def tidy(folder: Folder, needed: Iterable[str], tables: Iterable[str]) -> None:
    """Delete the files of an earlier state of the archive: those of tables that are not kept.

    The Delta logs of `tables` are.
    """
    names = {*needed, SEED}
    logs = tuple(f"{table}/{LOG}/" for table in tables)
    for name in folder.names():
        head = name.partition("/")[0]
        outdated = head in (*_TABLES, "_work") and name not in names and not name.startswith(logs)
        begun = is_part(name) and (head in _OWN or head.startswith(_BEGUN))
        if outdated or begun:
            folder.delete(name)


def write_manifest(
    folder: Folder,
    inputs: Sequence[str],
    captures: Iterable[Surveyed],
    files: Mapping[str, Iterable[str]],
    rows: Mapping[str, int],
    cost: Mapping[str, Any],
    options: Iterable[str],
) -> None:
    """Write the manifest: files and rows by table, and their captures.

    `cost` has the way of reading and its bytes; `options` the optional contents of the tables.
    """
    manifest = {
        "form": form_of_rows(),
        "version": __version__,
        "inputs": list(inputs),
        "tables": {table: sorted(names) for table, names in files.items()},
        "rows": rows,
        **cost,
        "options": list(options),
        "captures": [_file_row(capture) for capture in captures],
    }
    folder.write(MANIFEST, json.dumps(manifest, indent=1).encode())


def _file_row(file: Surveyed) -> dict[str, Any]:
    names = ("path", "size", "modified_ns", "packets", "octets", "first_ns", "last_ns", "error")
    return {"bytes" if name == "octets" else name: getattr(file, name) for name in names}
