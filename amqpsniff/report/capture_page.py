"""The report of captures as an HTML page, one section after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from html import escape
from typing import Any

from amqpsniff.analysis.report_data import TOP, ReportData
from amqpsniff.analysis.summary import least_text
from amqpsniff.analysis.times import DAY_NS, absolute, of_day, zone_name
from amqpsniff.analysis.top_rows import Row, close_reason, end_of
from amqpsniff.findings import KINDS
from amqpsniff.report import narrative
from amqpsniff.report.figures import MAX_LIVES, Figures, capture_name, over_time, topology
from amqpsniff.report.findings import FindingList
from amqpsniff.report.page import Page
from amqpsniff.report.sequences import MAX_CONVERSATIONS, Sequences, choose
from amqpsniff.report.tables import Column, beside, table
from amqpsniff.spec import given_name
from amqpsniff.units import BEFORE, count, duration, octets
from amqpsniff.wire_text import exchange_name, harmless, shortened

MAX_CONNECTIONS, MAX_CHANNELS = 300, 300
"""Rows of the tables: what can still be looked through on a phone."""

MAX_EDGES = 25
"""Edges of each kind in the picture of the topology."""

MAX_SENTENCE = 700
"""Characters of a sentence of the verdict: a client may give itself a name of thousands."""

_TITLES = frozenset(kind.title for kind in KINDS.values())

_EXACTNESS = "Quantiles are within 0.4 %, those of points over time within 3 %."


def _text(value: Any) -> str:
    return "" if value is None else harmless(str(value)) or '""'


def _bytes(value: Any) -> str:
    return "" if value is None else octets(value)


def _duration(value: Any) -> str:
    return "" if value is None else duration(value)


def _instant(value: Any) -> str:
    return (value or "") if value in (None, BEFORE) else f"{value:,.6f}"


def _word(name: str, title: str = "") -> Column:
    return Column(name, title or name, form=_text)


def _exchange(name: str) -> Column:
    return Column(name, form=exchange_name, title=name)


def _number(name: str, title: str = "") -> Column:
    return Column(name, title or name, number=True)


def _size(name: str, title: str = "") -> Column:
    return Column(name, title or name, form=_bytes, number=True)


def _span(name: str, title: str = "") -> Column:
    return Column(name, title or name, form=_duration, number=True)


class CapturePage:
    """The page of a report.

    Args:
        data: The first pass, finished.
        title: Title of the page; None for one that names the captures.
        version: The version of the product that made it.
        show_secrets: True if passwords and tokens are shown.

    Attributes:
        data: The first pass.
        operations: Rows of `Capture.operations`; None where they are not shown.
    """

    operations: Sequence[Mapping[str, Any]] | None = None

    def __init__(
        self,
        data: ReportData,
        title: str | None = None,
        *,
        version: str,
        show_secrets: bool = False,
    ) -> None:
        self.data = data
        self._version = version
        self._show_secrets = show_secrets
        self._summary: Any = data.summary
        self._figures = Figures(data)
        self._start = data.start_ns
        self._clock: Callable[[int], str] | None = None
        if self._figures.utc:
            days = (self._summary["span_ns"] or 0) > DAY_NS
            self._clock = partial(of_day, days=days, zone=data.zone)
        self._conversations: list[dict[str, Any]] = []
        name = capture_name(self._summary["captures"])
        self._page = Page(title or f"AMQP in {name}", narrative.headline(data))

    def sequences(self, body_limit: int = 0) -> Sequences | None:
        """The sequences that a second pass fills before `show`; None without connections to show.

        At most `body_limit` bytes of each body are shown.
        """
        chosen = choose(self.data, self.data.diagnosis.found)
        return Sequences(self.data, chosen, body_limit) if chosen else None

    def show(self, sequences: Sequences) -> None:
        """Show the conversations that were filled."""
        self._conversations = sequences.conversations()

    def html(self) -> str:
        """The page. Raises UsageError if the package with the charts' library is missing."""
        self._page.data("conversations", self._conversations)
        several = len(self._summary["captures"]) > 1
        finding_list = FindingList(self.data.diagnosis, self._clock, several, self._shown)
        self._verdict(finding_list)
        self._over_time()
        self._story()
        self._findings(finding_list)
        self._latencies()
        self._operations()
        self._connections()
        self._topology()
        self._conversation_section()
        self._methods()
        self._about()
        return self._page.html()

    @property
    def _shown(self) -> frozenset[str]:
        return frozenset(conversation["id"] for conversation in self._conversations)

    def _verdict(self, finding_list: FindingList) -> None:
        verdict = self.data.diagnosis.verdict
        paragraphs = "".join(f"<p>{_sentence(text)}</p>" for text in verdict.sentences)
        box = f'<div class="verdict {verdict.severity or ""}">{paragraphs}</div>'
        self._page.section("verdict", "Verdict", box, finding_list.lines())

    def _story(self) -> None:
        sentences = narrative.sentences(self._summary, self.data)
        items = "".join(f"<li>{escape(text)}</li>" for text in sentences)
        tiles = "".join(
            f'<div class="tile {kind}"><b>{escape(number)}</b><span>{escape(label)}</span></div>'
            for number, label, kind in narrative.tiles(self._summary, self.data)
        )
        self._page.section(
            "story", "Traffic", f'<div class="tiles">{tiles}</div>',
            f'<ul class="story">{items}</ul>',
        )  # fmt: skip

    def _findings(self, found: FindingList) -> None:
        inside = found.details()
        if inside:
            about = "Places and what to do, the worst first; consequences stand inside their cause."
            self._page.section("findings", "Findings in detail", inside, about=about)

    def _operations(self) -> None:
        rows = self.operations
        if rows is None:
            return
        columns = [
            _word("operation"), _word("framework"), _number("published"),
            _number("per_second", "per s"), _number("delivered"), _number("retried"),
            _number("refused"), _number("failed"), _word("error_type", "error"),
            _number("queue_p50_ms", "ms in queue, p50"), _number("queue_p95_ms", "p95"),
            _number("work_p50_ms", "ms at work, p50"), _number("work_p95_ms", "p95"),
        ]  # fmt: skip
        note = f"The first {TOP} of {count(len(rows))}." if len(rows) > TOP else ""
        about = "What applications ask of each other, what fails most first."
        shown = table(rows[:TOP], columns, "Operations", note=note)
        self._page.section("operations", "Operations", shown, about=about)

    def _over_time(self) -> None:
        figures, page = self._figures, self._page
        specs = [*figures.rates(), *figures.levels()]
        if not specs or not figures.step_ns:
            return
        about = (
            f"Each point stands for {duration(figures.step_ns)}: rates are means over it, depths "
            "the highest within it. What was unsettled when its channel closed is not counted "
            "after that."
        )
        if self.data.uncounted:
            about += " Depths are at least as high as drawn: not all that waited is known."
        timed = page.charts(figures.latencies(), across=3)
        page.section("time", "Over time", page.charts(specs), timed, about=about)

    def _latencies(self) -> None:
        spreads = self._figures.spreads()
        if not spreads and not self._summary["outcomes"]:
            return
        least = self._summary["confirms_at_least"]
        about = [_EXACTNESS] if spreads else []
        if least is not None:
            about.append(least_text(least))
        self._page.section(
            "latencies",
            "Latencies",
            self._page.charts(spreads, across=3),
            self._outcomes(),
            about=" ".join(about),
        )

    def _outcomes(self) -> str:
        """Outcomes and replies, with their times."""
        outcomes, replies = self._summary["outcomes"], self._summary["replies"]
        if not outcomes and not replies:
            return ""
        timed = [_span(f"{name}_ns", name) for name in ("p50", "p95", "p99", "max")]
        of_messages = [_word("outcome"), _number("count", "messages"), *timed]
        of_requests = [_word("method"), _number("count", "requests"), *timed]
        return beside(
            table(outcomes, of_messages, "Outcomes of messages"),
            table(replies, of_requests, "Replies by the request's method"),
        )

    def _connections(self) -> None:
        rows = self._important()
        number = self.data.connections.number
        page, parts = self._page, []
        if not rows:
            return
        lives = over_time(rows, MAX_LIVES)
        parts.append(page.charts([self._figures.lives(lives)]))
        if number > len(lives):
            text = (
                f"Bars of {len(lives)} of {count(number)}: half of them for findings and bad ends, "
            )
            parts.append(f'<p class="about">{text}the others from all of the time.</p>')
        parts.append(self._connection_table(rows, number))
        parts.append(self._channel_table())
        page.section("connections", "Connections", *parts)

    def _important(self) -> list[Row]:
        """One connection for each finding, then a second for each, and so on; then the others."""
        places: dict[str, int] = {}
        seen: Counter[str] = Counter()
        for finding in self.data.diagnosis.found:
            if KINDS[finding.code].severity != "info" and finding.connection_id not in places:
                places[finding.connection_id] = seen[finding.code]
                seen[finding.code] += 1
        rows = self.data.connections.rows
        return sorted(rows, key=lambda row: places.get(row["connection_id"], len(rows)))

    def _connection_table(self, rows: list[Row], number: int) -> str:
        columns = [
            Column("connection_id", "id", form=lambda value: value[:8], link=True),
            _word("client"), _word("server"), _word("name"), _word("user"), _word("vhost"),
            *([_word("clock", f"began {zone_name(self.data.zone)}")] if self._clock else []),
            Column("began", "began s", form=_instant, number=True),
            _span("lasted"), _word("end"), _word("why"), _number("channels"), _number("published"),
            _number("delivered"), _size("sent"), _size("received"),
            _number("sent_again", "sent again"), _word("owed", "who owed whom at the end"),
        ]  # fmt: skip
        shown = [self._connection(row) for row in rows[:MAX_CONNECTIONS]]
        note = _note(len(shown), number, "amqpsniff connections CAPTURE")
        return table(shown, columns, "Connections", note=note, links=self._shown)

    def _connection(self, row: Row) -> Row:
        is_timed = row["start_ns"] is not None and row["end_ns"] is not None
        span = row["end_ns"] - row["start_ns"] if is_timed else None
        return row | {
            "name": given_name(row["connection_name"], row["client_product"]),
            "clock": BEFORE if row["midstream"] else self._clocked(row["start_ns"]),
            "began": BEFORE if row["midstream"] else self._since(row["start_ns"]),
            "lasted": span,
            "sent": row["client_bytes"],
            "received": row["server_bytes"],
            "sent_again": row["retransmissions"],
            "end": end_of(row),
            "why": close_reason(row),
        }

    def _channel_table(self) -> str:
        columns = [
            Column("connection_id", "id", form=lambda value: value[:8], link=True),
            _word("client"), _number("channel"), _word("end"), _word("why"), _word("mode"),
            _number("prefetch_count", "prefetch"),
            _number("published"), _number("confirmed"), _number("returned"),
            _number("unconfirmed_max", "unconfirmed most"),
            _number("unconfirmed_end", "unconfirmed at end"),
            _number("delivered"), _number("acknowledged", "acked"),
            _number("unsettled_max", "unacked most"), _number("unsettled_end", "unacked at end"),
            _number("consumers"),
        ]  # fmt: skip
        rows = [
            row | {"end": end_of(row), "why": close_reason(row)}
            for row in self.data.channels.rows[:MAX_CHANNELS]
        ]
        note = _note(len(rows), self.data.channels.number, "amqpsniff channels CAPTURE")
        return table(rows, columns, "Channels", note=note, links=self._shown)

    def _clocked(self, time_ns: int | None) -> str | None:
        return self._clock(time_ns) if self._clock and time_ns else None

    def _since(self, time_ns: int | None) -> float | None:
        return None if time_ns is None else (time_ns - (self._start or 0)) / 1e9

    def _topology(self) -> None:
        result: Any = self.data.topology.result(MAX_EDGES)
        picture = topology(result)
        if not picture and not self._summary["exchanges"]["rows"]:
            return
        label = "Picture of the topology"
        figure = (
            f'<div class="picture" role="region" tabindex="0" aria-label="{label}">{picture}</div>'
        )
        published = [_number("published"), _size("published_bytes", "bytes published")]
        delivered = [_number("delivered"), _size("delivered_bytes", "bytes delivered")]
        keys = [_exchange("exchange"), _word("routing_key", "routing key")]
        sections = ("exchanges", "queues", "routing_keys")
        vhosts = {row["vhost"] for key in sections for row in self._summary[key]["rows"]}
        vhost = [_word("vhost")] if len(vhosts) > 1 else []
        tables = [
            _named(self._summary[key], [*vhost, *columns], title)
            for key, columns, title in zip(
                sections,
                (
                    [_exchange("exchange"), *published, *delivered],
                    [_word("queue"), *delivered],
                    [*keys, *published, *delivered],
                ),
                ("Exchanges", "Queues", "Routing keys"),
                strict=True,
            )
        ]
        largest = max(
            result[f"{kind}_count"] for kind in ("publisher", "route", "consumer", "binding")
        )
        note = ""
        if largest > MAX_EDGES:
            note = (
                f"Only the {MAX_EDGES} busiest publishers, routes, bindings and consumers are "
                "drawn; amqpsniff topology CAPTURE --limit N shows more."
            )
        about = (
            "From publishers over exchanges and queues to consumers; dashed: bound, but nothing "
            "was seen to go there."
        )
        self._page.section("topology", "Topology", figure, beside(*tables), about=f"{about} {note}")

    def _conversation_section(self) -> None:
        if not self._conversations:
            text = "There is none: standard input is read once, and these need a second reading."
            if self.data.connections.number:
                self._page.section("conversations", "Conversations", about=text)
            return
        options = "".join(map(_option, self._conversations))
        number = self.data.connections.number
        about = "What client and broker said to each other, event by event."
        if number > len(self._conversations):
            about += (
                f" {len(self._conversations)} of {count(number)} connections: one for each finding "
                f"that matters, at most {MAX_CONVERSATIONS}; --connection ID chooses others."
            )
        self._page.section(
            "conversations",
            "Conversations",
            '<div class="choose"><label for="conversation">Connection</label>'
            f'<select id="conversation">{options}</select></div>'
            '<div class="lifelines" id="lifelines" role="region" tabindex="0" '
            'aria-label="Sequence of events"><div class="peers" id="peers"></div>'
            '<ol class="events" id="events"></ol></div>'
            '<p class="about" id="about-conversation" aria-live="polite"></p>',
            about=about,
        )

    def _methods(self) -> None:
        if not self.data.connections.number:
            return
        method_rows = [{"method": name, "count": n} for name, n in self._summary["methods"].items()]
        errors = table(
            self._summary["errors"],
            [_number("count", "times"), _number("reply_code", "code"),
             Column("reply_text", "text", form=_text, wide=True),
             _word("method"), _word("sender", "by"), _number("packet_number", "packet")],
            "Errors by reply code",
            note="" if len(self._summary["errors"]) < TOP else f"The {TOP} most frequent.",
        )  # fmt: skip
        clients = table(
            self._summary["clients"][:TOP],
            [_word("client_product", "product"), _word("client_version", "version"),
             _word("client_platform", "platform"), _number("connections")],
            "Client libraries",
        )  # fmt: skip
        columns = [_word("method"), _number("count", "times")]
        self._page.section(
            "methods",
            "Methods and errors",
            errors,
            beside(table(method_rows, columns, "Methods"), clients),
        )

    def _about(self) -> None:
        totals, captures = self.data.totals, self._summary["captures"]
        names = ", ".join(map(harmless, captures[:10]))
        others = len(captures) - 10
        tcp = sum(totals.counters.get(name, 0) for name in ("segments", "other_ports"))
        facts = [
            f"Captures: {names}{f' and {others} more' if others > 0 else ''}.",
            (f"Packets: {count(totals.packets)}, of them TCP: {count(tcp)}."),
            *(f"Comment: {harmless(text)}." for text in self._summary["comments"][:5]),
        ]
        if self._start is not None:
            facts.append(f"Seconds count from {absolute(self._start, self.data.zone)}.")
        if self.data.topology.forgotten or self._summary["routing_keys"]["distinct"] is None:
            facts.append("There were more names than are counted: rare ones are missing.")
        facts.append(
            "Passwords and tokens are shown: keep this file to yourself."
            if self._show_secrets
            else "Passwords and tokens are not in this file; names of queues, users and hosts are."
        )
        facts.append(f"Made by amqpsniff {self._version}. Nothing is loaded from a network.")
        items = "".join(f"<li>{escape(text)}</li>" for text in facts)
        self._page.section("about", "About this report", f'<ul class="story">{items}</ul>')


def _sentence(text: str) -> str:
    """A sentence of the verdict, the title of a finding in bold."""
    title, colon, rest = shortened(text, MAX_SENTENCE).partition(": ")
    if title not in _TITLES:
        return escape(title + colon + rest)
    return f"<b>{escape(title)}</b>{escape(colon + rest)}"


def _option(conversation: Row) -> str:
    name = conversation["id"]
    text = f"{conversation['client']} ({name[:8]})"
    return f'<option value="{escape(name)}">{escape(text)}</option>'


def _note(shown: int, number: int, command: str) -> str:
    """The note under a table that does not have all rows."""
    if shown >= number:
        return ""
    return f"{count(shown)} of {count(number)}: those that matter most; {command} shows all."


def _named(tally: Row, columns: list[Column], title: str) -> str:
    rows, distinct = tally["rows"], tally["distinct"]
    note = ""
    if distinct is None or distinct > len(rows):
        all_ = "very many" if distinct is None else count(distinct)
        note = f"The {count(len(rows))} busiest of {all_}; amqpsniff summary CAPTURE --limit N."
    return table(rows, columns, title, note=note)
