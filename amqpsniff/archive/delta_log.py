"""A Delta log next to each table, so that a reader sees one state of it during a run.

    OUT/messages/_delta_log/00000000000000000007.json

A commit is one file. Only the run that has the lock on the folder writes it, in one step on any
file system. It names the files added and removed since the commit before; without a difference no
commit is written. Removed files are deleted after it: a reader of an older state may miss a file,
but never sees rows of two states. A damaged log, or one with actions of other writers, is replaced
by a new one. Commits contain no times: the same runs write the same bytes. (Delta Lake's protocol,
reader version 1, writer version 2.)
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from .filesystem import Folder

if TYPE_CHECKING:
    import pyarrow as pa

LOG = "_delta_log"

DATE = "capture_date"

_PROTOCOL = {"minReaderVersion": 1, "minWriterVersion": 2}

_COMMIT = re.compile(r"(\d{20})\.json$")

_DATED = re.compile(rf"{DATE}=([^/]*)/")

_TYPES = {
    "int64": "long",
    "int32": "integer",
    "bool": "boolean",
    "timestamp[us, tz=UTC]": "timestamp",
}
"""Names of types in a Delta schema that are others than Arrow's."""


class DeltaLog:
    """The log of one table: `commit` makes files the table's."""

    def __init__(self, folder: Folder, table: str) -> None:
        self._folder = folder
        self._table = table
        self._version = -1
        self._files: set[str] = set()
        self._schema = ""
        self._replay()

    def commit(self, files: Iterable[str], schema: pa.Schema, sizes: Mapping[str, int]) -> None:
        """Let the table consist of these files, in one step.

        `files` are names in the folder of the archive, `sizes` their bytes.
        """
        names = {name.removeprefix(f"{self._table}/") for name in files}
        dated = any(map(_DATED.match, names)) or self._table != "errors"
        fields = _fields(schema) + ([_field(DATE, "date")] if dated else [])
        structure = json.dumps({"type": "struct", "fields": fields})
        actions: list[dict[str, Any]] = []
        if self._version < 0:
            actions.append({"protocol": _PROTOCOL})
        if structure != self._schema:
            actions.append({"metaData": self._described(structure, dated)})
        for name in sorted(self._files - names):
            actions.append({"remove": {"path": name, "deletionTimestamp": 0, "dataChange": True}})
        for name in sorted(names - self._files):
            actions.append({"add": _added(name, sizes[f"{self._table}/{name}"])})
        if not actions:
            return
        lines = "".join(f"{json.dumps(action)}\n" for action in actions)
        self._folder.write(self._name(self._version + 1), lines.encode())

    def _described(self, structure: str, dated: bool) -> dict[str, Any]:
        place = f"{self._folder.name.rstrip('/')}/{self._table}"
        return {
            "id": str(uuid.uuid5(uuid.NAMESPACE_URL, place)),
            "name": self._table,
            "format": {"provider": "parquet", "options": {}},
            "schemaString": structure,
            "partitionColumns": [DATE] if dated else [],
            "configuration": {},
        }

    def _replay(self) -> None:
        names = self._folder.names(f"{self._table}/{LOG}")
        commits = [name for name in names if _COMMIT.search(name)]
        try:
            if names != [self._name(version) for version in range(len(commits))]:
                raise ValueError
            for name in commits:
                for line in (self._folder.read(name) or b"").splitlines():
                    self._take(json.loads(line))
        except (ValueError, KeyError, TypeError):
            self._files, self._schema = set(), ""
            for name in reversed(names):
                self._folder.delete(name)
            return
        self._version = len(commits) - 1

    def _take(self, action: dict[str, Any]) -> None:
        ((kind, facts),) = action.items()
        if kind == "add":
            self._files.add(facts["path"])
        elif kind == "remove":
            self._files.discard(facts["path"])
        elif kind == "metaData":
            self._schema = facts["schemaString"]
        elif (kind, facts) != ("protocol", _PROTOCOL):
            raise ValueError(kind)

    def _name(self, version: int) -> str:
        return f"{self._table}/{LOG}/{version:020}.json"


def _added(name: str, size: int) -> dict[str, Any]:
    found = _DATED.match(name)
    return {
        "path": name,
        "partitionValues": {DATE: found[1]} if found else {},
        "size": size,
        "modificationTime": 0,
        "dataChange": True,
    }


def _fields(schema: pa.Schema) -> list[dict[str, Any]]:
    return [_field(field.name, _TYPES.get(str(field.type), str(field.type))) for field in schema]


def _field(name: str, kind: str) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": True, "metadata": {}}
