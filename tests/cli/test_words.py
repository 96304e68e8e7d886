"""Words of lines: escapes, quotes, widths, numbers, times, and what is cut first."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.table import Table

from amqpsniff.analysis import times
from amqpsniff.analysis.body_text import as_text
from amqpsniff.analysis.one_line import Part, argument_parts
from amqpsniff.cli.render.body import hex_lines
from amqpsniff.cli.render.clock import LineClock
from amqpsniff.cli.render.grid import Grid, facts
from amqpsniff.cli.render.lines import fitted, joined
from amqpsniff.cli.render.text import STYLES, Paint, Words, cells, cut, cut_middle, folded
from amqpsniff.errors import UsageError
from amqpsniff.units import count, duration, limit, octets, rate
from amqpsniff.wire_text import harmless, in_a_sentence, word

PLAIN = Paint(colour=False)
S = 1_000_000_000


def test_a_reason_of_many_lines_is_a_sentence() -> None:
    assert (
        in_a_sentence("function_clause\n[{rabbit,\n     [a]}]", 99)
        == "function_clause [{rabbit, [a]}]"
    )
    assert in_a_sentence("a\x1b[2J b" * 9, 10) == "a\\x1b[2J …"


@given(st.text())
def test_harmless_text_is_printable_and_one_line(text: str) -> None:
    assert harmless(text).isprintable()
    if text.isprintable():
        assert harmless(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("orders", "orders"),
        ("", '""'),
        ("two words", '"two words"'),
        ('say "x"', '"say \\"x\\""'),
        ("a\nb\x1b[0m", "a\\nb\\x1b[0m"),
        ("\u202egnp", "\\u202egnp"),
        ("\U000e0041", "\\U000e0041"),
        ("größe→日本", "größe→日本"),
    ],
)
def test_words(text: str, shown: str) -> None:
    assert word(text) == shown


@given(st.text(st.characters(categories=("L", "M", "N", "P", "So"))), st.integers(0, 40))
def test_cut_text_fits(text: str, width: int) -> None:
    text = harmless(text)
    assert cells(cut(text, width)) <= width
    if cells(text) <= width:
        assert cut(text, width) == text
        assert cut_middle(text, width) == text


def test_what_takes_no_column_is_not_cut_for() -> None:
    """Letters with marks above and below them are more characters than columns."""
    name = "e\u0301ve\u0301nements"
    assert cut(name, 10) == cut_middle(name, 10) == name


@pytest.mark.parametrize(
    ("number", "shown"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.00 kB"), (24_137, "24.1 kB"), (999_499, "999 kB"),
     (999_500, "1.00 MB"), (3_200_000_000, "3.20 GB"), (2**63, "9223 PB")],
)  # fmt: skip
def test_bytes(number: int, shown: str) -> None:
    assert octets(number) == shown


def test_count() -> None:
    assert count(1234567) == "1,234,567"


@pytest.mark.parametrize(
    ("time_ns", "shown"),
    [(0, "0 ns"), (812, "812 ns"), (1500, "1.50 µs"), (8_100_000, "8.10 ms"), (S, "1.00 s"),
     (99 * S, "99.0 s"), (200 * S, "3 min 20 s"), (3600 * S, "1 h"), (7500 * S, "2 h 5 min"),
     (273_600 * S, "3 d 4 h")],
)  # fmt: skip
def test_durations(time_ns: int, shown: str) -> None:
    assert duration(time_ns) == shown


@pytest.mark.parametrize(
    ("per_second", "shown"),
    [(0, "0"), (1e-7, "0"), (0.00123, "0.0012"), (0.042, "0.042"), (0.0999, "0.10"), (0.42, "0.42"),
     (4.2, "4.20"), (42, "42.0"), (420, "420"), (999.6, "1,000"), (4200.4, "4,200"),
     (99_999, "99,999"), (120_000, "120 k"), (3_400_000, "3.40 M")],
)  # fmt: skip
def test_rates(per_second: float, shown: str) -> None:
    assert rate(per_second) == shown


@given(st.text(st.characters(categories=("L", "N", "P", "Zs"))), st.integers(4, 40))
def test_folded_lines_fit_and_lose_nothing(text: str, width: int) -> None:
    text = harmless(text)
    lines = list(folded(text, width, "  "))
    assert max(map(cells, lines)) <= width
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


START = 1_769_860_000 * S  # 2026-01-31T11:46:40Z


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("+10s", START + 10 * S),
        ("+10", START + 10 * S),
        ("+1.5m", START + 90 * S),
        ("+250ms", START + S // 4),
        ("+1h", START + 3600 * S),
        ("+1d", START + 86400 * S),
        ("1769860000", START),
        ("1769860000.000000001", START + 1),
        ("2026-01-31T11:46:40Z", START),
        ("2026-01-31 11:46:40.5", START + S // 2),
        ("2026-01-31T12:46:40+01:00", START),
        ("2026-01-31T11:46", START - 40 * S),
        ("11:46:41", START + S),
        ("00:00", 1_769_817_600 * S),
        ("23:59:59.999999999", 1_769_904_000 * S - 1),
    ],
)
def test_times(text: str, moment: int) -> None:
    assert times.parse(text, "from")(START) == moment


@pytest.mark.parametrize(
    "text",
    ["", "now", "-10s", "+10x", "25:00", "12:61", "2026-13-01T00:00:00Z", "2026-01-31", "1e9"],
)
def test_times_that_are_none(text: str) -> None:
    with pytest.raises(UsageError, match="`to`"):
        times.parse(text, "to")


def test_clocks() -> None:
    clock = LineClock("relative", lambda: START)
    assert [clock.show(START + n) for n in (0, 1500, 61 * S, -S)] == [
        "0.000000", "0.000001", "61.000000", "-1.000000",
    ]  # fmt: skip
    clock = LineClock("delta", lambda: START)
    assert [clock.show(START + n * S) for n in (1, 3, 3)] == ["1.000000", "2.000000", "0.000000"]
    assert LineClock("absolute", lambda: START).show(START + 1000) == "2026-01-31T11:46:40.000001Z"
    assert LineClock("absolute", lambda: START, short=True).show(START) == "11:46:40.000000"
    assert LineClock("relative", lambda: None).show(START) == "0.000000"
    assert LineClock("relative", lambda: START).show(None) == "-"
    assert times.absolute(2**63 - 1) == "2262-04-11T23:47:16.854775Z"
    assert times.absolute(-(2**63)) == "1677-09-21T00:12:43.145224Z"


def shown(method: str, **arguments: object) -> str:
    return joined(argument_parts(method, dict(arguments)), PLAIN, None)


@pytest.mark.parametrize(
    ("method", "arguments", "line"),
    [
        ("queue.declare",
         {"ticket": 0, "queue": "", "passive": False, "durable": True, "exclusive": False,
          "auto_delete": True, "no_wait": False, "arguments": {"x-max-length": 10, "a": ["b", 1]}},
         'q="" {x-max-length=10 a=[b 1]} durable auto_delete'),
        ("basic.nack", {"delivery_tag": 7, "multiple": True, "requeue": False},
         "dt=7 multiple requeue=false"),
        ("channel.close",
         {"reply_code": 404, "reply_text": "NOT_FOUND - no queue", "class_id": 50, "method_id": 10},
         '404 "NOT_FOUND - no queue" on queue.declare'),
        ("connection.close",
         {"reply_code": 200, "reply_text": "", "class_id": 0, "method_id": 0}, '200 ""'),
        ("channel.close",
         {"reply_code": 503, "reply_text": "", "class_id": 999, "method_id": 1}, '503 "" on 999/1'),
        ("queue.bind", {"ticket": 0, "queue": "q"}, "q=q arguments incomplete"),
        ("85.10", {"base64": "AA=="}, "base64:AA=="),
        ("basic.qos", {"prefetch_size": 0, "prefetch_count": 10, "global": False},
         "prefetch_count=10"),
        ("connection.start-ok",
         {"client_properties": {"product": "Pika", "version": "1", "capabilities": {}},
          "mechanism": "PLAIN", "response": "[redacted]", "locale": "en_US"},
         '"Pika 1" mechanism=PLAIN'),
        ("queue.delete", {"ticket": 0, "queue": {"base64": "//4="}, "if_unused": False,
                          "if_empty": False, "no_wait": False}, "q=base64://4="),
    ],
)  # fmt: skip
def test_shorthand(method: str, arguments: dict[str, object], line: str) -> None:
    assert shown(method, **arguments) == line


@given(
    st.lists(
        st.tuples(st.text("ab=", max_size=12), st.text("xyz日", max_size=60)).filter(any),
        min_size=1, max_size=8,
    ),
    st.integers(1, 120),
)  # fmt: skip
def test_lines_fit(pairs: list[tuple[str, str]], room: int) -> None:
    parts = [Part("name", fixed, text) for fixed, text in pairs]
    line = joined(parts, PLAIN, room)
    assert cells(line) <= room
    whole = joined(parts, PLAIN, None)
    if cells(whole) <= room:
        assert line == whole


def test_the_longest_names_are_cut_first() -> None:
    parts = [Part("name", "x=", "orders"), Part("name", "rk=", "k" * 60), Part("size", "12 B")]
    assert joined(parts, PLAIN, 40) == "x=orders rk=" + "k" * 22 + "… 12 B"
    assert fitted(parts, 1000) == parts


class Marked(Paint):
    """Puts the name of a style around what is in it."""

    def __call__(self, style: str, text: str) -> str:
        return f"<{style}>{text}</>"


MARKED = Marked(colour=True)


def test_words_keep_their_styles_on_every_line() -> None:
    words = Words("one ").add("two three", "name").add(" four\nfive").add(" six", "key")
    assert words.plain == "one two three four\nfive six"
    assert list(words.lines(80, MARKED)) == [
        "one <name>two three</> four",
        "five<key> six</>",
    ]
    assert list(words.lines(9, MARKED)) == [
        "one <name>two</>",
        "<name>three</>",
        "four",
        "five<key> six</>",
    ]
    assert list(Words("").lines(9, MARKED)) == [""]


def test_cells_of_a_grid_keep_their_styles() -> None:
    grid = Grid("*name|~what")
    grid.add(Words("a long name", "name"), Words("some words ").add("code", "key"))
    assert list(grid.lines(24, MARKED)) == [
        "<key>name</>         <key>what</>",
        "<name>a long name</>  some words",
        "             <key>code</>",
    ]
    assert list(grid.lines(20, MARKED)) == [
        "<key>name</>",
        "<name>a long name</>",
        "    some words <key>code</>",
    ]


def test_facts_have_no_headings() -> None:
    grid = facts([("label", "said of it"), ("nothing", ""), ("b", Words("x", "name"))], max_width=6)
    assert list(grid.lines(40, MARKED)) == [
        "<key>label</>  said",
        "       of it",
        "<key>b</>      <name>x</>",
    ]


def _by_rich(headings: list[str], rows: list[list[str]]) -> list[str]:
    """The lines of a table as rich lays it out where there is room for all of it."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in headings:
        justify = "right" if heading.startswith(">") else "left"
        table.add_column(heading.lstrip(">"), justify=justify)  # type: ignore[arg-type]
    for row in rows:
        table.add_row(*row)
    console = Console(width=1000, color_system=None, markup=False, highlight=False)
    with console.capture() as capture:
        console.print(table)
    return [line.rstrip() for line in capture.get().splitlines()]


