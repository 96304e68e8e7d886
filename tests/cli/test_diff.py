"""`amqpsniff diff`: text and JSON, exit codes, and what is wrong with the options."""

from __future__ import annotations

import gc
import json
import weakref
from pathlib import Path

import pytest

from amqpsniff.findings import FindingLog
from tests.cli.running import check, on_terminal, process, run, write_capture
from tests.compare.editing import PAIRS, packets, replaced, without
from tests.findings.cases import packets_of

BEFORE, AFTER = "compared/before.pcap.gz", "compared/after.pcap.gz"
CLIENT, BROKER = "compared/path_client.pcap.gz", "compared/path_broker.pcap.gz"


@pytest.mark.parametrize("columns", [80, 160])
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("diff", (BEFORE, AFTER)),
        ("diff-same-traffic", ("--same-traffic", CLIENT, BROKER, "--limit", "6")),
    ],
)
def test_on_a_terminal(name: str, words: tuple[str, ...], columns: int) -> None:
    code, out, _ = on_terminal("diff", *words, "-q", columns=columns)
    assert code == 0
    assert max(map(len, out.splitlines())) <= columns
    check(f"{name}-{columns}", out)


def test_in_a_pipe() -> None:
    code, out, err = run("diff", BEFORE, AFTER)
    assert (code, err) == (0, "")
    check("diff", out)
    assert "no notable difference; findings: 7 same" in run("diff", BEFORE, BEFORE).out


def test_one_engine_is_gone_when_the_other_capture_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    alive: list[int] = []
    engines: list[weakref.ref[FindingLog]] = []

    class Watched(FindingLog):
        def __init__(self) -> None:
            alive.append(sum(one() is not None for one in engines))
            engines.append(weakref.ref(self))
            super().__init__()

    monkeypatch.setattr("amqpsniff.pipeline.FindingLog", Watched)
    gc.collect()
    gc.disable()  # Python would come to it by itself, some time
    try:
        assert run("diff", BEFORE, AFTER).code == 0
    finally:
        gc.enable()
    assert alive == [0, 0]


def test_failing_on_new_findings() -> None:
    code, _, err = run("diff", BEFORE, AFTER, "--fail-on", "error")
    assert code == 1
    assert err == (
        "amqpsniff: new error: The broker closed a channel with an error "
        "(channel-closed-by-broker)\n"
    )
    assert run("diff", AFTER, BEFORE, "--fail-on", "info").code == 0
    assert run("diff", BEFORE, BEFORE, "--fail-on", "info", "--fail-slower", "0").code == 0
    assert run("diff", BEFORE, AFTER, "--fail-on", "error", "-q").err == ""


def test_failing_on_what_is_slower() -> None:
    code, _, err = run("diff", BEFORE, AFTER, "--fail-slower", "100")
    assert (code, err) == (1, "amqpsniff: slower: confirmed, p95 3.68 ms before, 9.44 ms after\n")
    assert run("diff", BEFORE, AFTER, "--fail-slower", "200").code == 0
    assert run("diff", AFTER, BEFORE, "--fail-slower", "10").code == 0


def test_json_says_why_it_failed() -> None:
    code, out, _ = run("diff", BEFORE, AFTER, "--fail-on", "error", "--format", "json")
    assert code == 1
    found = json.loads(out)
    assert found["failures"] == [
        "new error: The broker closed a channel with an error (channel-closed-by-broker)"
    ]
    assert list(found) == [
        "before", "after", "caveats", "rates", "latencies", "findings", "topology", "clients",
        "servers", "closes", "notable_count", "failures",
    ]  # fmt: skip


