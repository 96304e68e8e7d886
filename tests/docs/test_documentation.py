"""The documentation tells the truth: its commands print what it says, its lists are complete."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from amqpsniff.errors import TsharkError
from amqpsniff.tables.schema import EVERYTHING
from tests.docs import findings, options, pictures, recipes, report_tables, sentences, verify
from tests.docs.blocks import REPO, commands, run
from tests.thorough import only_thorough
from tests.waiting import PATIENCE

PAGES = [REPO / "README.md", *sorted((REPO / "docs").glob("*.md"))]
GENERATED = {findings.PAGE, options.PAGE, report_tables.PAGE}
OTHERS = [REPO / name for name in ("ARCHITECTURE.md", "benchmarks/README.md", "samples/README.md")]
WRITTEN = [page for page in (*PAGES, *OTHERS) if page not in GENERATED]
SHOWN = [
    pytest.param(command, output, id=f"{page.name}:{number}")
    for page in PAGES
    for number, (command, output) in enumerate(commands(page.read_text(encoding="utf-8")), 1)
]


def _name(page: Path) -> str:
    return str(page.relative_to(REPO))


@pytest.mark.parametrize(("command", "output"), SHOWN)
def test_command_prints_what_is_shown(command: str, output: str) -> None:
    """Every console block of README and docs, word for word (`python -m tests.docs.blocks`)."""
    if "with tshark" in output and _tshark() not in output:
        pytest.skip("shown with another tshark than the one here, if there is one")
    if " batch " in command:
        pytest.importorskip("pyspark")
        if shutil.which("java") is None:
            pytest.skip("no java")
    assert run(command).rstrip("\n") == output


@cache
def _tshark() -> str:
    """`with tshark 4.0.17`, or what no page says where there is none."""
    from amqpsniff.capture.tshark import find

    try:
        return f"with tshark {find().version_text}"
    except TsharkError:
        return "no tshark"


def test_every_finding_is_explained() -> None:
    """docs/findings.md is what the catalogue says (`python -m tests.docs.findings`)."""
    assert findings.PAGE.read_text(encoding="utf-8") == findings.page()


def test_every_option_is_explained() -> None:
    """docs/options.md is what the commands say (`python -m tests.docs.options`)."""
    assert options.PAGE.read_text(encoding="utf-8") == options.page()


def test_reports_are_documented() -> None:
    """docs/report-tables.md is what the catalogue says (`python -m tests.docs.report_tables`)."""
    assert report_tables.PAGE.read_text(encoding="utf-8") == report_tables.page()


def test_every_known_disagreement_is_explained() -> None:
    """docs/verify.md has the rows of `amqpsniff.opinion.known` (`python -m tests.docs.verify`)."""
    text = verify.PAGE.read_text(encoding="utf-8")
    assert text == verify.page(text)


@pytest.mark.parametrize("table", sorted(EVERYTHING))
def test_every_column_is_explained(table: str) -> None:
    """docs/tables.md names every column of every table."""
    page = (REPO / "docs" / "tables.md").read_text(encoding="utf-8")
    section = page.split(f"## {table}\n")[1].split("\n## ")[0]
    first_cells = " ".join(re.findall(r"^\| (.*?) \|", section, re.MULTILINE))
    assert set(re.findall(r"`(\w+)`", first_cells)) == set(EVERYTHING[table].names)


@pytest.mark.parametrize(
    ("program", "output"), recipes.recipes(recipes.PAGE.read_text(encoding="utf-8"))
)
def test_recipe_prints_what_is_shown(program: str, output: str) -> None:
    """The programs of docs/recipes.md (`python -m tests.docs.recipes`)."""
    if ".df()" in program:
        pytest.importorskip("pandas")
    assert output
    assert recipes.run(program) == output


@pytest.mark.parametrize("page", WRITTEN, ids=_name)
def test_page_is_easy_to_read(page: Path) -> None:
    """No sentence is long (`python -m tests.docs.sentences`)."""
    assert sentences.too_long(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("page", [*PAGES, *OTHERS], ids=_name)
def test_page_says_first_what_it_is_for(page: Path) -> None:
    assert sentences.opening(page.read_text(encoding="utf-8"))


def test_long_sentences_are_found() -> None:
    words = " ".join(["word"] * sentences.LONGEST)
    assert sentences.too_long(f"# {words} more\n\n{words}. `x` {words[5:]}\n- {words}\n") == []
    assert sentences.too_long(f"| {words} more |\n") == [f"{words} more"]
    assert sentences.too_long(f"`a b`, `c` {words}") == [f"CODE {words}"]


def test_links_lead_somewhere() -> None:
    """Relative links of the pages are files of the repository."""
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
            assert Path(target).suffix in {".md", ".svg", ".ipynb", ""}, target


@pytest.mark.parametrize("name", sorted(pictures.PICTURES))
def test_picture_shows_what_is_printed(name: str) -> None:
    """docs/images is what the commands print (`python -m tests.docs.pictures`)."""
    text = (pictures.FOLDER / f"{name}.svg").read_text(encoding="utf-8")
    assert text == pictures.svg(name)
    assert set(re.findall(r"https?://[^\"\s)]+", text)) == {"http://www.w3.org/2000/svg"}
    assert str(REPO) not in text


def test_every_picture_is_made_by_a_command() -> None:
    assert {path.stem for path in pictures.FOLDER.iterdir()} == set(pictures.PICTURES)


@pytest.mark.parametrize("builder", ["dummy", pytest.param("html", marks=only_thorough)])
def test_site_is_built_without_a_warning(builder: str, tmp_path: Path) -> None:
    """As `make docs` does it: every page is in the contents, every link and heading is there.

    The dummy resolves all of it and writes nothing.
    """
    pytest.importorskip("sphinx")
    site = tmp_path / "site"
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", builder, "-c", "docs",
         "-d", str(tmp_path / "doctrees"), ".", str(site)],
        cwd=REPO, capture_output=True, text=True, check=False, timeout=PATIENCE,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    if builder == "dummy":
        return
    assert (site / "index.html").is_file()
    assert (site / "searchindex.js").is_file()
    for page in site.rglob("*.html"):
        loaded = re.findall(
            r'<(?:script|img|link)[^>]*(?:src|href)="(https?:[^"]+)"', page.read_text("utf-8")
        )
        assert loaded == [], f"{page.name} loads from the network"