def _lines(grid: Grid, width: int) -> list[str]:
    return [line.rstrip() for line in grid.lines(width, PLAIN)]


def test_grids() -> None:
    grid = Grid("id|*name|?>frames|>bytes|~what")
    grid.add("7f29", "a very long name of a client", "12", "3.4 kB", "one two three four")
    assert _lines(grid, 100) == [
        "id    name                          frames   bytes  what",
        "7f29  a very long name of a client      12  3.4 kB  one two three four",
    ]
    assert _lines(grid, 66) == [
        "id    name                          frames   bytes  what",
        "7f29  a very long name of a client      12  3.4 kB  one two three",
        "                                                    four",
    ]
    grid.add("80aa", "one", "1", "1 B", "a sentence of many words, more than three lines here")
    assert [line[:12].rstrip() for line in _lines(grid, 66)] == [
        "id    name", "7f29  a very", "    one two", "80aa  one", "    a senten",
    ]  # fmt: skip
    grid = Grid("id|*name|?>frames|>bytes|~what")
    grid.add("7f29", "a very long name of a client", "12", "3.4 kB", "one two three four")
    assert _lines(grid, 48) == [
        "id    name                        frames   bytes",
        "7f29  a very long name of a cli…      12  3.4 kB",
        "    one two three four",
    ]
    assert max(map(len, _lines(grid, 30))) <= 30


