"""Lines and entries are given out as they come: a conversation may have no end."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

import amqpsniff
from amqpsniff import passes
from amqpsniff.analysis import timeline
from amqpsniff.analysis.timeline import CONTENT_METHODS, Timeline
from amqpsniff.cli import output
from tests.cli.running import run
from tests.conftest import SAMPLES
from tests.session.script import Script, written


def test_lines_are_written_before_the_last_is_there() -> None:
    file = io.StringIO()
    written = []

    def lines() -> Iterator[str]:
        for number in range(3 * output.LINES_AT_ONCE):
            written.append(file.tell())
            yield str(number)
        yield ""

    output.Output(file).lines(lines())
    assert written[output.LINES_AT_ONCE] > 0
    numbers = [str(number) for number in range(3 * output.LINES_AT_ONCE)]
    assert file.getvalue() == "\n".join([*numbers, "", ""])


def test_lines_are_those_of_arrow_however_few(tmp_path: Path) -> None:
    """Frames are chosen one by one first, and by Arrow where there are more."""
    each = "C1: basic.publish exchange=e{} | body=5\n"
    script = "handshake\nC1: channel.open\nS1: channel.open-ok\n"
    script += "".join(map(each.format, range(passes.MAX_FILTERED_FRAMES)))
    path = written(Script(script), tmp_path / "many.pcap")
    lines = run("inspect", path).out.splitlines()
    told = [int(one[1]) for line in lines if (one := re.search(r"basic\.publish.*\be(\d+)", line))]
    assert told == list(range(passes.MAX_FILTERED_FRAMES))


def test_no_line_writes_nothing() -> None:
    file = io.StringIO()
    output.Output(file).lines([])
    output.Output(file).lines([""])
    assert file.getvalue() == ""


def test_entries_are_given_before_all_messages_are_joined() -> None:
    capture = amqpsniff.open(SAMPLES / "pika_mix.pcap")
    tables: dict[str, list[pa.RecordBatch]] = {"frames": [], "messages": []}
    for table, batch in capture.tables("frames", "messages", encoded=True):
        tables[table].append(batch)
    (frames,), (messages,) = tables["frames"], tables["messages"]
    many = pa.concat_batches([messages] * (timeline.MESSAGES_AT_ONCE // len(messages) + 1))
    joined = Timeline(CONTENT_METHODS, ("method",))
    joined.frames(pa.concat_batches([frames] * (len(many) // len(messages))))
    entries = joined.messages(many)
    assert next(entries).method is None
    assert joined.packets  # of the second part


def test_links_are_exported_of_rows_that_are_chosen() -> None:
    """A column that is made only where it is named is there beside --where."""
    given = ("export", "late_consumer.pcap", "--table", "messages", "--format", "ndjson")
    columns = ("--columns", "method,link_confidence")
    every = run(*given, *columns)
    chosen = run(*given, *columns, "--where", "method = 'basic.deliver'")
    lines = [line for line in every.out.splitlines() if "basic.deliver" in line]
    assert chosen.code == 0
    assert chosen.out.splitlines() == lines != []
    assert any('"link_confidence":null' not in line for line in lines)


def test_bytes_of_frames_stand_under_the_same_lines() -> None:
    words = ("inspect", "pika_mix.pcap", "--frames", "-n", "40")
    lines = run(*words).out.splitlines()
    assert "order-service-1:43700" in lines[0]
    assert set(lines) <= set(run(*words, "--hex").out.splitlines())
