"""`amqpsniff report`: the page says what the captures hold, in bounds, or is not there."""

from __future__ import annotations

import json
import re
import shutil
from array import array
from collections import Counter
from html import unescape
from pathlib import Path
from unittest.mock import Mock

import pyarrow as pa
import pytest

import amqpsniff
from amqpsniff.analysis import report_data, row_times, top_rows
from amqpsniff.analysis.buckets import MAX_STEPS, Delays, Levels, Steps
from amqpsniff.analysis.selection import Selection
from amqpsniff.decode.method_layout import NAMES
from amqpsniff.report import capture_page, findings, narrative, sequences
from amqpsniff.session.codes import OUTCOMES
from amqpsniff.session.table_rows import Rows
from amqpsniff.units import duration
from tests.cli.running import process, run, write_capture
from tests.compare.editing import packets
from tests.conftest import SAMPLES
from tests.report.pages import HOSTILE, data_of, hostile_capture, report, text_of
from tests.report.test_page import Balance
from tests.session.script import Script, written
from tests.tcp.wire import START_NS, Talk

SECTIONS = (
    "verdict time story findings latencies connections topology conversations methods about".split()
)
MAX_BYTES = 3_000_000
HOUR_NS = 3_600_000_000_000


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The report of one sample."""
    target = tmp_path_factory.mktemp("report") / "report.html"
    done = report(target, "pika_mix.pcap")
    assert (done.code, done.out) == (0, "")
    assert re.fullmatch(r"amqpsniff: \S+report.html: 1\.\d\d MB\n", done.err)
    return target.read_text(encoding="utf-8")


def test_every_section_is_there(page: str) -> None:
    assert re.findall(r'<section id="(\w+)">', page) == SECTIONS
    parser = Balance()
    parser.feed(text_of(page).removesuffix("</body></html>\n"))
    assert parser.open == ["html", "body"]


def test_sentences_say_what_the_summary_says(page: str) -> None:
    text = unescape(text_of(page))
    for sentence in (
        "4 AMQP connections were seen, made with Pika Python Client Library 1.4.4 (4)",
        "Clients published 53 messages with 22.9 kB of bodies, at most 51 in one second.",
        "The broker delivered 58 messages; consumers acknowledged 40.",
        "8 were put back into a queue and 10 were given up by a consumer.",
        "At most about 10 deliveries waited for an acknowledgement at a time; none did at the end.",
        "Not all connections ended well: 2 closed with an error.",
        "The capture is good: nothing missing.",
    ):
        assert sentence in text


def test_the_verdict_is_that_of_diagnose(page: str) -> None:
    text = " ".join(unescape(re.sub(r"<[^>]+>", "", text_of(page))).split())
    diagnosis = amqpsniff.open(SAMPLES / "pika_mix.pcap").diagnose()
    for sentence in diagnosis.verdict.sentences:
        assert " ".join(sentence.split()) in text
    lines = re.findall(r'<li class="line" data-severity="(\w+)">', page)
    cases = [case for root in diagnosis.cases for case in root.walk()]
    assert sorted(lines) == sorted(case.first["severity"] for case in cases)
    links = re.findall(r'href="#(finding-\d+)"', page)
    assert links == re.findall(r'id="(finding-\d+)"', page)
    assert "notes on configuration and security" in page


def test_an_outage_is_a_sentence(tmp_path: Path) -> None:
    capture = SAMPLES / "../tests/captures/incidents/o_restart.pcap"
    assert report(tmp_path / "page.html", capture).code == 0
    text = text_of((tmp_path / "page.html").read_text(encoding="utf-8"))
    told = "on no connection was open for 22.3 s; 6,481 attempts to connect failed in all."
    assert told in text


def test_what_could_not_be_looked_at_does_not_pass(tmp_path: Path) -> None:
    done = report(tmp_path / "page.html", "tls13.pcap", "--fail-on", "error")
    assert done.code == 1
    assert "could not be read" in text_of((tmp_path / "page.html").read_text(encoding="utf-8"))


def test_no_line_is_drawn_between_captures(tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    assert report(target, "-q", SAMPLES / "pika_mix.pcap", SAMPLES / "node.pcap").code == 0
    charts = data_of(target.read_text(encoding="utf-8"))["charts"]
    (messages,) = (one for one in charts if one["title"] == "Messages")
    assert None in {row["v"] for row in messages["data"]["values"]}


def test_rates_add_up_to_all_messages(page: str) -> None:
    charts = {chart["title"]: chart for chart in data_of(page)["charts"]}
    rows = charts["Messages"]["data"]["values"]
    times = sorted({row["t"] for row in rows})
    step = times[1] - times[0]
    sums = dict.fromkeys(("published", "delivered", "confirmed", "acknowledged"), 0.0)
    for row in rows:
        sums[row["s"]] += row["v"] * step
    expected = {"published": 53, "delivered": 58, "confirmed": 51, "acknowledged": 40}
    assert sums == pytest.approx(expected, rel=0.01)
    assert {"Confirms: time taken", "Replies: how long they took", "Open connections"} <= set(
        charts
    )


def test_findings_have_their_evidence(page: str) -> None:
    text = unescape(text_of(page))
    assert "declaration-mismatch" in text
    assert "<td>496</td>" in text
    assert "inequivalent arg 'durable' for queue 'orders.eu'" in text
    assert "Make the declarations of all applications agree" in text


def test_lives_are_coloured_by_their_ends(page: str) -> None:
    (lives,) = (
        chart for chart in data_of(page)["charts"] if chart.get("mark", {}).get("type") == "bar"
    )
    kinds = [row["kind"] for row in lives["data"]["values"]]
    assert sorted(kinds) == ["closed by the client"] * 2 + ["closed with an error"] * 2
    assert set(lives["encoding"]["color"]["scale"]["domain"]) == set(kinds)


def test_bodies_where_they_are_asked_for(samples: Path, tmp_path: Path) -> None:
    """As other commands show them: pickle is read and never loaded; at most so many bytes."""
    said = []
    for limit in (0, 12, 400):
        path = tmp_path / f"{limit}.html"
        amqpsniff.open(samples / "aiopika_rpc.pcap").report(path, body_limit=limit)
        events = data_of(path.read_text())["conversations"][0]["events"]
        said.append([event[5] for event in events if event[4] == "basic.publish"])
    none, few, many = said
    assert not any("pickle" in one for one in none)
    assert few[0].endswith(" pickle: PROTO 4\\nBI…")
    assert "pickle: PROTO 4\\nBININT1 0\\nSTOP" in many[0]


def test_conversations_are_what_follow_shows(page: str) -> None:
    told = data_of(page)["conversations"]
    assert len(told) == 4
    (one,) = (one for one in told if one["id"] == "f6bf17b3c99d6ef0")
    lines = run("follow", "pika_mix.pcap", "--connection", "f6bf").out.splitlines()
    frames = [event for event in one["events"] if event[2] in ("client", "server")]
    for event in frames:
        assert any(event[1] in line and event[4] in line for line in lines)
    assert [event[5] for event in one["events"] if event[7] == "error"][:1]


def test_topology_is_drawn(page: str) -> None:
    (svg,) = re.findall(r"<svg class=\"topology\".*?</svg>", page, re.S)
    for name in ("orders.eu", "order-service-1", "(default)", "dlq"):
        assert name in svg


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    capture = hostile_capture(tmp_path / "a<b>&.pcap")
    target = tmp_path / "page.html"
    assert report(target, capture, "--title", HOSTILE.replace("\0", "")).code == 0
    made = target.read_text(encoding="utf-8")
    parser = Balance()
    parser.feed(text_of(made).removesuffix("</body></html>\n"))
    assert "img" not in parser.seen
    assert made.count("</script>") == 2
    assert not set("\u2028\u202e\x1b\0") & set(made.replace(HOSTILE, "").partition("<main")[2])
    assert "alert(1)" in text_of(made)
    assert "hunter2" not in made
    events = data_of(made)["conversations"][0]["events"]
    assert len(events) > 10


def test_secrets_are_shown_when_asked_for(tmp_path: Path) -> None:
    capture = hostile_capture(tmp_path / "hostile.pcap")
    assert report(tmp_path / "page.html", capture, "--show-secrets").code == 0
    assert "keep this file to yourself" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_page_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With every bound made small, what is left out is said where it is missing."""
    for module, name, value in (
        (sequences, "MAX_CONVERSATIONS", 2), (sequences, "FIRST_EVENTS", 5),
        (sequences, "LAST_EVENTS", 4), (sequences, "MAX_AROUND", 6),
        (findings, "MAX_CASES", 10), (findings, "MAX_PLACES", 1), (report_data, "TOP", 2),
        (capture_page, "TOP", 2), (capture_page, "MAX_CONNECTIONS", 3),
        (capture_page, "MAX_CHANNELS", 3),
        (capture_page, "MAX_LIVES", 2), (capture_page, "MAX_EDGES", 1),
        (capture_page, "MAX_CONVERSATIONS", 2),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, value)
    target = tmp_path / "page.html"
    assert report(target, "-q", SAMPLES / "pika_mix.pcap", SAMPLES / "php_churn.pcap").code == 0
    made = target.read_text(encoding="utf-8")
    text = unescape(text_of(made))
    told = data_of(made)["conversations"]
    assert len(told) == 2
    assert all(len(one["events"]) < 30 for one in told)
    assert any("not shown" in event[5] for one in told for event in one["events"])
    for note in ("more findings not shown", "Bars of 2 of", "3 of", "amqpsniff topology CAPTURE",
                 "more place", "2 of", "The 2 busiest of"):  # fmt: skip
        assert note in text
    rows = re.findall(r"<tbody>(.*?)</tbody>", made, re.S)
    assert max(body.count("<tr>") for body in rows) < 60