def test_several_captures_are_one_side(tmp_path: Path) -> None:
    listed = packets(PAIRS / "before.pcap.gz")
    write_capture(tmp_path / "1.pcap", listed[:300])
    write_capture(tmp_path / "2.pcap", listed[300:])
    code, out, err = run("diff", BEFORE, tmp_path, "--format", "json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert len(found["after"]["captures"]) == 2
    assert found["notable_count"] == 0


def test_a_finding_of_several_places_shows_the_first(tmp_path: Path) -> None:
    script = "handshake\n" + "".join(
        f"C{n}: channel.open\nS{n}: channel.open-ok\nC{n}: basic.consume queue=q no_ack=1\n"
        for n in (1, 2)
    )
    before = write_capture(tmp_path / "1.pcap", packets_of("handshake"))
    after = write_capture(tmp_path / "2.pcap", packets_of(script))
    out = run("diff", str(before), str(after)).out
    assert "      0 → 2  the first of 2: basic.consume of queue 'q'" in out


def test_standard_input() -> None:
    octets = (PAIRS / "after.pcap.gz").read_bytes()
    code, out, _ = process("diff", BEFORE, "-", octets=octets)
    assert code == 0
    assert "findings: 3 new, 7 same" in out
    code, _, err = run("diff", "-", "-")
    assert code == 2
    assert err == "amqpsniff: standard input can be one of the two captures, not both\n"


def test_failing_on_what_happened_between(tmp_path: Path) -> None:
    assert run("diff", "--same-traffic", CLIENT, BROKER).code == 0
    assert run("diff", "--same-traffic", CLIENT, BROKER, "--fail-on", "error").code == 0
    code, _, err = run("diff", "--same-traffic", CLIENT, BROKER, "--fail-on", "warning")
    assert code == 1
    assert err.startswith("amqpsniff: warning: lost on the network and sent again: 15 places, ")
    before = PAIRS / "before.pcap.gz"
    other = replaced(before, tmp_path / "a.pcap", b"order-17", b"order-71")
    code, _, err = run("diff", "--same-traffic", before, other, "--fail-on", "error")
    assert (code, err) == (1, "amqpsniff: error: altered on the way: 1 place, 256 B\n")
    other = without(before, tmp_path / "b.pcap", 100)
    assert run("diff", "--same-traffic", before, other, "--fail-on", "warning").code == 0
    assert run("diff", "--same-traffic", before, other, "--fail-on", "info").code == 1


def test_nothing_in_common() -> None:
    code, out, err = run("diff", "--same-traffic", BEFORE, AFTER)
    assert code == 1
    assert err == "amqpsniff: the captures have no connection in common\n"
    assert "no connection in common" in out


def test_same_traffic_as_json() -> None:
    code, out, err = run("diff", "--same-traffic", CLIENT, BROKER, "--format", "json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["connections"]["both"] == 2
    assert found["failures"] == []
    assert len(found["losses"]) == 17


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--format", "csv"), "no format `csv` here; there are text, json"),
        (("--fail-on", "fatal"), "no severity `fatal`; there are info, warning, error"),
        (
            ("--same-traffic", "--fail-slower", "5"),
            "--fail-slower compares two runs; it does not go with --same-traffic",
        ),
    ],
)
def test_usage(words: tuple[str, ...], text: str) -> None:
    code, out, err = run("diff", BEFORE, AFTER, *words)
    assert (code, out, err) == (2, "", f"amqpsniff: {text}\n")


def test_files_that_are_no_captures() -> None:
    for words in (("README.md", AFTER), (BEFORE, "README.md"), (BEFORE, "nowhere.pcap")):
        for more in ((), ("--same-traffic",)):
            code, out, err = run("diff", *words, *more)
            assert (code, out) == (3, "")
            assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(None, "-"), (1.0, "0 %"), (1.25, "+25 %"), (0.31, "-69 %"), (12.2, "×12"), (0.001, "÷1,000"),
     (0.0, "-100 %")],
)  # fmt: skip
def test_what_did_not_vanish_is_not_less_by_all_of_it(ratio: float | None, text: str) -> None:
    from amqpsniff.cli.diff import percent

    assert percent(ratio) == text
