"""The parts of a page: whatever a text is, it stays text; tables and drawings are sound."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from itertools import combinations
from pathlib import Path

import pytest

from amqpsniff.report import page as module
from amqpsniff.report.drawing import LABEL_HEIGHT, LABEL_WIDTH, Drawing, Line, Node
from amqpsniff.report.page import Page, in_script
from amqpsniff.report.tables import FILTERED_FROM, MAX_CHARACTERS, Column, table

HOSTILE = "</script><img src=x onerror=alert(1)>\u2028\u2029<!--\"'&{{constructor}}\x00\x1b[31m"
VOID = {"meta", "input", "br", "img", "link"}


class Balance(HTMLParser):
    """Reads HTML and notes which tags were not closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        assert not [name for name, _ in attrs if name.startswith("on")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def _made() -> str:
    page = Page(HOSTILE, HOSTILE)
    page.data("conversations", [{"id": HOSTILE}])
    rows = [{"name": HOSTILE}, {"name": "<b>"}]
    shown = table(rows, [Column("name", HOSTILE, link=True)], HOSTILE, links=frozenset((HOSTILE,)))
    drawn = Drawing(
        [Node("exchange", [HOSTILE]), Node("queue", [HOSTILE])], [Line(0, 1, HOSTILE)],
        ("exchange", "queue"), HOSTILE,
    ).svg()  # fmt: skip
    chart = page.chart({"data": {"values": [{"name": HOSTILE}]}})
    page.section("one", HOSTILE, shown, drawn, chart, about=HOSTILE)
    return page.html()


def test_hostile_text_stays_text() -> None:
    made = _made()
    body = made[made.index("<body>") : made.index("<script")]
    parser = Balance()
    parser.feed(body.removesuffix("</body>"))
    assert "img" not in parser.seen
    assert "script" not in parser.seen
    assert parser.open == ["body"]
    assert made.count("</script>") == 2
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', made, re.S)
    assert data is not None
    assert json.loads(data[1])["conversations"] == [{"id": HOSTILE}]
    assert "<" not in data[1]
    assert data[1].isascii()


def test_policy_names_the_one_script_there_is() -> None:
    made = _made()
    script = re.search(r'<script type="module">(.*?)</script>', made, re.S)
    assert script is not None
    digest = base64.b64encode(hashlib.sha256(script[1].encode()).digest()).decode()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', made)
    assert policy is not None
    assert f"script-src 'sha256-{digest}'" in policy[1]
    assert policy[1].startswith("default-src 'none'")
    assert "unsafe-eval" not in policy[1]
    assert not re.search(r'(?:src|href)="(?!#)', made[: made.index("<script")])


def test_json_in_a_script_cannot_end_it() -> None:
    text = in_script({"a": "</script><!--\u2028&"})
    assert json.loads(text) == {"a": "</script><!--\u2028&"}
    assert not set("<>&\u2028") & set(text)


def test_cells_have_bounds() -> None:
    made = table([{"name": "x" * 100_000}], [Column("name", "name")], "Names")
    assert "x" * (MAX_CHARACTERS - 1) + "…" in made
    assert len(made) < 2 * MAX_CHARACTERS + 1_000


def test_an_empty_table_says_so() -> None:
    assert "none" in table([], [Column("name", "name")], "Names")


def test_tables_of_one_caption_are_told_apart() -> None:
    rows = [{"name": str(at)} for at in range(FILTERED_FROM)]
    made = table(rows, [Column("name", "name")], "Places", label="Places of <a>")
    assert "<h3>Places</h3>" in made
    assert made.count("Places of &lt;a&gt;") == 2
    assert 'aria-label="Filter Places of &lt;a&gt;"' in made


def test_missing_package_is_a_usage_error(monkeypatch: pytest.MonkeyPatch) -> None:
    from amqpsniff.errors import UsageError

    monkeypatch.setattr(module, "find_spec", lambda _: None)
    with pytest.raises(UsageError, match="amqpsniff\\[report\\]"):
        module.begin_bundle.__wrapped__()


@pytest.fixture
def no_bundle(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The cache folder of a user who has made no page yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(module, "begin_bundle", module.begin_bundle.__wrapped__)
    return tmp_path


def test_a_library_that_was_ended_half_way_is_not_taken(
    monkeypatch: pytest.MonkeyPatch, no_bundle: Path
) -> None:
    from amqpsniff.errors import UsageError

    said = "import os, sys; sys.stdout.write('x' * 9); sys.stdout.flush(); os.kill(os.getpid(), 9)"
    monkeypatch.setattr(module, "_BUNDLER", said)
    with pytest.raises(UsageError, match="library does not run: it ended with -9"):
        module.bundle.__wrapped__()
    assert not list(no_bundle.rglob("*.js"))


def test_the_library_is_put_together_once(monkeypatch: pytest.MonkeyPatch, no_bundle: Path) -> None:
    monkeypatch.setattr(module, "_BUNDLER", "print('</script>é', end='')")
    made = module.bundle.__wrapped__()
    assert made == "<\\/script>é"
    monkeypatch.setattr(module, "_BUNDLER", "raise SystemExit(3)")
    assert module.bundle.__wrapped__() == made
    (kept,) = no_bundle.rglob("*.js")
    assert kept.parent.stat().st_mode & 0o077 == 0


def test_a_cache_that_cannot_be_written_stops_nothing(
    monkeypatch: pytest.MonkeyPatch, no_bundle: Path
) -> None:
    (no_bundle / "amqpsniff").write_text("a file where the folder should be")
    monkeypatch.setattr(module, "_BUNDLER", "print('x', end='')")
    assert module.bundle.__wrapped__() == "x"


def test_a_drawing_with_loops_and_many_edges_is_sound() -> None:
    nodes = [Node(("exchange", "queue")[at % 2], [f"n{at}"]) for at in range(40)]
    edges = [Line(a, b, "", 0.5) for a in range(0, 40, 3) for b in range(0, 40, 7)]
    drawn = Drawing([*nodes, Node("consumer", ["x"])], edges, ("exchange", "queue", "consumer"), "")
    made = drawn.svg()
    assert made.count("<rect") == 41
    assert made.count('class="edge') == len(edges)
    assert "nan" not in made
    assert Drawing([], [], ("queue",), "").svg().startswith("<svg")


def test_labels_of_edges_do_not_cover_each_other() -> None:
    """Edges that cross have their middles at one place."""
    nodes = [
        Node("client", ["a"]),
        Node("client", ["b"]),
        Node("queue", ["c"]),
        Node("queue", ["d"]),
    ]
    edges = [Line(start, end, "505 · 176 kB") for start in (0, 1) for end in (2, 3)]
    svg = Drawing(nodes, edges, ["client", "queue"], "T").svg()
    found = re.findall(r'<text x="([\d.]+)" y="([\d.]+)">505', svg)
    places = [(float(x), float(y)) for x, y in found]
    width = len("505 · 176 kB") * LABEL_WIDTH
    assert len(places) == 4
    for (x, y), (other_x, other_y) in combinations(places, 2):
        assert abs(x - other_x) >= width or abs(y - other_y) >= LABEL_HEIGHT - 0.2