WORDS = st.text("abcdéö→0123", max_size=24)
SENTENCES = st.lists(st.text("abcdé-.", min_size=1, max_size=20), max_size=8).map(" ".join)
WIDE_WORDS = st.text(st.characters(categories=("L", "N")), max_size=24).map(harmless)


@given(st.lists(st.tuples(WORDS, WORDS, WORDS, SENTENCES), min_size=1, max_size=5))
def test_lines_of_a_grid_are_those_that_rich_lays_out(
    rows: list[tuple[str, str, str, str]],
) -> None:
    grid = Grid("id|*name|>?number|what")
    for first, *others in rows:
        grid.add(first, *others[:2], Words(others[2], "name"))
    laid_out = _by_rich(["id", "name", ">number", "what"], [list(row) for row in rows])
    assert _lines(grid, 1000) == laid_out


@given(st.lists(st.tuples(WIDE_WORDS, WIDE_WORDS, WIDE_WORDS), max_size=5), st.integers(1, 90))
def test_lines_of_a_grid_fit(rows: list[tuple[str, str, str]], width: int) -> None:
    grid = Grid("id|*name|>?number")
    for row in rows:
        grid.add(*row)
    assert max(cells(line.rstrip()) for line in grid.lines(width, PLAIN)) <= width


def test_long_texts_stand_below_their_rows() -> None:
    grid = Grid("id|>?frames|closed|~~why")
    grid.add("7f29", "12", "404", "no queue of this name")
    grid.add("80aa", "1", "200", "")
    assert list(grid.lines(50, PLAIN)) == [
        "id    frames  closed  why",
        "7f29      12  404     no queue of this name",
        "80aa       1  200",
    ]
    assert list(grid.lines(22, PLAIN)) == [
        "id    frames  closed",
        "7f29      12  404",
        "    no queue of this",
        "    name",
        "80aa       1  200",
    ]