def test_one_fold_has_all_more_findings(tmp_path: Path) -> None:
    """On a narrow screen; on a wide one its heading is hidden, and the rest is folded in it."""
    assert report(tmp_path / "page.html", *sorted(SAMPLES.glob("*.pcap"))).code == 0
    made = (tmp_path / "page.html").read_text(encoding="utf-8")
    headings = re.findall(r"<summary>(\d+) more findings?</summary>", made)
    assert len(headings) == 2
    assert int(headings[0]) == int(headings[1]) + findings.MAX_LINES - findings.FEW_LINES
    assert f'</ol></details><details class="folded"><summary>{headings[1]}' not in made


def test_findings_stand_at_their_time(tmp_path: Path) -> None:
    """However important: a closing at the end does not hold back what came before."""
    for name in ("pika_mix.pcap", "php_churn.pcap"):
        assert report(tmp_path / "page.html", name).code == 0
        for one in data_of((tmp_path / "page.html").read_text())["conversations"]:
            times = [float(event[0]) for event in one["events"] if event[0]]
            assert times == sorted(times)


def test_events_of_a_long_conversation_are_those_of_both_its_ends(tmp_path: Path) -> None:
    """The others are counted."""
    assert report(tmp_path / "page.html", "node.pcap").code == 0
    told, *_ = data_of((tmp_path / "page.html").read_text())["conversations"]
    shown = [int(one[1]) for one in told["events"] if one[2] != sequences.NOTE]
    conversation = amqpsniff.open(SAMPLES / "node.pcap").follow(told["id"])
    assert conversation is not None
    every = [one.packet_number for one in conversation.entries]
    assert int(told["about"].split()[0].replace(",", "")) == len(every) > 2 * len(shown)
    first = next(at for at, number in enumerate(shown) if number != every[at])
    assert first > sequences.FIRST_EVENTS // 2
    assert len(shown) - first > 10
    assert shown[first:] == every[first - len(shown) :]


