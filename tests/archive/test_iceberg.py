"""The recipe of docs/spark.md makes Iceberg tables of an archive, without copying its files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from amqpsniff.archive import Batch
from amqpsniff.tables.schema import TABLES
from tests.conftest import REPO

from .splits import rows_of
from .tables import written_rows


def test_iceberg_has_the_rows_of_the_last_run(
    captures: Path, samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (REPO / "docs" / "spark.md").read_text(), re.S)
    (recipe,) = (one for one in blocks if "pyiceberg" in one)
    monkeypatch.chdir(tmp_path)
    for name in (None, "node.pcap"):
        if name is not None:
            (captures / "more.pcap").write_bytes((samples / name).read_bytes())
        Batch([str(captures)], "tables").run()
        exec(compile(recipe, "docs/spark.md", "exec"), {})
        uri = f"sqlite:///{tmp_path}/iceberg/catalog.db"
        catalog = SqlCatalog("local", uri=uri, warehouse=(tmp_path / "iceberg").as_uri())
        for table in TABLES:
            found = catalog.load_table(f"amqp.{table}").scan().to_arrow()
            assert rows_of(found) == written_rows(tmp_path / "tables", table)
