"""A live run over texts that are not UTF-8, cut packets and holes: dashboard, metrics and rows."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console
from rich.theme import Theme

from amqpsniff.analysis.selection import Selection
from amqpsniff.capture.tail import FileCapture
from amqpsniff.cli.dashboard.screen import Screen
from amqpsniff.cli.dashboard.state import State
from amqpsniff.cli.dashboard.views import VIEWS
from amqpsniff.cli.render.text import STYLES
from amqpsniff.live.figures import Figures
from amqpsniff.live.metrics import Collector
from amqpsniff.live.picture import Pictures
from amqpsniff.live.watch import Watch
from amqpsniff.options import Options
from tests.cli import every_way
from tests.cli.running import process, write_capture
from tests.conversations import NOT_UTF8, full, packets, texts, with_texts
from tests.tcp.wire import Packet

HEALTHY = 39_999


def _packets() -> list[Packet]:
    """A healthy connection; others with other texts, cut, begun late, and with a lost packet."""
    frames = full()
    said = with_texts(frames, list(texts(frames)), NOT_UTF8)
    whole = packets(frames, 40_001)
    made = [
        *packets(full(prefix=b"healthy."), HEALTHY),
        *packets(said, 40_000),
        *(packet.cut(82) for packet in whole),
        *packets(said, 40_002)[20:],
        *(one for at, one in enumerate(packets(frames, 40_003)) if at % 7),
    ]
    return sorted(made, key=lambda packet: packet.ts_ns)


def _screens(pictures: Pictures, connections: list[str | None]) -> Iterator[str]:
    """Every view by every column, and every connection."""
    for name in connections:
        picture = pictures.take(name)
        for view in VIEWS:
            state = State(view=view.name, connection=name)
            for _ in view.columns if name is None else view.columns[:1]:
                state.press("s", [])
                console = Console(file=io.StringIO(), width=160, height=60, theme=Theme(STYLES))
                console.print(Screen(picture, state, Selection()))
                yield console.file.getvalue()  # type: ignore[attr-defined]


@pytest.mark.parametrize("part", [0.5, 1.0])
def test_dashboard_and_metrics(part: float, tmp_path: Path) -> None:
    """At several moments, while connections are open and when they are over."""
    everything = _packets()
    shown = everything[: int(part * len(everything))]
    capture = write_capture(tmp_path / "some.pcap", shown)
    figures = Figures(10)
    watch = Watch(FileCapture([str(capture)]), Options(), ("findings",), census=figures, judge=True)
    while watch.step():
        for _ in watch.rows():
            pass
    pictures = Pictures(watch, Selection())
    picture = pictures.take(None)
    names = [None, *(row["connection_id"] for row in picture.connections)]
    screens = list(_screens(pictures, names))
    assert any("healthy." in screen for screen in screens)
    metrics = Collector(watch).collect()
    labels = [str(sample.labels) for metric in metrics for sample in metric.samples]
    assert any("healthy." in label for label in labels) or part < 1
    for _ in watch.finish():
        pass
    list(_screens(pictures, [None]))
    watch.close()


@pytest.mark.parametrize("table", [name for name in every_way.TABLES if name != "links"])
def test_rows(table: str, tmp_path: Path) -> None:
    made = _packets()
    capture = write_capture(tmp_path / "all.pcap", made)
    way = f"live {capture} -c {len(made)} -t {table} --format ndjson"
    result = process(*way.split())
    every_way.check(way, result)
    assert f":{HEALTHY}" in result.out
