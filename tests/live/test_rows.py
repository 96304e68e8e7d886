"""The rows of a live run are those of the file that it wrote, read offline."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import run
from tests.live.broker import Broker
from tests.live.clients import CLIENTS
from tests.live.sniffing import Sniffer, rows_of

TABLES = ("messages", "frames", "connections", "channels", "links", "findings")
Row = dict[str, Any]


def offline(path: Path, table: str, *arguments: str) -> list[Row]:
    """Rows of a file."""
    done = run("export", path, "--table", table, *arguments)
    assert done.code == 0, done.err
    return rows_of(done.out)


def alike(rows: list[Row]) -> Counter[str]:
    """Rows without their order and what they come from."""
    return Counter(str(sorted((k, v) for k, v in row.items() if k != "capture")) for row in rows)


def last_of_each(rows: list[Row]) -> list[Row]:
    """The last row of each finding, but of those that were taken back."""
    last = {(r["code"], r["connection_id"], r["channel"]): r for r in rows}
    return [row for row in last.values() if row["count"]]


@pytest.mark.broker
def test_rows_are_those_of_the_file(broker: Broker, tmp_path: Path) -> None:
    """Every table, of three client libraries at once, from a broker on loopback."""
    port = str(broker.port)
    sniffers = {
        table: Sniffer(
            "-i", "lo", "--port", port, "-t", table, "-w", f"{table}.pcapng", folder=tmp_path
        )
        for table in TABLES
    }
    for client in CLIENTS:
        client("127.0.0.1", broker.port)
    for table, sniffer in sniffers.items():
        assert sniffer.stop() == 0, sniffer.err
        live, read = sniffer.rows(), offline(tmp_path / f"{table}.pcapng", table, "--port", port)
        assert bool(read) == (table != "links")  # which are of AMQP 1.0
        if table == "findings":
            live = last_of_each(live)
        assert alike(live) == alike(read), table
        assert {row["capture"] for row in live} == ({"lo"} if read else set())
        assert "dropped" not in sniffer.err
