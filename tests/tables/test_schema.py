"""The schemas are those of the table contract, column by column."""

import re

import pyarrow as pa
import pytest

from amqpsniff.errors import UsageError
from amqpsniff.tables.schema import JSON_COLUMNS, TABLES, schema_of
from tests.conftest import SHARED

CONTRACT = SHARED / "TABLES.md"
TYPES = {
    "int64": pa.int64(),
    "int32": pa.int32(),
    "bool": pa.bool_(),
    "string": pa.string(),
    "string (JSON)": pa.string(),
    "binary": pa.binary(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}

# The contract names these without types: they are what they are in the other tables.
FINDINGS_TYPES = {
    "string": "capture connection_id client server code severity title detail advice",
    "int64": "packet_number ts_ns count last_packet_number",
    "int32": "channel",
    "timestamp": "timestamp",
}


def section(table: str) -> str:
    """The contract's text about a table."""
    if not CONTRACT.is_file():
        pytest.skip("no table contract beside the repository (AMQPSNIFF_SHARED)")
    text = CONTRACT.read_text(encoding="utf-8")
    found = re.search(rf"^## {table}: .*?\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    assert found is not None, f"the contract has no table {table}"
    return found.group(1)


def rows(text: str) -> dict[str, pa.DataType | None]:
    """Columns of the contract's Markdown table; None where it leaves the type to another table."""
    columns: dict[str, pa.DataType | None] = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) < 3 or cells[0] in ("column", "") or set(cells[0]) == {"-"}:
            continue
        names = [name.strip() for name in cells[0].split(",")]
        kinds = [kind.strip() for kind in cells[1].split(",")] if cells[1] else [""]
        kinds = kinds * len(names) if len(kinds) == 1 else kinds
        for name, kind in zip(names, kinds, strict=True):
            columns[name] = TYPES[kind] if kind else None
    return columns


@pytest.mark.parametrize("table", ["frames", "messages"])
def test_columns_are_those_of_the_contract(table: str) -> None:
    wanted = rows(section(table))
    schema = schema_of(table)
    assert schema.names[: len(wanted)] == list(wanted)
    for name, kind in wanted.items():
        assert schema.field(name).type == (kind or schema_of("frames").field(name).type), name


def test_findings_are_those_of_the_contract() -> None:
    text = " ".join(section("findings").split())
    wanted = re.sub(r"\([^)]*\)", "", text).rstrip(". ").split(", ")
    schema = schema_of("findings")
    assert schema.names[: len(wanted)] == [name.strip() for name in wanted]
    assert {name: schema.field(name).type for name in schema.names[: len(wanted)]} == {
        name: TYPES[kind] for kind, names in FINDINGS_TYPES.items() for name in names.split()
    }


def test_json_columns_are_those_of_the_contract() -> None:
    marked = {
        name
        for table in ("frames", "messages")
        for name in re.findall(r"^\| (\w+) \| string \(JSON\)", section(table), re.MULTILINE)
    }
    assert marked == JSON_COLUMNS - {"annotations", "filter"}  # which are of AMQP 1.0


def test_there_are_no_unsigned_types() -> None:
    for schema in TABLES.values():
        assert not any(pa.types.is_unsigned_integer(field.type) for field in schema)


def test_an_unknown_table_is_named_with_those_there_are() -> None:
    with pytest.raises(UsageError, match="no table `rows`; the tables are frames, messages"):
        schema_of("rows")
