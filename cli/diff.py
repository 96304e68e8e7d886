"""`amqpsniff diff`: two captures compared."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Any

from amqpsniff.errors import UsageError
from amqpsniff.process_tuning import release_memory
from amqpsniff.units import UNKNOWN, count, duration, octets, plural, rate, some
from amqpsniff.wire_text import harmless, named, quoted

from .options import FailOn, Input, Two, at_least, spread
from .output import write_answer
from .reading import Reading, judged
from .render.grid import (
    EXCHANGE,
    METHOD,
    Column,
    Grid,
    facts,
    or_none,
    or_unknown,
    several_vhosts,
    table,
)
from .render.text import NONE, Words, heading
from .topology import arguments_text

if TYPE_CHECKING:
    from amqpsniff.compare import CaptureProfile

FORMATS = ("text", "json")
TOP = 20
"""Default rows of a section: what a screen holds."""


@spread("""
    Output:
        --same-traffic: One-way delays and losses between two places. Both captures are of the same
            connections, BEFORE made nearer to the clients and AFTER nearer to the broker; also what
            was altered in between.

    Exit code:
        --fail-on SEVERITY: Exit with 1 when AFTER has a finding of this severity (info, warning,
            error) or a worse one that BEFORE has not. With --same-traffic: error for altered bytes,
            warning also for losses, info also for what a capture lacks.
        --fail-slower PERCENT: Exit with 1 when the 95th percentile of confirms, acknowledgements or
            the replies of a method grew by more than this, and by more than chance.