def test_hex_dumps() -> None:
    octets_ = bytes(range(48)) + b"abc"
    lines = list(
        hex_lines(octets_, hidden=frozenset((1,)), missing=frozenset(range(16, 48)), first=8)
    )
    assert lines == [
        "00000008  00 ** 02 03 04 05 06 07  08 09 0a 0b 0c 0d 0e 0f  .*..............",
        "00000018  -- -- -- -- -- -- -- --  -- -- -- -- -- -- -- --  ----------------",
        "00000038  61 62 63                                          abc",
    ]


def test_bodies_that_are_text() -> None:
    assert as_text("größe\n".encode(), complete=True) == "größe\n"
    assert as_text("größe".encode()[:3], complete=False) == "gr"
    assert as_text("größe".encode()[:3], complete=True) is None
    assert as_text(b"\x00\x01", complete=True) is None
    assert as_text(b"\x1b[2J", complete=True) is None
    assert as_text(b"", complete=True) == ""


def test_every_style_is_one_of_rich() -> None:
    paint = Paint(colour=True)
    for style in STYLES:
        assert "text" in paint(style, "text")
    assert paint("error", "x").startswith("\x1b[")
    assert PLAIN("error", "x") == "x"


def test_a_last_column_that_says_nothing_is_left_out() -> None:
    grid = Grid("id|name|~~why")
    grid.add("1", "a", "")
    assert _lines(grid, 80) == ["id  name", "1   a"]
    grid.add("2", "b", "gone")
    assert _lines(grid, 80) == ["id  name  why", "1   a", "2   b     gone"]


def test_limits_have_their_own_names() -> None:
    assert [limit(one) for one in (1 << 24, 512 << 10, 100, 3 << 20, 16_000_000)] == [
        "16 MiB", "512 KiB", "100 B", "3.15 MB", "16.0 MB",
    ]  # fmt: skip
