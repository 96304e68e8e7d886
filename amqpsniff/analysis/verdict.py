"""The verdict on a capture: what is wrong, since when, who, how sure, and what cannot be known.

A pure function: of the findings as cases, the connections they are about, and the numbers of the
capture. It is made of the catalogue's titles and the details of findings, so it says nothing
that the findings do not say.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from amqpsniff.analysis.clients import Clients
from amqpsniff.analysis.finding_tree import Case, Row
from amqpsniff.analysis.quality import ENDED_EARLY
from amqpsniff.analysis.times import SECOND_NS, moment
from amqpsniff.findings import FURTHER, KINDS, Finding
from amqpsniff.findings.finding import rank
from amqpsniff.units import count, octets, plural, some
from amqpsniff.wire_text import harmless, shortened

MAX_SENTENCES = 5
MAX_LEADS = 3
"""Cases in the sentences; more are counted."""
MAX_RESULTS = 2
"""Consequences of a case in its sentence."""
MAX_KINDS = 2
"""Details of a case in its sentence, where they differ in more than numbers and names."""
MAX_DETAIL = 180
"""Characters of a detail, which ends where a clause of it does."""
MAX_COMPARED = 1_000
"""Places of a finding that are compared, to say how many others there are."""

MAX_CLAUSE = 240
"""Characters of a clause."""

SURE = {"high": "certain", "medium": "likely", "low": "possible"}
"""Confidences as a person says them."""

_ENCRYPTED, _NOT_DECODED = "tls-unreadable", "protocol-not-decoded"
_WRONG_KEYS, _INCONCLUSIVE = "tls-keys-wrong", "capture-inconclusive"
NOT_LOOKED_AT = frozenset((_ENCRYPTED, _WRONG_KEYS, _NOT_DECODED, _INCONCLUSIVE))
"""Findings about traffic that could not be looked at. They count whatever their severity."""

TWICE = "proxy-on-both-sides"
"""Finding about a connection whose other side of a proxy is in the capture too."""

_VALUE = re.compile(r"'[^']*'|\d[\w.,:]*")
"""Names and numbers in a detail."""
_NUMBER = re.compile(r"('[^']*')|\d[\w.,:]*")
"""Numbers in a detail; names are a group."""
_PROPER = ("Celery", "Spring", "RabbitMQ")


@dataclass(frozen=True)
class Verdict:
    """One to five sentences about a capture.

    Attributes:
        sentences: One to five sentences.
        severity: The worst severity of a problem or a cost; None if there is neither.
        unseen: Traffic that could not be looked at, in words. A check must not ignore it.
        evidence: The findings that it rests on: `code`, `capture`, `connection_id`,
            `packet_number` of each.
    """

    sentences: list[str]
    severity: str | None = None
    unseen: list[str] = field(default_factory=list)
    evidence: list[Row] = field(default_factory=list)

    def __str__(self) -> str:
        return " ".join(self.sentences)

    def plain(self) -> dict[str, Any]:
        """The verdict for JSON."""
        return {
            "text": str(self),
            "severity": self.severity,
            "unseen": self.unseen,
            "evidence": self.evidence,
        }


def verdict(
    cases: Sequence[Case],
    clients: Clients,
    numbers: Mapping[str, Any],
    *,
    packets: int,
    connections: int,
    start_ns: int | None,
    zone: str | None = None,
    finding_count: int = 0,
    reported: Sequence[str] = (),
    looked: str = "in what the capture shows of",
    chosen: int | None = None,
    halves: int = 0,
) -> Verdict:
    """The verdict on findings.

    Args:
        cases: The findings as a tree, important ones first (`finding_tree.cases`).
        clients: Names for their connections.
        numbers: The capture's quality (`amqpsniff.analysis.quality.quality`).
        packets, connections: How much was read.
        start_ns: The time of the first packet.
        zone: The time zone of times of day; None for UTC.
        finding_count: All findings there are, if `cases` may be a selection of them.
        reported: Sentences about what is wrong that stand before those about findings.
        looked: Words for the traffic that was looked at, before the number of connections.
        chosen: Connections that were looked at, None for all of them.
        halves: Connections with one direction captured, where no finding says so.
    """
    leads = [(case, lead) for case in cases if (lead := leading(case)) is not None]
    by_code: dict[str, list[Finding]] = defaultdict(list)
    for node in (node for case in cases for node in case.walk()):
        by_code[node.code] += node.findings
    shown = sum(map(len, by_code.values()))
    halves += sum(clients.one_sided(finding.connection_id) for finding in by_code[_INCONCLUSIVE])
    unread = {finding.connection_id for finding in by_code[_NOT_DECODED]}
    unseen = list(_unseen(by_code, len(unread), halves, packets, connections))
    twice = {finding.connection_id for finding in by_code[TWICE]}
    end = [
        *_unseen_sentence(unseen),
        *_doubled(len(twice)),
        *_missing(by_code, numbers, connections),
    ]
    captures = {finding.capture for findings in by_code.values() for finding in findings}
    named = len(captures - {None}) > 1
    servers = {finding.server for findings in by_code.values() for finding in findings}
    several = len(servers - {None}) > 1
    described: list[Case] = []
    sentences, mild = list(reported), "warning" if reported else None
    failed = bool(reported) or any(_failed(lead) for _, lead in leads)
    if shown < finding_count and not failed:
        sentences.append(f"{count(shown)} of {plural(finding_count, 'finding')} match.")
    elif connections and chosen == 0:
        sentences.append(f"0 of {plural(connections, 'AMQP connection')} match.")
    elif connections > len(unread) and not failed:
        scope = f"{'in what could be read of' if unseen else looked} {part_of(connections, chosen)}"
        sentences.append(
            f"Nothing failed {scope}, but:" if leads else f"Nothing wrong was found {scope}."
        )
    for case, lead in leads[:MAX_LEADS]:
        room = MAX_SENTENCES - len(end) - (len(leads) > len(described) + 1) - len(sentences)
        if room > 0:
            day = not described
            texts = _sentences(
                case, lead, clients, start_ns, zone=zone, day=day, named=named, several=several
            )
            sentences += list(texts)[:room]
            described.append(lead)
    others = len(leads) - len(described)
    if others:
        noun = "finding is" if others == 1 else "findings are"
        sentences.append(f"{count(others)} more {noun} listed below.")
    keys = ("code", "capture", "connection_id", "packet_number")
    return Verdict(
        [*sentences, *end],
        max((KINDS[lead.code].severity for _, lead in leads), key=rank, default=mild),
        unseen,
        [{key: lead.first[key] for key in keys} for lead in described],
    )


def part_of(connections: int, chosen: int | None) -> str:
    """The number of AMQP connections, and of those that were chosen if not all were."""
    share = "" if chosen is None or chosen >= connections else f"{count(chosen)} of "
    return share + plural(connections, "AMQP connection")


def leading(case: Case) -> Case | None:
    """The case of a tree for a sentence: the first that failed, else the first problem or cost.

    So a failure comes before what only led to it. None if there are only notes, or flaws of the
    capture, in it.
    """
    candidates = [node for node in case.walk() if KINDS[node.code].category in ("problem", "cost")]
    return next(filter(_failed, candidates), candidates[0] if candidates else None)


def _failed(case: Case) -> bool:
    """True if something failed or waits, not only costs more."""
    return KINDS[case.code].category == "problem" and KINDS[case.code].severity != "info"


def _sentences(
    case: Case,
    lead: Case,
    clients: Clients,
    start_ns: int | None,
    *,
    zone: str | None,
    day: bool,
    named: bool,
    several: bool,
) -> Iterator[str]:
    """Sentences about a case and its consequences.

    The first time is one of a `day`, in the `zone`. Packets have the names of their captures if
    these are `named`; brokers are named if there are `several`.
    """
    row = lead.first
    descendants = (node for node in lead.walk() if node is not lead)
    results = [node for node in descendants if KINDS[node.code].category == "problem"]
    brought = {finding.connection_id for case in results for finding in case.findings}
    findings = lead.findings
    if brought:
        findings = sorted(findings, key=lambda finding: finding.connection_id not in brought)
    distinct = _distinct(findings)
    full = len(distinct) == 1 or findings[0] is not lead.findings[0]
    first = clients.short(lead.findings[:1])
    kinds = [
        (f"{name}: " if (name := clients.short([finding])) != first else "")
        + gist(finding.detail, MAX_DETAIL * (full and finding is findings[0]))
        for finding in distinct
    ]
    subject = "" if clients.named_in(row) else clients.describe(lead.findings)
    servers = dict.fromkeys(harmless(finding.server) for finding in lead.findings if finding.server)
    if several and servers and not any(server in kinds[0] for server in servers):
        subject = f"{subject} at {some(list(servers))}".lstrip()
    beginning = [subject, _times(lead, kinds[0]), _circumstances(lead, start_ns, zone, day, named)]
    parts = [", ".join(filter(None, beginning)), *kinds, and_others(findings, distinct)]
    if lead is not case:
        parts.append(f"likely because {_result(_cause_of(lead, case), kinds[0])}")
    yield f"{KINDS[lead.code].title}: {'; '.join(filter(None, parts))}."
    if results:
        clauses = (_result(result, kinds[0]) for result in results[:MAX_RESULTS])
        yield f"As a result, {' and '.join(clauses)}."


def _distinct(findings: Sequence[Finding]) -> list[Finding]:
    """The first of the findings, and the next that tells something else than other numbers, or is
    about another broker and none of its clients.
    """
    details: dict[str | None, Finding] = {}
    for finding in findings:
        details.setdefault(finding.detail, finding)
    distinct: dict[tuple[str | None, str], Finding] = {}
    for detail, finding in details.items():
        server = finding.server if finding.client is None else None
        distinct.setdefault((server, _VALUE.sub("", gist(detail, 0))), finding)
    return list(distinct.values())[:MAX_KINDS]


def _cause_of(lead: Case, cause: Case) -> Case:
    """The places of a cause that led to a place of the case; all if none did."""
    keys = {(finding.cause_code, finding.cause_packet_number) for finding in lead.findings}
    causes = [
        finding for finding in cause.findings if (finding.code, finding.packet_number) in keys
    ]
    return Case(cause.code, causes) if causes else cause


def and_others(findings: Sequence[Finding], named: Sequence[Finding] = ()) -> str:
    """The number of other subjects of the first finding's connection, in words; empty if none.

    `named` are the findings that a sentence has already; without it, the first one.
    """
    connection_id = findings[0].connection_id
    first = findings[:MAX_COMPARED]
    details = [
        finding.detail or ""
        for finding in first
        if connection_id and finding.connection_id == connection_id
    ]
    named_count = sum(finding.connection_id == connection_id for finding in named or findings[:1])
    clauses = {detail.partition("; ")[0] for detail in details}
    others = len({_NUMBER.sub(r"\1", clause[:MAX_CLAUSE]) for clause in clauses}) - named_count
    many = len(findings) > MAX_COMPARED or any(detail.startswith(FURTHER) for detail in details)
    number = "many others" if many else plural(others, "other")
    return f"and {number}" if others > 0 else ""


def _result(case: Case, before: str) -> str:
    """A consequence, at its most frequent place; a detail that is part of `before` is left out."""
    detail = gist(max(case.findings, key=lambda finding: finding.count).detail, 0)
    details = list(filter(None, (_times(case, detail), "" if detail in before else detail)))
    return inner(KINDS[case.code].title) + (f" ({', '.join(details)})" if details else "")


def _times(case: Case, detail: str) -> str:
    """The number of times, as `4 times`; empty for once, or where the detail has the number."""
    number = count(case.count)
    if case.count == 1 or re.search(rf"(?<![\d.,]){number} ", detail):
        return ""
    return f"{number} times"


def _circumstances(
    case: Case, start_ns: int | None, zone: str | None, day: bool, named: bool
) -> str:
    """When a finding was seen, in which packet, and how sure it is."""
    row, at = case.first, "first " if case.count > 1 else ""
    shown = [SURE[row["confidence"]]]
    if row["packet_number"] is not None:
        file = f" of {harmless(PurePath(row['capture']).name)}" if named and row["capture"] else ""
        shown.insert(0, f"packet {row['packet_number']}{file}")
    if row["ts_ns"] is not None and start_ns is not None:
        at += f"seen at {(row['ts_ns'] - start_ns) / SECOND_NS:.3f} s "
        if day:
            shown.insert(0, moment(row["ts_ns"], zone))
    elif len(shown) > 1:
        at += f"in {shown.pop(0)} "
    return f"{at}({', '.join(shown)})"


def inner(title: str) -> str:
    """A title as it stands within a sentence."""
    keeps = title[1:2].isupper() or title.startswith(_PROPER)
    return title if keeps else title[:1].lower() + title[1:]


def gist(detail: str | None, limit: int) -> str:
    """The first clause of a detail, and more of them up to a number of characters."""
    text = ""
    for clause in harmless(detail or "").split("; "):
        if text and len(text) + len(clause) > limit:
            break
        text += ("; " if text else "") + clause
    return shortened(text, MAX_CLAUSE).rstrip(".")


def _unseen_sentence(unseen: Sequence[str]) -> Iterator[str]:
    """The sentence about what could not be looked at."""
    if unseen:
        text = "; ".join(unseen)
        yield f"{text[:1].upper()}{text[1:]}."


def _unseen(
    by_code: Mapping[str, list[Finding]], others: int, halves: int, packets: int, connections: int
) -> Iterator[str]:
    """Parts of the traffic that could not be looked at."""
    if not packets:
        yield "the capture has no packets"
    elif not connections:
        yield "no AMQP was found in the capture"
    codes = (_ENCRYPTED, _WRONG_KEYS)
    encrypted, locked = (sum(finding.count for finding in by_code[code]) for code in codes)
    if encrypted:
        yield f"{plural(encrypted, 'TLS connection')} may be AMQP and could not be read"
    if locked:
        yield f"the keys that were given do not open {plural(locked, 'TLS connection')}"
    if others:
        yield f"{plural(others, 'connection')} used a protocol version that is not decoded"
    if halves:
        yield f"of {plural(halves, 'connection')} only one direction was captured"


def _doubled(twice: int) -> Iterator[str]:
    """The sentence about connections that were captured on both sides of a proxy."""
    if twice:
        were = "connection was" if twice == 1 else "connections were"
        sides = "on both sides of a proxy or of address translation"
        yield f"{count(twice)} {were} captured twice, {sides}: all numbers count them twice."


def _missing(codes: Collection[str], numbers: Mapping[str, Any], connections: int) -> Iterator[str]:
    """The sentence about what else the capture does not have."""
    parts = [text for code, text in ENDED_EARLY.items() if code in codes]
    if numbers["lost_bytes"]:
        holes = plural(numbers["gaps"], "hole")
        parts.append(f"{octets(numbers['lost_bytes'])} missing in {holes}")
    if numbers["cut"]:
        parts.append(f"{plural(numbers['cut'], 'packet')} were cut by the snap length")
    late = numbers["midstream_connections"]
    if late:
        subject = f"{count(late)} of {count(connections)} connections"
        subject = (
            subject if late < connections else "all connections" if late > 1 else "the connection"
        )
        parts.append(f"{subject} began before it, so names, limits and older messages are unknown")
    if unmeasured := numbers["unmeasured_publishes"]:
        messages = plural(unmeasured, "published message")
        were = "was" if unmeasured == 1 else "were"
        parts.append(f"it is not known if and when {messages} {were} confirmed")
    if parts:
        yield f"The capture does not show everything: {'; '.join(parts)}."