def test_kept_rows_are_bounded() -> None:
    names = ("close_code", "close_text", "closed_by", "client_bytes", "server_bytes")
    names += ("connection_id",)
    ends = {77: (541, None), 78: (None, "amqp:internal-error")}  # of AMQP 1.0
    rows = [(*ends.get(at, (None, None)), "client", at, 0, "") for at in range(500)]
    some = top_rows.TopRows(10, top_rows.connection_weights, ("client_bytes", "closed_by"))
    for begin in range(0, 500, 100):
        some.add(Rows(names, rows[begin : begin + 100]))
    assert [row["client_bytes"] for row in some.rows] == [78, 77, *range(499, 491, -1)]
    assert some.number == 500
    assert some.ends == {"closed by the client": 498, "closed with an error": 2}


def test_size_is_bounded_on_all_samples(tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    code = report(target, "-q", SAMPLES).code
    assert code == 0
    assert target.stat().st_size < MAX_BYTES


def test_connections_can_be_named(tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    assert report(target, "pika_mix.pcap", "--connection", ":43700").code == 0
    told = data_of(target.read_text(encoding="utf-8"))["conversations"]
    assert [one["id"] for one in told] == ["7f298e1bc377911e"]
    done = report(target, "pika_mix.pcap", "--connection", "nobody")
    assert done.code == 2
    assert "no connection `nobody` among 4" in done.err


def test_part_of_the_time(tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    assert report(target, "pika_mix.pcap", "--from", "+1s").code == 0
    text = unescape(text_of(target.read_text(encoding="utf-8")))
    assert "Clients published 2 messages" in text
    assert "Replies by the request's method" in text  # those of that time


@pytest.mark.parametrize("chosen", [("--to", "0"), ("--from", "+1000s")])
def test_a_time_in_which_there_is_nothing(chosen: tuple[str, str], tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    done = report(target, "pika_mix.pcap", *chosen)
    assert done.code == 0
    part = " ".join(chosen).removeprefix("--")
    assert f"amqpsniff: warning: no packet lies in the time {part}; " in done.err
    text = unescape(text_of(target.read_text(encoding="utf-8")))
    assert "Nothing of it lies in the time that was chosen." in text
    assert "The capture is good" not in text


def test_standard_input_and_output() -> None:
    octets = (SAMPLES / "pika_mix.pcap").read_bytes()
    done = process("report", "-", "-o", "-", octets=octets)
    assert done.code == 0
    assert done.out.startswith("<!DOCTYPE html>")
    assert "standard input is read once" in done.out
    assert done.err == ""


def test_findings_decide_the_exit_code(tmp_path: Path) -> None:
    assert report(tmp_path / "page.html", "pika_mix.pcap", "--fail-on", "error").code == 1
    assert report(tmp_path / "page.html", "pika_mix.pcap", "--fail-on", "disaster").code == 2


def test_bad_files_leave_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "bad.pcap").write_bytes(b"this is not a capture")
    target = tmp_path / "page.html"
    target.write_text("before")
    for name in (tmp_path / "bad.pcap", tmp_path / "missing.pcap"):
        done = report(target, name)
        assert done.code == 3
        assert done.err.count("\n") == 1
        assert target.read_text() == "before"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["bad.pcap", "page.html"]


def test_a_capture_is_not_overwritten(tmp_path: Path) -> None:
    capture = tmp_path / "one.pcap"
    shutil.copy(SAMPLES / "pika_mix.pcap", capture)
    assert report(capture, capture).code == 2


def test_a_capture_without_amqp_has_a_page(tmp_path: Path) -> None:
    talk = Talk().hands()
    talk.client(b"hello")
    capture = write_capture(tmp_path / "none.pcap", talk.packets)
    assert report(tmp_path / "page.html", capture).code == 0
    text = unescape(text_of((tmp_path / "page.html").read_text(encoding="utf-8")))
    assert "There is no AMQP" in text


def test_an_empty_capture_is_not_called_good(tmp_path: Path) -> None:
    capture = tmp_path / "none.pcap"
    capture.write_bytes(bytes.fromhex("d4c3b2a1020004000000000000000000ffff000001000000"))
    assert report(tmp_path / "page.html", capture).code == 0
    text = unescape(text_of((tmp_path / "page.html").read_text(encoding="utf-8")))
    assert "There is no packet in the capture." in text
    assert "The capture is good" not in text


def test_connections_that_all_began_before_the_capture(tmp_path: Path) -> None:
    assert report(tmp_path / "page.html", "midstream.pcap").code == 0
    text = unescape(text_of((tmp_path / "page.html").read_text(encoding="utf-8")))
    assert "at most about 2 at a time. All of them began before the capture." in text
    assert ">(default)<" in text
    assert text.count('<td class="number">before</td>') == 2


def test_bars_reach_to_the_edges_of_the_capture(tmp_path: Path) -> None:
    """To its beginning where the connection is older, to its end where that stayed open."""
    whole = packets(SAMPLES / "midstream.pcap")
    cut = write_capture(tmp_path / "cut.pcap", whole[: len(whole) // 2])
    assert report(tmp_path / "page.html", cut).code == 0
    charts = data_of((tmp_path / "page.html").read_text(encoding="utf-8"))["charts"]
    (lives,) = (one["data"]["values"] for one in charts if one.get("mark", {}).get("type") == "bar")
    rows = amqpsniff.open(cut).table("connections").to_pylist()
    begin, end = min(row["start_ns"] for row in rows), max(row["end_ns"] for row in rows)
    assert len({row["start_ns"] for row in rows}) == len({row["end_ns"] for row in rows}) == 2
    for life in lives:
        assert life["end"] - life["begin"] == pytest.approx((end - begin) / 1e9, abs=1e-6)
        assert life["about"].endswith("began before the capture")
    (levels,) = (one["data"]["values"] for one in charts if one.get("title") == "Open connections")
    assert {row["v"] for row in levels} == {2}


@pytest.mark.parametrize(
    ("capture", "table", "column", "words"),
    [
        ("node.pcap", "unconfirmed", "unconfirmed_max", "{} publishes waited for a confirm"),
        (
            "../tests/captures/incidents/a_prefetch.pcap",
            "unacked",
            "unsettled_max",
            "{} deliveries waited for an acknowledgement",
        ),
    ],
)
def test_sentence_chart_and_channels_agree(
    tmp_path: Path, capture: str, table: str, column: str, words: str
) -> None:
    """What came and went within a step is in the chart too."""
    assert report(tmp_path / "page.html", capture).code == 0
    made = (tmp_path / "page.html").read_text(encoding="utf-8")
    rows = amqpsniff.open(SAMPLES / capture).table("channels").to_pylist()
    deepest = max(row[column] or 0 for row in rows)
    assert deepest > 1
    assert f"At most about {words.format(deepest)} at a time" in unescape(text_of(made))
    values = [row for one in data_of(made)["charts"] for row in one["data"]["values"]]
    assert max(row["v"] for row in values if row.get("s") == table) == deepest


@pytest.mark.parametrize(
    ("capture", "said"),
    [
        ("hostile/loss_a", ["of 1 channel that was published on:"]),
        (
            "hostile/loss_b",
            [
                "At the highest, at least 1 delivery waited for an acknowledgement at a time.",
                "of 1 channel that was delivered to:",
            ],
        ),
        ("hostile/loss_k", ["of 1 channel that was published on:"]),
        ("../../samples/lost", ["6 channels that were delivered to and 6 channels that were"]),
    ],
)
def test_depths_where_frames_are_missing(tmp_path: Path, capture: str, said: list[str]) -> None:
    """What certainly waited is told as that, and of how many channels more is not known."""
    path = SAMPLES / f"../tests/captures/{capture}.pcap"
    assert report(tmp_path / "page.html", path).code == 0
    made = unescape(text_of((tmp_path / "page.html").read_text(encoding="utf-8")))
    for words in said:
        assert words in made
    assert "At most" not in made
    assert "none did at the end" not in made
    assert made.count("How much waited is not known of") == 1
    assert "Depths are at least as high as drawn" in made


def test_what_is_sent_by_amqp10_waits_until_it_is_returned() -> None:
    """A return of 0-9-1 is no answer: a confirm comes behind it."""
    names = [NAMES.index(name) for name in ("send", "basic.publish")]
    two = [array("q", numbers) for numbers in ([1, 2], [5, 5])]
    codes = [array("i", [OUTCOMES.index("returned")] * 2), *two, array("i", [0, 0])]
    found = row_times.message_times(2, array("i", names), *codes, array("i", [0, 0]))
    assert [list(times) for times in found[0][2:4]] == [[1], [6]]


LEFT = """
    handshake
    C1: channel.open
    S1: channel.open-ok
    C1: basic.consume queue=q consumer_tag=t
    S1: basic.consume-ok consumer_tag=t
    S1: basic.deliver consumer_tag=t delivery_tag=1 | body=1
    S1: basic.deliver consumer_tag=t delivery_tag=2 | body=1
    @+2000ms C1: channel.close reply_code=200
    S1: channel.close-ok
    C2: channel.open
    S2: channel.open-ok
"""


@pytest.mark.parametrize(("end", "rest"), [(None, 0), (1, 1), (2, 0)])
def test_what_a_channel_left_goes_with_it(tmp_path: Path, end: int | None, rest: int) -> None:
    """All of it where it is not known how many waited at its end."""
    path = written(Script(LEFT), tmp_path / "left.pcap")
    capture = amqpsniff.open(path)
    made = report_data.ReportData(Selection(), (), lambda: None)
    column, _ = report_data.ENDS_OF["unacked"]
    for table, batch in capture.tables("messages", "connections", "channels", encoded=True):
        given = batch
        if table == "channels":
            at = batch.schema.get_field_index(column)
            ends = pa.array([end if one else 0 for one in batch.column("closed_by").to_pylist()])
            given = batch.set_column(at, column, ends.cast(batch.schema.types[at]))
        made.add(table, given)
    made.finish(capture.summary(), capture.passes.totals, ())
    assert made.levels["unacked"].total == rest
    assert made.abandoned["unacked"] == 2 - rest


@pytest.mark.parametrize(
    ("left", "abandoned", "least", "said"),
    [
        (0, 0, False, "; none did at the end"),
        (0, 0, True, ""),
        (0, 5, False, "; 5 got none before their channels ended"),
        (1, 1, False, "; 1 still did at the end; 1 got none before its channel ended"),
        (0, 2, True, "; at least 2 got none before their channels ended"),
    ],
)
def test_what_became_of_what_waited(left: int, abandoned: int, least: bool, said: str) -> None:
    assert narrative.rest_words(left, abandoned, least=least) == said


def test_a_packet_alone_has_no_rate(tmp_path: Path) -> None:
    packet = Talk().hands().client(b"AMQP\0\0\x09\x01")
    capture = write_capture(tmp_path / "one.pcap", [packet])
    assert report(tmp_path / "page.html", capture).code == 0
    made = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert re.search(r"<p>1 packet · \S+ \S+ UTC</p>", made)
    assert 'id="time"' not in made
    assert "1 AMQP connection was seen." in text_of(made)


def test_connections_that_come_and_go_within_a_step() -> None:
    opened = Levels(Steps())
    for at in range(3):
        opened.put(START_NS + at * HOUR_NS, 1)
        opened.put(START_NS + at * HOUR_NS + 1, -1)
    data = Mock(levels={"connections": opened})
    quality = {"midstream_connections": 0}
    summary = {
        "packets": 9,
        "connection_count": 3,
        "chosen_count": 3,
        "clients": [],
        "quality": quality,
    }
    assert max(opened.levels(MAX_STEPS)) == 1
    told = list(narrative.traffic(summary, data))
    assert told == ["3 AMQP connections were seen; at most about 1 at a time."]


def test_what_was_settled_at_the_very_end_does_not_wait_there() -> None:
    """Several steps are one point: the highest of the last ones is not what is left."""
    steps = Steps()
    levels = {name: Levels(steps) for name in ("unacked", "unconfirmed")}
    levels["unacked"].put(START_NS, 4)
    levels["unacked"].put(START_NS + HOUR_NS, -3)
    used = steps.used[1] - steps.used[0]
    assert used > narrative.MAX_POINTS
    assert levels["unacked"].levels(narrative.MAX_POINTS)[-1] == 4
    delays = {name: Delays(steps) for name in ("confirm", "ack", "reply")}
    data = Mock(levels=levels, delays=delays, uncounted=Counter(), abandoned=Counter())
    (told,) = narrative.waiting(data)
    assert told.startswith("At most about 4 deliveries waited for an acknowledgement")
    assert told.endswith("; 1 still did at the end.")


def test_axes_begin_with_the_capture(tmp_path: Path) -> None:
    """Also where the first step begins before it: there are no seconds less than none."""
    capture = hostile_capture(tmp_path / "short.pcap")
    assert report(tmp_path / "page.html", capture).code == 0
    charts = data_of((tmp_path / "page.html").read_text(encoding="utf-8"))["charts"]
    (lives,) = (one for one in charts if one.get("mark", {}).get("type") == "bar")
    assert lives["encoding"]["x"]["scale"]["domain"][0] == 0
    times = [row["t"] for one in charts for row in one["data"]["values"] if "t" in row]
    assert min(times) == 0


@pytest.mark.parametrize("name", ["pika_mix.pcap", "aiopika_rpc.pcap", "node.pcap"])
def test_a_time_is_the_same_everywhere_on_a_page(name: str, tmp_path: Path) -> None:
    """Sentences, marks of charts, the table and `summary` are of one estimator."""
    target = tmp_path / "page.html"
    assert report(target, name, "-q").code == 0
    page = target.read_text(encoding="utf-8")
    text = unescape(re.sub(r"<[^>]+>", " ", text_of(page)))
    outcomes = json.loads(run("summary", name, "--format", "json").out)["outcomes"]
    rows = {row["outcome"]: row for row in outcomes}
    titles = {"confirmed": "Confirms", "acked": "Acknowledgements"}
    marks = {
        chart["title"]: [one["name"] for one in chart["layer"][1]["data"]["values"]]
        for chart in data_of(page)["charts"]
        if "layer" in chart
    }
    compared = 0
    for outcome, title in titles.items():
        row = rows.get(outcome)
        if row is None or row["count"] < 2:
            continue
        compared += 1
        shown = {at: duration(row[f"{at}_ns"]) for at in ("p50", "p95", "p99")}
        assert marks[f"{title}: how long they took"] == [f"{at} {one}" for at, one in shown.items()]
        assert f"{title} took {shown['p50']} at the median" in text
        assert re.search(rf"{outcome}\s+{row['count']}\s+" + r"\s+".join(shown.values()), text)
    assert compared


def test_names_of_clients_are_short_in_sentences(tmp_path: Path) -> None:
    capture = hostile_capture(tmp_path / "long.pcap", octets=b"x" * 10_000)
    assert report(tmp_path / "page.html", capture).code == 0
    text = text_of((tmp_path / "page.html").read_text(encoding="utf-8"))
    (sentence,) = re.findall(r"<li>(1 AMQP connection was seen[^<]*)", text)
    assert len(sentence) < 200
    assert "x" * 1_000 not in text


def test_catalogue_is_marked_up(page: str) -> None:
    assert "the default virtual host <code>/</code> is written %2F" in page


def test_a_single_line_is_named_by_the_title(tmp_path: Path) -> None:
    assert report(tmp_path / "page.html", "blocked.pcap").code == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Messages published" in {chart["title"] for chart in data_of(page)["charts"]}
