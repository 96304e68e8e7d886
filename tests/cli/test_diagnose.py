"""Diagnoses: the order of importance, what is folded, exit codes, and the forms for machines."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from amqpsniff.analysis.finding_tree import Case, cases, in_order
from amqpsniff.findings import CATEGORIES, KINDS, SEVERITIES, Finding
from tests.cli.running import run
from tests.conftest import OWN

LOST = ("diagnose", "lost.pcap")
NOTHING = ("diagnose", "bunny.pcapng", "--only", "tcp-gap")


def finding(code: str, at: int | None = None, connection: str | None = "a", **more: Any) -> Finding:
    """A finding at a packet, a second a packet."""
    given: dict[str, Any] = {
        "detail": "", "capture": "x.pcap", "packet_number": at, "ts_ns": at and at * 10**9,
        "connection_id": connection, "client": "c:1", "server": "s:2",
    } | more  # fmt: skip
    return Finding(code, **given)


def because(code: str, at: int) -> dict[str, Any]:
    """What a finding says of its cause."""
    return {"cause_code": code, "cause_packet_number": at}


def drawn(found: list[Case], depth: int = 0) -> list[str]:
    """Cases as lines: how deep, the code, in how many places."""
    lines = []
    for case in found:
        lines.append(f"{'-' * depth}{case.code} {len(case.findings)}")
        lines += drawn(case.consequences, depth + 1)
    return lines


def test_the_same_chain_on_several_connections_is_one_case() -> None:
    findings = []
    for at, connection in enumerate("abc"):
        findings.append(finding("frame-end-wrong", 10 * at, connection))
        close = because("frame-end-wrong", 10 * at)
        findings.append(finding("connection-closed-by-broker", 10 * at + 1, connection, **close))
        doubt = because("connection-closed-by-broker", 10 * at + 1)
        findings.append(finding("publishes-in-doubt", 10 * at + 2, connection, **doubt))
    findings.append(finding("connection-closed-by-broker", 99, "d"))
    assert drawn(cases(reversed(findings))) == [
        "frame-end-wrong 3",
        "-connection-closed-by-broker 3",
        "--publishes-in-doubt 3",
        "connection-closed-by-broker 1",
    ]


def test_a_case_counts_as_much_as_the_worst_that_came_of_it() -> None:
    blocked = because("heartbeat-disabled", 5)
    findings = [
        finding("connection-unnamed", 1),
        finding("account-default", 2),
        finding("heartbeat-disabled", 5),
        finding("idle-connection-cut", 6, **blocked),
    ]
    assert [case.code for case in cases(findings)] == [
        "heartbeat-disabled", "account-default", "connection-unnamed",
    ]  # fmt: skip
    assert [one.code for one in in_order(findings)] == [
        "idle-connection-cut", "account-default", "heartbeat-disabled", "connection-unnamed",
    ]  # fmt: skip


def test_what_broke_comes_before_what_was_always_so() -> None:
    findings = [
        finding("credentials-in-clear", 1),
        finding("account-default", 2),
        finding("frame-end-wrong", 9),
    ]
    wanted = ["frame-end-wrong", "credentials-in-clear", "account-default"]
    assert [case.code for case in cases(findings)] == wanted
    assert [one.code for one in in_order(findings)] == wanted


def test_of_one_severity_trouble_comes_before_costs_and_settings() -> None:
    """What somebody looks for is not behind the user guest, and not behind missing confirms."""
    wanted = ["user-id-refused", "connection-churn", "account-default", "publishes-unprotected"]
    findings = [finding(code, 9 - place) for place, code in enumerate(wanted[:2])]
    findings += [finding(code, 1 + place) for place, code in enumerate(wanted[2:])]
    assert [case.code for case in cases(findings)] == wanted
    assert [one.code for one in in_order(findings)] == wanted
    assert {kind.category for kind in KINDS.values()} == CATEGORIES.keys()


def test_a_cause_of_the_whole_capture_and_of_all_captures() -> None:
    for capture in ("x.pcap", None):
        cut = finding("packets-cut", None, None, capture=capture)
        findings = [finding("arguments-cut", 3, cause_code="packets-cut"), cut]
        assert drawn(cases(findings)) == ["packets-cut 1", "-arguments-cut 1"]


def test_a_cause_named_by_a_later_packet_of_its_finding() -> None:
    findings = [
        finding("frame-end-wrong", 3, count=2),
        finding("field-table-malformed", 9, **because("frame-end-wrong", 8)),
    ]
    assert drawn(cases(findings)) == ["frame-end-wrong 1", "-field-table-malformed 1"]


def test_causes_that_are_not_there_or_go_round() -> None:
    gone = finding("field-table-malformed", 4, **because("frame-end-wrong", 3))
    assert drawn(cases([gone])) == ["field-table-malformed 1"]
    one = finding("field-table-malformed", 4, **because("frame-end-wrong", 4))
    other = finding("frame-end-wrong", 4, **because("field-table-malformed", 4))
    (case,) = cases([one, other])
    assert sum(len(part.findings) for part in case.walk()) == 2
    own = finding("field-table-malformed", 4, **because("field-table-malformed", 4))
    assert drawn(cases([own])) == ["field-table-malformed 1"]


def test_exit_codes() -> None:
    assert run(*LOST).code == 0
    assert run(*LOST, "--fail-on", "error", "--only", "tcp-gap").code == 0
    assert run(*LOST, "--fail-on", "warning", "--only", "tcp-gap").code == 1
    assert run(*LOST, "--fail-on", "info", "--format", "ndjson", "--limit", "0").code == 1
    assert run(*LOST, "--fail-on", "info", "--only", "midstream").code == 0
    assert run(*NOTHING, "--fail-on", "info").code == 0
    assert run(*LOST, "README.md", "--fail-on", "info").code == 3


def test_only_some_codes() -> None:
    words = ("diagnose", "lost.pcap", "midstream.pcap", "snapped.pcap", "--format", "ndjson")
    every = [json.loads(line) for line in run(*words).out.splitlines()]
    only = [json.loads(r) for r in run(*words, "--only", "tcp-gap, midstream").out.splitlines()]
    assert only == [one for one in every if one["code"] in ("tcp-gap", "midstream")]
    assert len(only) == 3


def test_rows_are_those_of_the_table_in_another_order() -> None:
    names = ("lost.pcap", "midstream.pcap", "snapped.pcap")
    lines = run("diagnose", *names, "--format", "ndjson").out.splitlines()
    assert sorted(lines) == sorted(run("export", *names, "-t", "findings").out.splitlines())
    ranks = [SEVERITIES.index(json.loads(line)["severity"]) for line in lines]
    assert ranks == sorted(ranks, reverse=True)
    first = run("diagnose", *names, "--format", "ndjson", "--limit", "2").out.splitlines()
    assert first == lines[:2]


def test_scopes_and_filters() -> None:
    words = ("diagnose", "snapped.pcap", "--format", "ndjson")
    for more in (("--channel", "3"), ("--where", "channel = 3")):
        found = [json.loads(line) for line in run(*words, *more).out.splitlines()]
        assert {one["channel"] for one in found} == {3}
        assert "arguments-cut" in {one["code"] for one in found}
    text = run("diagnose", "snapped.pcap", "--channel", "3", "-v").out
    assert "likely cause" in text
    assert "packets-cut" in text


def test_what_is_said_of_several_captures_is_said_of_none_of_them() -> None:
    out = run("diagnose", "snapped.pcap", "bunny.pcapng", "--format", "ndjson").out
    found = [json.loads(line) for line in out.splitlines()]
    (cut,) = (one for one in found if one["code"] == "packets-cut")
    assert cut["capture"] is None
    caused = [one for one in found if one["code"] == "arguments-cut"]
    assert {one["cause_code"] for one in caused} == {"packets-cut"}
    lines = run("diagnose", "snapped.pcap", "bunny.pcapng", "-v").out.splitlines()
    assert any(line.startswith("    as a result: info  Arguments of methods") for line in lines)


def test_an_empty_selection_says_what_was_left_out() -> None:
    text = run(*NOTHING).out
    assert text.splitlines()[0] == "0 of 7 findings match."
    assert "nothing found" not in text
    part = run("diagnose", "bunny.pcapng", "--severity", "error", "--no-notes").out
    assert "\n1 of 7 findings match: 1 error in 128 packets" in part
    assert "account" not in part
    notes = run("diagnose", "bunny.pcapng", "--only", "software-outdated").out
    assert notes.splitlines()[0] == "1 of 7 findings match."  # not that nothing is wrong


def test_codes_and_severities_that_are_left_out() -> None:
    words = ("diagnose", "pika_mix.pcap", "--format", "ndjson")
    every = [json.loads(line) for line in run(*words).out.splitlines()]
    ignored = ("--ignore", "vhost-refused, authentication-failed")
    left = [json.loads(line) for line in run(*words, *ignored).out.splitlines()]
    assert len(left) == len(every) - 2
    assert not {"vhost-refused", "authentication-failed"} & {one["code"] for one in left}
    severe = [json.loads(line) for line in run(*words, "--severity", "warning").out.splitlines()]
    assert severe == [one for one in every if one["severity"] != "info"]
    assert run(*words, "--ignore", "nope").code == 2
    assert run(*words, "--severity", "bad").code == 2


def test_lines_details_and_notes() -> None:
    words = ("diagnose", "pika_mix.pcap")
    every, brief = run(*words).out, run(*words, "--brief").out
    assert "what to do" in every
    assert "details of 4 more findings: -v" in every
    assert "what to do" not in brief
    assert brief.count("exclusive-queue-locked") == 1
    lines = every.splitlines()
    notes = lines[lines.index("notes on configuration and security") :]
    assert [line.split()[0] for line in notes[2:]] == ["warning"] * 2 + ["info"] * 3
    assert "notes on" not in run(*words, "--no-notes").out
    assert run(*words, "-v").out.count("what to do") > every.count("what to do")


def test_notes_are_told_once_for_each_client() -> None:
    out = run("diagnose", OWN.parent / "incidents" / "r_leak.pcap").out
    (line,) = (line for line in out.splitlines() if "publishes-unprotected" in line)
    assert "leaky-service +1" in line
    assert line.split()[:3] == ["warning", "180", "18"]  # how often, and where first


def test_json_has_the_verdict_and_what_it_rests_on() -> None:
    told = json.loads(run("diagnose", "blocked.pcap", "--format", "json", "--limit", "1").out)
    assert told["verdict"]["text"].startswith("The broker blocked publishing because of an alarm")
    assert told["verdict"]["severity"] == "error"
    assert [one["packet_number"] for one in told["verdict"]["evidence"]] == [101]
    (found,) = told["findings"]
    assert (found["code"], found["client_name"]) == ("connection-blocked", "blocked-pub")
    assert told["finding_count"] > 1


@pytest.mark.parametrize("capture", ["loss_k.pcap", "o_refused.pcap"])
def test_what_could_not_be_looked_at_does_not_pass(capture: str) -> None:
    (path,) = OWN.parent.rglob(capture)
    assert run("diagnose", path, "-q").code == 0
    assert run("diagnose", path, "-q", "--fail-on", "error").code == 1
    codes = "capture-inconclusive,connect-refused"
    code = run("diagnose", path, "-q", "--fail-on", "error", "--ignore", codes).code
    assert code == (1 if capture == "o_refused.pcap" else 0)  # it has no AMQP at all


def test_findings_about_files_are_said_once(samples: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.pcapng"
    cut.write_bytes((samples / "bunny.pcapng").read_bytes()[:9000])
    result = run("diagnose", cut)
    assert result.err == ""
    assert "capture-truncated" in result.out
    assert "a file is cut short" in result.out


def test_places_that_are_left_out_are_counted() -> None:
    text = run("diagnose", "snapped.pcap", "--places", "2", "-v").out
    assert "and 6 more places, " in text
    assert "more place" not in run("diagnose", "snapped.pcap", "--places", "99", "-v").out


# What SARIF 2.1.0 allows and requires of each object that is written here: required properties
# with a +, then those that may be there.
SHAPES = {
    "log": "+version +runs $schema",
    "run": "+tool invocations artifacts results",
    "tool": "+driver",
    "driver": "+name semanticVersion rules",
    "rule": "+id shortDescription fullDescription help defaultConfiguration properties",
    "text": "+text",
    "configuration": "level",
    "invocation": "+executionSuccessful",
    "artifact": "location",
    "result": "+message ruleId ruleIndex level locations occurrenceCount partialFingerprints "
    "properties",
    "location": "physicalLocation logicalLocations",
    "physical": "artifactLocation",
    "uri": "uri index",
    "logical": "name fullyQualifiedName kind",
}


def shaped(kind: str, value: Any) -> dict[str, Any]:
    """The object, which has what SARIF requires and nothing that it does not know."""
    assert isinstance(value, dict)
    words = SHAPES[kind].split()
    assert {word[1:] for word in words if word[0] == "+"} <= value.keys()
    assert value.keys() <= {word.lstrip("+") for word in words}
    return value


def checked(text: str) -> dict[str, Any]:
    """The only run of a SARIF log, after a look at all of it."""
    log = shaped("log", json.loads(text))
    assert log["version"] == "2.1.0"
    (one,) = log["runs"]
    driver = shaped("driver", shaped("tool", shaped("run", one)["tool"])["driver"])
    for rule in driver["rules"]:
        shaped("rule", rule)
        for name in ("shortDescription", "fullDescription", "help"):
            assert shaped("text", rule[name])["text"]
        level = shaped("configuration", rule["defaultConfiguration"])["level"]
        assert level in ("none", "note", "warning", "error")
    for artifact in one["artifacts"]:
        shaped("uri", shaped("artifact", artifact)["location"])
    for invocation in one["invocations"]:
        assert shaped("invocation", invocation)["executionSuccessful"] in (True, False)
    for result in one["results"]:
        _check_result(result, driver["rules"], one["artifacts"])
    ids = [rule["id"] for rule in driver["rules"]]
    assert len(ids) == len(set(ids))
    return one


def _check_result(result: dict[str, Any], rules: list[Any], artifacts: list[Any]) -> None:
    shaped("result", result)
    assert shaped("text", result["message"])["text"]
    assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    assert result["level"] in ("none", "note", "warning", "error")
    assert result["occurrenceCount"] >= 1
    assert all(isinstance(value, str) for value in result["partialFingerprints"].values())
    for location in result["locations"]:
        shaped("location", location)
        if "physicalLocation" in location:
            place = shaped("physical", location["physicalLocation"])["artifactLocation"]
            uri = shaped("uri", place)["uri"]
            assert uri.isascii()
            assert " " not in uri
            if "index" in place:
                assert artifacts[place["index"]]["location"]["uri"] == uri
        for logical in location.get("logicalLocations", ()):
            shaped("logical", logical)


def test_sarif() -> None:
    names = ("lost.pcap", "midstream.pcap", "snapped.pcap")
    one = checked(run("diagnose", *names, "--format", "sarif").out)
    rows = run("diagnose", *names, "--format", "ndjson").out.splitlines()
    for result, line in zip(one["results"], rows, strict=True):
        wanted = json.loads(line)
        assert result["ruleId"] == wanted["code"]
        assert result["occurrenceCount"] == wanted["count"]
        assert result["properties"].get("packetNumber") == wanted["packet_number"]
        kinds = [one["kind"] for one in result["locations"][0].get("logicalLocations", ())]
        channel = wanted["channel"] is not None
        known = wanted["connection_id"] is not None
        assert kinds == ["connection"] * known + ["channel"] * channel
    assert [artifact["location"]["uri"] for artifact in one["artifacts"]] == list(names)


def test_sarif_of_nothing_and_of_what_could_not_be_read(samples: Path, tmp_path: Path) -> None:
    one = checked(run(*NOTHING, "--format", "sarif").out)
    assert one["results"] == one["tool"]["driver"]["rules"] == []
    assert one["invocations"] == [{"executionSuccessful": True}]
    odd = tmp_path / "a b:größe#1.pcap"
    odd.write_bytes((samples / "lost.pcap").read_bytes())
    result = run("diagnose", odd, "README.md", "--format", "sarif")
    assert result.code == 3
    one = checked(result.out)
    assert one["invocations"] == [{"executionSuccessful": False}]
    (uri,) = {
        place["artifactLocation"]["uri"]
        for found in one["results"]
        if found["ruleId"] == "tcp-gap"
        for place in [found["locations"][0]["physicalLocation"]]
    }
    assert uri.startswith("file:///")
    assert uri.endswith("/a%20b%3Agr%C3%B6%C3%9Fe%231.pcap")


def test_fingerprints_tell_places_apart() -> None:
    one = checked(run("diagnose", "snapped.pcap", "--format", "sarif").out)
    prints = [result["partialFingerprints"]["place/v1"] for result in one["results"]]
    assert len(prints) == len(set(prints)) > 5


@pytest.mark.parametrize("form", ["text", "ndjson", "sarif"])
def test_the_whole_of_a_capture_of_violations(form: str) -> None:
    result = run("diagnose", OWN / "violations.pcap", "--format", form)
    assert result.code == 0
    assert "frame-end-wrong" in result.out
    if form == "sarif":
        checked(result.out)


def test_explain_as_json() -> None:
    (found,) = json.loads(run("explain", "frame-end-wrong", "--format", "json").out)
    assert found["severity"] == "error"
    assert "connection-closed-by-broker" in found["leads_to"]
    every = json.loads(run("explain", "--format", "json").out)
    assert [one["code"] for one in every] == list(KINDS)
    assert run("explain", "FRAME-END-WRONG ").out == run("explain", "frame-end-wrong").out


def test_every_code_is_explained() -> None:
    for code, kind in KINDS.items():
        result = run("explain", code)
        assert result.code == 0, code
        assert kind.advice in " ".join(result.out.split()), code


@pytest.mark.parametrize("chosen", ["nope", ":1"])
def test_a_connection_that_is_not_there_is_no_sound_one(chosen: str) -> None:
    result = run("diagnose", "pika_mix.pcap", "--connection", chosen, "--fail-on", "error")
    assert (result.code, result.out) == (2, "")
    assert f"no connection `{chosen}` among 4" in result.err
    for there in ("fed1a26c", ":43706", "10.77.0.2:43706"):
        assert run("diagnose", "pika_mix.pcap", "--connection", there).code == 0


def test_an_empty_summary_says_that_options_made_it() -> None:
    for option in (("--connection", "nope"), ("--channel", "99")):
        result = run("summary", "pika_mix.pcap", *option)
        assert (result.code, result.err) == (0, "amqpsniff: warning: no row matches the options\n")


def test_a_chain_that_is_found_at_one_time() -> None:
    """What is found at a connection's end has one time, in any order."""
    findings = [
        finding("publishes-in-doubt", 312, **because("disconnect-unclean", 312)),
        finding("disconnect-unclean", 312, **because("heartbeat-missed", 312)),
        finding("heartbeat-missed", 312),
    ]
    for given in (findings, findings[::-1], [findings[1], findings[2], findings[0]]):
        assert drawn(cases(given)) == [
            "heartbeat-missed 1",
            "-disconnect-unclean 1",
            "--publishes-in-doubt 1",
        ]