""")
def diff(
    two: Two,
    same_traffic: bool = False,
    fail_on: FailOn = None,
    fail_slower: Annotated[float | None, at_least(0)] = None,
    limit: Annotated[int, at_least(1)] = TOP,
    format_: str = FORMATS[0],
) -> int:
    """Show what differs between two captures.

    Rates and latencies, findings that are new or gone, exchanges, queues, bindings, publishers and
    consumers, client versions, and how connections ended. Captures may differ in length: rates are
    by the second. What chance explains, as if events came independently of each other, is not
    called a change.

    Examples:

        amqpsniff diff monday.pcapng tuesday.pcapng
        amqpsniff diff baseline/ candidate/ --fail-on warning --fail-slower 20
        amqpsniff diff monday.pcapng tuesday.pcapng --format json | jq .findings
        amqpsniff diff --same-traffic client.pcap broker.pcap
    """
    if two.before == two.after == "-":
        raise UsageError("standard input can be one of the two captures, not both")
    if same_traffic:
        from .same_traffic import same_traffic as run

        if fail_slower is not None:
            raise UsageError("--fail-slower compares two runs; it does not go with --same-traffic")
        return run(two, fail_on, limit, format_)
    from amqpsniff.compare import before_and_after

    profiles, code = [], 0
    for side in two.sides():
        profile, failed = _profile(side)
        profiles.append(profile)
        code = max(code, failed)
        release_memory()
    report = before_and_after(*profiles, fail_on=fail_on, fail_slower=fail_slower)
    write_answer(report, format_, sections(report, limit))
    return judged(code, report["failures"], quiet=two.quiet)


def _profile(side: Input) -> tuple[CaptureProfile, int]:
    """The profile of a capture and the exit code of its reading; nothing else is kept."""
    reading = Reading(side)
    with reading.passing() as capture:
        profile = capture.passes.profile()
    return profile, reading.exit_code


Row = dict[str, Any]

INDENT = 6
_STYLES = {
    "new": "warning", "gone": "name", "changed": "warning", "slower": "warning", "faster": "name",
    "more": "warning", "fewer": "warning",
}  # fmt: skip
"""Styles of the words for a change."""


def sections(report: Row, top: int) -> Iterator[Grid | Words]:
    """Everything; the verdict last: that is what stays on the screen."""
    yield facts(_facts(report))
    for title, rows, build in (
        ("rates, by the second", report["rates"], _rates),
        ("latencies", report["latencies"], _latencies),
        *((name, rows, _topology) for name, rows in _routes(report)),
        ("clients", _differing(report["clients"]), _products),
        ("servers", _differing(report["servers"]), _products),
        ("ends", report["closes"], _closes),
    ):
        if rows:
            yield heading(title, min(top, len(rows)), len(rows))
            yield build(rows[:top])
    findings = _differing(report["findings"])
    if findings:
        yield heading("findings", min(top, len(findings)), len(findings))
        yield from _findings(findings[:top])
    yield Words("")
    yield _verdict(report)


def _sides(row: Row) -> tuple[Row | None, Row | None]:
    return row["before"], row["after"]


def _differing(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row["change"] != "same"]


def _routes(report: Row) -> Iterator[tuple[str, list[Row]]]:
    for name, rows in report["topology"].items():
        if name != "forgotten":
            yield name, rows


def _facts(report: Row) -> Iterator[tuple[str, str | Words]]:
    for name in ("before", "after"):
        yield name, _side(report[name])
    for caveat in report["caveats"]:
        yield "mind", Words(harmless(caveat), "warning")


def _side(side: Row) -> str:
    names = [harmless(name) for name in side["captures"]]
    text = some(names)
    text += f": {plural(side['packets'], 'packet')}"
    if side["span_ns"] is not None:
        text += f" in {duration(side['span_ns'])}"
    return f"{text}, {plural(side['connections'], 'AMQP connection')}"


def _word(word: str | None) -> Words:
    """The word for a change in its style; empty for none."""
    return Words(word or "", _STYLES.get(word or "", ""))


def percent(ratio: float | None) -> str:
    """A ratio as a change: `+25 %`, `×12`, `÷12`."""
    if ratio is None:
        return NONE
    if ratio >= 10:
        return f"×{ratio:,.0f}"
    if 0 < ratio <= 0.1:
        return f"÷{1 / ratio:,.0f}"
    change = round((ratio - 1) * 100)
    return f"{change:+d} %" if change else "0 %"


def _rates(rows: list[Row]) -> Grid:
    def amount(side: str, key: str, plain: Callable[[Any], str]) -> Callable[[Row], str]:
        return lambda row: (octets if "bytes" in row["name"] else plain)(row[side][key])

    return table(
        rows,
        ("what", "name", str),
        ("?>before", "", amount("before", "count", count)),
        ("?>after", "", amount("after", "count", count)),
        (">before/s", "", amount("before", "per_second", rate)),
        (">after/s", "", amount("after", "per_second", rate)),
        (">change", "ratio", percent),
        ("", "notable", _word),
    )


def _latencies(rows: list[Row]) -> Grid:
    def both(key: str, write: Callable[[Any], str], none: str = NONE) -> Callable[[Row], str]:
        return lambda row: " → ".join(write(side[key]) if side else none for side in _sides(row))

    return table(
        rows,
        ("*what", "", lambda row: METHOD(row["name"]) if row["kind"] == "reply" else row["name"]),
        ("?>count", "", both("count", count, "0")),
        (">p50", "", both("p50_ns", duration)),
        (">p95", "", both("p95_ns", duration)),
        ("??>p99", "", both("p99_ns", duration)),
        ("?>p95 change", "p95_ratio", percent),
        ("", "", lambda row: Words(_slower(row), _STYLES.get(row["notable"], ""))),
    )


def _slower(row: Row) -> str:
    """`slower` or `faster`; with the quantile, if it is not the one whose change is shown."""
    word, at, ratio = row["notable"] or "", row["notable_at"], row["p95_ratio"] or 1
    agrees = "p95" in at or (ratio > 1) == (word == "slower")
    return word if not word or agrees else f"{word} at {at[0]}"


def _findings(rows: list[Row]) -> Iterator[Words]:
    """A line or two for each: what it is, then whose and about what."""
    for row in rows:
        side = row["after"] or row["before"]
        times = " → ".join(count(figures["count"]) if figures else "0" for figures in _sides(row))
        word = row["change"] if row["change"] != "changed" else row["notable"]
        line = Words(f"{word:<5}", _STYLES.get(word, ""))
        line.add(f" {row['severity']:<7}", row["severity"]).add(f" {row['title']}  ")
        yield line.add(row["code"], "name")
        parts = [harmless(row["client"])] if row["client"] else []
        if side["detail"] and side["places"] > 1:
            parts.append(f"the first of {count(side['places'])}")
        text = ", ".join(parts)
        if side["detail"]:
            text += ": " * bool(text) + harmless(side["detail"])
        yield Words(f"{times}" + (f"  {text}" if text else ""), indent=INDENT)


def _topology(rows: list[Row]) -> Grid:
    names = [name for name in rows[0] if name not in _NO_NAMES]
    counted = rows[0]["messages"] is not None
    return table(
        rows,
        ("", "", lambda row: _word(row["notable" if row["change"] == "traffic" else "change"])),
        *several_vhosts(row["vhost"] for row in rows),
        *(_NAMES.get(name, (f"*{name.replace('_', ' ')}", name, named)) for name in names),
        *(_PER_SECOND if counted else ()),
        ("~how", "", _changed_facts),
    )


_NO_NAMES = frozenset(("change", "vhost", "fields", "messages", "per_second", "notable"))
_NAMES: dict[str, Column] = {
    "name": ("*client", "name", named),
    "destination_type": ("*to", "destination_type", named),
    "arguments": ("*arguments", "arguments", arguments_text),
    "exchange": EXCHANGE,
}
"""Columns of names whose heading or text is not the usual one."""
_PER_SECOND: tuple[Column, ...] = (
    ("?>before/s", "per_second", lambda counts: rate(counts[0])),
    ("?>after/s", "per_second", lambda counts: rate(counts[1])),
)


def _changed_facts(row: Row) -> str:
    """Changed facts; all facts of a row that is new or gone."""
    parts = []
    for name, (old, new) in row["fields"].items():
        label = name.replace("_", " ")
        if name == "routing_keys":
            parts += [f"{label} +{_keys(new)}"] if new else []
            parts += [f"{label} -{_keys(old)}"] if old else []
        elif row["change"] == "changed":
            parts.append(f"{label} {_value(old)} → {_value(new)}")
        elif (value := new if row["change"] == "new" else old) not in (False, {}, None):
            parts.append(label if value is True else f"{label} {_value(value)}")
    return ", ".join(parts)


KEYS_SHOWN = 5


def _keys(keys: list[str]) -> str:
    shown = " ".join(named(key) for key in keys[:KEYS_SHOWN])
    return shown + (f" … {count(len(keys))} in all" if len(keys) > KEYS_SHOWN else "")


def _value(value: Any) -> str:
    return harmless(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _before_and_after(key: str) -> tuple[Column, Column]:
    """The number in each capture, as text."""
    return (
        (">before", "before", lambda side: count(side[key])),
        (">after", "after", lambda side: count(side[key])),
    )


def _products(rows: list[Row]) -> Grid:
    return table(
        rows,
        ("", "change", _word),
        ("*product", "product", or_unknown),
        ("*version", "version", or_unknown),
        ("?*platform", "platform", or_unknown),
        *_before_and_after("connections"),
    )


def _closes(rows: list[Row]) -> Grid:
    return table(
        rows,
        ("what", "what", str),
        ("by", "closed_by", lambda by: by or UNKNOWN),
        (">code", "code", or_none(str)),
        *_before_and_after("count"),
        ("", "notable", _word),
        ("?*text", "text", lambda text: quoted(harmless(text)) if text else ""),
    )


def _verdict(report: Row) -> Words:
    """One line: how much changed."""
    changed = Counter(row["change"] for row in report["findings"])
    changes = [f"{count(changed[word])} {word}" for word in _CHANGES if changed[word]]
    number = report["notable_count"]
    notable = plural(number, "notable difference") if number else "no notable difference"
    return Words(f"{notable}; findings: {', '.join(changes) or 'none'}")


_CHANGES = ("new", "changed", "gone", "same")
