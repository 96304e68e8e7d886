"""What differs between two captures as sections of tables."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from amqpsniff.units import UNKNOWN, count, duration, octets, plural, rate, some
from amqpsniff.wire_text import exchange_name, harmless, named, quoted

from .grid import Grid, facts
from .styled_text import Words
from .text import NONE

Row = dict[str, Any]

INDENT = 6
_STYLES = {
    "new": "warning", "gone": "name", "changed": "warning", "slower": "warning", "faster": "name",
    "more": "warning", "fewer": "warning",
}  # fmt: skip
"""Styles of the words that say what became of something."""


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


def heading(title: str, shown: int, number: int) -> Words:
    """The heading of a section that shows so many of that number."""
    more = f" ({count(shown)} of {count(number)})" if shown < number else ""
    return Words(f"\n{title}{more}", "heading")


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


def _word(row: Row, word: str | None = None) -> Words:
    word = word or row["notable"] or ""
    return Words(word, _STYLES.get(word, ""))


def _change(row: Row) -> Words:
    """What became of something: whether it is new, or how it differs."""
    return _word(row, row["change"] if row["change"] != "same" else None)


def percent(ratio: float | None) -> str:
    """A ratio as what it is more or less: `+25 %`, `×12`, `÷12`."""
    if ratio is None:
        return NONE
    if ratio >= 10:
        return f"×{ratio:,.0f}"
    if 0 < ratio <= 0.1:
        return f"÷{1 / ratio:,.0f}"
    change = round((ratio - 1) * 100)
    return f"{change:+d} %" if change else "0 %"


def _rates(rows: list[Row]) -> Grid:
    table = Grid("what|?>before|?>after|>before/s|>after/s|>change|")
    for row in rows:
        sized = "bytes" in row["name"]
        shown = [
            (octets(side["count"]) if sized else count(side["count"]), side["per_second"])
            for side in (row["before"], row["after"])
        ]
        rates = [(octets if sized else rate)(each) for _, each in shown]
        table.add(row["name"], shown[0][0], shown[1][0], *rates, percent(row["ratio"]), _word(row))
    return table


def _latencies(rows: list[Row]) -> Grid:
    table = Grid("*what|?>count|>p50|>p95|??>p99|?>p95 change|")
    for row in rows:
        before, after = (_times(side) for side in (row["before"], row["after"]))
        cells = [f"{one} → {other}" for one, other in zip(before, after, strict=True)]
        table.add(
            Words(row["name"], "method") if row["kind"] == "reply" else row["name"],
            *cells,
            percent(row["p95_ratio"]),
            Words(_slower(row), _STYLES.get(row["notable"], "")),
        )
    return table


def _slower(row: Row) -> str:
    """True if times grew; by which quantile, where it is not the one whose change is shown."""
    word, at, ratio = row["notable"] or "", row["notable_at"], row["p95_ratio"] or 1
    agrees = "p95" in at or (ratio > 1) == (word == "slower")
    return word if not word or agrees else f"{word} at {at[0]}"


def _times(side: Row | None) -> list[str]:
    if side is None:
        return ["0", NONE, NONE, NONE]
    return [count(side["count"]), *(duration(side[f"{at}_ns"]) for at in ("p50", "p95", "p99"))]


def _findings(rows: list[Row]) -> Iterator[Words]:
    """A line or two for each: what it is, then whose and about what."""
    for row in rows:
        side = row["after"] or row["before"]
        times = " → ".join(count(one["count"]) if one else "0" for one in _sides(row))
        word = row["change"] if row["change"] != "changed" else row["notable"]
        line = Words(f"{word:<5}", _STYLES.get(word, ""))
        line.add(f" {row['severity']:<7}", row["severity"]).add(f" {row['title']}  ")
        yield line.add(row["code"], "name")
        whose = f"{harmless(row['client'])}: " if row["client"] else ""
        text = f"{whose}{harmless(side['detail'])}" if side["detail"] else whose.rstrip(": ")
        yield Words(f"{times}" + (f"  {text}" if text else ""), indent=INDENT)


def _topology(rows: list[Row]) -> Grid:
    several = len({row["vhost"] for row in rows}) > 1
    names = [name for name in rows[0] if name not in _NO_NAMES]
    headings = "|".join("*" + _HEADINGS.get(name, name.replace("_", " ")) for name in names)
    counted = rows[0]["messages"] is not None
    rates = "|?>before/s|?>after/s" if counted else ""
    table = Grid("|" + ("*vhost|" if several else "") + headings + rates + "|~how")
    for row in rows:
        cells = [named(row["vhost"])] if several else []
        cells += [_named(name, row[name]) for name in names]
        if counted:
            cells += map(rate, row["per_second"])
        word = row["notable"] if row["change"] == "traffic" else row["change"]
        table.add(_word(row, word), *cells, _how(row))
    return table


_NO_NAMES = frozenset(("change", "vhost", "fields", "messages", "per_second", "notable"))
_HEADINGS = {"name": "client", "destination_type": "to"}


def _named(name: str, value: Any) -> str:
    if name == "arguments":
        return harmless(json.dumps(value, ensure_ascii=False)) if value else ""
    return exchange_name(value) if name == "exchange" else named(value)


def _how(row: Row) -> str:
    """The facts that changed, or those of what is new or gone."""
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


def _products(rows: list[Row]) -> Grid:
    table = Grid("|*product|*version|?*platform|>before|>after")
    for row in rows:
        names = (harmless(row[name] or UNKNOWN) for name in ("product", "version", "platform"))
        numbers = (count(row[side]["connections"]) for side in ("before", "after"))
        table.add(_change(row), *names, *numbers)
    return table


def _closes(rows: list[Row]) -> Grid:
    table = Grid("what|by|>code|>before|>after||?*text")
    for row in rows:
        text = row["text"]
        table.add(
            row["what"],
            row["closed_by"] or UNKNOWN,
            NONE if row["code"] is None else str(row["code"]),
            *(count(row[side]["count"]) for side in ("before", "after")),
            _word(row),
            quoted(harmless(text)) if text else "",
        )
    return table


def _verdict(report: Row) -> Words:
    """One line: how much changed."""
    changed = dict.fromkeys(("new", "changed", "gone", "same"), 0)
    for row in report["findings"]:
        changed[row["change"]] += 1
    told = ", ".join(f"{count(number)} {word}" for word, number in changed.items() if number)
    if not report["notable_count"]:
        return Words(f"no notable difference; findings: {told or 'none'}")
    return Words(
        f"{plural(report['notable_count'], 'notable difference')}; findings: {told or 'none'}"
    )