def test_rows_that_name_each_other_as_causes() -> None:
    findings = [
        finding("broker-slow", 3, **because("connection-blocked", 3)),
        finding("connection-blocked", 3, **because("broker-slow", 3)),
    ]
    assert sum(line.count(" 1") for line in drawn(cases(findings))) == 2


def test_a_cut_packet_is_not_a_missing_one() -> None:
    text = " ".join(run("diagnose", "zerowindow.pcap").out.split())
    assert "delivery-tag-gap" in text
    assert "Packets are missing" not in text


def test_what_fails_a_check_is_named_where_it_is_not_shown() -> None:
    words = ("--fail-on", "warning", "--limit", "0", "--brief")
    note = ("diagnose", "pika_mix.pcap", "--only", "connection-unencrypted", *words)
    found = run(*note)
    assert found.code == 1
    assert found.err.endswith(" (connection-unencrypted)\n")
    found = run(*note, "--no-notes")  # nor are notes looked at that are not wanted
    assert (found.code, found.err) == (0, "")
    bad = "found error: A queue or exchange was declared with other properties than it has"
    for command in (("diagnose", *words), ("report", "-o", "-", "--fail-on", "error")):
        found = run(*command, "pika_mix.pcap", "--only", "declaration-mismatch")
        assert found.code == 1
        assert f"amqpsniff: {bad} (declaration-mismatch)\n" in found.err
        found = run(*command, "pika_mix.pcap", "--only", "tcp-gap")
        assert (found.code, found.err) == (0, "")


def test_findings_and_cases_are_told_apart() -> None:
    found = run("diagnose", "pika_mix.pcap", "--from", "0.001", "--brief")
    rows, every, cases, kinds = re.search(  # type: ignore[union-attr]
        r"^(\d+) of (\d+) findings match, in (\d+) cases: (.*?) in ", found.out, re.MULTILINE
    ).groups()
    assert int(rows) < int(every)
    assert int(cases) == sum(map(int, re.findall(r"\d+", kinds))) < int(rows)


def test_the_limit_counts_notes_too() -> None:
    every = run("diagnose", "pika_mix.pcap", "--brief").out
    assert "\nnotes on configuration" in every
    assert "\nnotes on configuration" not in run("diagnose", "pika_mix.pcap", "-n", "2").out
