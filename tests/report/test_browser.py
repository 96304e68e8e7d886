"""Pages in a real Chromium: two sizes, light and dark, and everything by keyboard."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from amqpsniff.analysis.report_tables import REPORTS
from amqpsniff.archive import Batch
from amqpsniff.archive.batch_reports import make_here, write_page
from amqpsniff.archive.filesystem import Folder
from tests.report.pages import hostile_capture, report
from tests.waiting import PATIENCE

SIZES = {"desktop": (1440, 900), "phone": (390, 844)}
Opened = Callable[..., Any]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Reports by name."""
    folder = tmp_path_factory.mktemp("pages")
    capture = hostile_capture(folder / "hostile.pcap")
    made = {"pika": "pika_mix.pcap", "hostile": capture, "churn": "php_churn.pcap"}
    for name, source in made.items():
        assert report(folder / f"{name}.html", "-q", source).code == 0
    return {name: folder / f"{name}.html" for name in made}


@contextlib.contextmanager
def opening(browser: Any, pages: dict[str, Path]) -> Iterator[Opened]:
    """Opens a page when called, with all charts drawn; afterwards nobody may have complained."""
    said: list[str] = []
    asked: list[str] = []
    views: list[Any] = []

    def open_page(name: str, size: str = "desktop", scheme: str = "light") -> Any:
        width, height = SIZES[size]
        view = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
        view.set_default_timeout(PATIENCE * 1000)
        view.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
        view.on("pageerror", lambda error: said.append(f"error: {error}"))
        view.on("dialog", lambda dialog: (said.append("dialog"), dialog.dismiss()))
        view.on("request", lambda request: asked.append(request.url))
        view.goto(pages[name].as_uri())
        view.wait_for_selector(f"html[data-drawn={scheme}]")
        views.append(view)
        return view

    yield open_page
    for view in views:
        assert view.locator(".chart.failed").count() == 0
        view.close()
    assert said == []
    assert asked == [url for url in asked if url in {path.as_uri() for path in pages.values()}]


@pytest.fixture
def opened(browser: Any, pages: dict[str, Path]) -> Iterator[Opened]:
    """Opens pages for one test."""
    with opening(browser, pages) as open_page:
        yield open_page


@pytest.fixture(scope="module")
def desk(browser: Any, pages: dict[str, Path]) -> Iterator[Any]:
    """One page for all tests that leave nothing filtered."""
    with opening(browser, pages) as open_page:
        yield open_page("pika")


@pytest.mark.parametrize(
    ("name", "size", "scheme"),
    [("pika", "desktop", "light"), ("pika", "phone", "dark"), ("hostile", "phone", "light")],
)
def test_page_fits(desk: Any, opened: Opened, name: str, size: str, scheme: str) -> None:
    view = desk if size == "desktop" else opened(name, size, scheme)
    width = SIZES[size][0]
    assert view.evaluate("document.documentElement.scrollWidth") <= width
    for place in view.locator("section, .chart").all():
        box = place.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width + 0.5
    if name == "pika":
        assert view.locator(".chart").first.bounding_box()["y"] < 1.5 * SIZES[size][1]
        assert view.locator("details.narrow[open]").count() == (size == "desktop")
    number = view.locator(".chart svg").count()
    assert number == view.locator(".chart").count() > 5
    back = view.evaluate("getComputedStyle(document.body).backgroundColor")
    brightness = sum(map(int, back.strip("rgb()").split(","))) / 3
    assert (brightness < 64) == (scheme == "dark")
    for place in view.locator(".chart").all():  # legends are whole
        box = place.bounding_box()
        for text in place.locator(".role-legend text").all():
            word = text.bounding_box()
            assert word["x"] + word["width"] <= box["x"] + box["width"]


def _first_tab_skips_to_the_content(view: Any) -> None:
    view.keyboard.press("Tab")
    link = view.locator(".skip")
    assert link.bounding_box()["x"] >= 0
    outline = link.evaluate("one => getComputedStyle(one).outlineStyle")
    assert outline != "none"
    view.keyboard.press("Enter")
    assert view.evaluate("document.activeElement.id") == "content"


def _columns(view: Any, caption: str, column: int) -> list[str]:
    rows = view.locator(f'.table[aria-label="{caption}"] tbody tr:not([hidden])')
    return [row.locator("td").nth(column).inner_text() for row in rows.all()]


def test_table_is_sorted_by_keyboard(desk: Any) -> None:
    header = desk.locator('.table[aria-label="Methods"] th').nth(0)
    header.locator("button").focus()
    desk.keyboard.press("Enter")
    assert header.get_attribute("aria-sort") == "ascending"
    names = _columns(desk, "Methods", 0)
    assert names == sorted(names)
    desk.keyboard.press("Space")
    assert header.get_attribute("aria-sort") == "descending"
    assert _columns(desk, "Methods", 0) == sorted(names, reverse=True)
    desk.keyboard.press("Tab")
    desk.keyboard.press("Enter")
    assert header.get_attribute("aria-sort") == "none"
    times = [int(text.replace(",", "")) for text in _columns(desk, "Methods", 1)]
    assert times == sorted(times, reverse=True)


def test_table_is_filtered_by_keyboard(desk: Any) -> None:
    desk.get_by_label("Filter Methods").focus()
    desk.keyboard.type("queue bind")
    assert set(_columns(desk, "Methods", 0)) == {
        "queue.bind", "queue.bind-ok", "queue.unbind", "queue.unbind-ok"
    }  # fmt: skip
    block = desk.locator(".sortable", has=desk.get_by_label("Filter Methods"))
    assert block.locator("output").inner_text().startswith("4 of ")
    desk.get_by_label("Filter Methods").fill("")


def test_conversation_is_chosen_by_keyboard(desk: Any) -> None:
    view = desk
    view.locator("#conversation").focus()
    first = view.locator("#peers span").nth(0).inner_text()
    number = view.locator("#events li").count()
    assert number > 50
    view.keyboard.press("ArrowDown")
    assert view.locator("#peers span").nth(0).inner_text() != first
    assert 0 < view.locator("#events li").count() < 20
    assert view.locator("#events li.server").count() > 0
    connections = view.locator('.table[aria-label="Connections"]')
    connections.locator("a[data-conversation='7f298e1bc377911e']").focus()
    view.keyboard.press("Enter")
    assert view.locator("#conversation").input_value() == "7f298e1bc377911e"
    assert "43700" in view.locator("#peers").inner_text()


def test_findings_unfold_by_keyboard(desk: Any) -> None:
    before = desk.locator("details.finding[open]").count()
    finding = desk.locator("details.finding:not([open])").first
    finding.locator("summary").first.focus()
    desk.keyboard.press("Enter")
    assert desk.locator("details.finding[open]").count() == before + 1


def test_a_line_leads_to_its_finding(desk: Any) -> None:
    line = desk.locator("li.line a:visible").nth(1)
    line.focus()
    desk.keyboard.press("Enter")
    found = desk.locator(line.get_attribute("href"))
    assert found.evaluate("one => one.open")
    desk.wait_for_function("id => document.querySelector(id).getBoundingClientRect().top < 800",
                           arg=line.get_attribute("href"))  # fmt: skip


def test_findings_are_searched_and_chosen_by_severity(desk: Any) -> None:
    assert desk.locator("li.line[data-severity=warning]").count() > 0
    desk.locator("#severity").select_option("error")
    shown = desk.locator("li.line:not([hidden])")
    assert {one.get_attribute("data-severity") for one in shown.all()} == {"error"}
    desk.locator("#severity").select_option("")
    desk.locator("#find").fill("declaration-mismatch durable")
    assert "declaration-mismatch" in shown.first.inner_text()
    assert desk.locator(".find output").inner_text().startswith(f"{shown.count()} of ")
    assert shown.count() < desk.locator("li.line").count()
    desk.locator("#find").fill("")


def test_page_is_there_without_its_script(browser: Any, pages: dict[str, Path]) -> None:
    context = browser.new_context(java_script_enabled=False)
    view = context.new_page()
    view.set_default_timeout(PATIENCE * 1000)
    view.goto(pages["churn"].as_uri())
    assert "AMQP connections were seen" in view.locator("#story").inner_text()
    assert view.locator("#connections tbody tr").count() > 5
    assert "need JavaScript" in view.locator("main noscript").inner_text()
    for dead in (".charts", ".choose", ".lifelines", ".filter", "#theme"):
        assert not view.locator(dead).nth(0).is_visible()
    context.close()


def test_regions_have_names_of_their_own(desk: Any) -> None:
    names = [one.get_attribute("aria-label") for one in desk.locator("[role=region]").all()]
    assert len(names) == len(set(names)) > 10


def test_colours_change_by_keyboard_and_are_remembered_and_paper_is_light(opened: Opened) -> None:
    """And the first key leads past the menu, and paper has everything unfolded."""
    view = opened("pika", scheme="dark")
    _first_tab_skips_to_the_content(view)
    view.locator("#theme").focus()
    view.keyboard.press("Enter")
    view.wait_for_selector("html[data-drawn=light]")
    assert view.locator("#theme").inner_text() == "Dark"
    view.reload()  # what was chosen is not the system's
    view.wait_for_selector("html[data-drawn=light]")
    view.locator("#theme").focus()
    view.keyboard.press("Enter")
    view.wait_for_selector("html[data-drawn=dark]")
    assert view.locator("#theme").inner_text() == "Light"
    folded = view.locator("details:not([open])").count()
    assert folded
    view.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert view.locator("details:not([open])").count() == 0
    view.emulate_media(media="print")
    text = view.evaluate("getComputedStyle(document.body).color")
    assert sum(map(int, text.strip("rgb()").split(","))) / 3 < 64
    drawn = view.evaluate("getComputedStyle(document.querySelector('.chart svg')).filter")
    assert drawn.startswith("invert")
    for table in view.locator("#connections table").all():
        box = table.bounding_box()
        assert box["x"] + box["width"] <= 1440
    view.evaluate("dispatchEvent(new Event('afterprint'))")
    assert view.locator("details:not([open])").count() == folded


def test_policy_forbids_other_scripts_and_the_network(browser: Any, pages: dict[str, Path]) -> None:
    view = browser.new_page()
    view.set_default_timeout(PATIENCE * 1000)
    view.goto(pages["churn"].as_uri())
    ran = view.evaluate(
        """() => {
            const script = document.createElement("script");
            script.textContent = "window.ran = true";
            document.body.append(script);
            return window.ran === true;
        }"""
    )
    assert not ran
    asked = "fetch('http://127.0.0.1:9/').then(() => 'answered', () => 'refused')"
    assert view.evaluate(asked) == "refused"
    blocked = (
        "new Promise(done => { document.addEventListener('securitypolicyviolation', "
        "event => done(event.effectiveDirective)); new Image().src = 'http://127.0.0.1:9/x'; })"
    )
    assert view.evaluate(blocked) == "img-src"
    view.close()


def test_the_page_of_a_batch_without_redeliveries_can_be_scrolled(
    browser: Any, samples: Path, tmp_path: Path
) -> None:
    Batch([str(samples / "php_churn.pcap")], str(tmp_path), links=True, frameworks=True).run()
    reports = [make_here(Folder(str(tmp_path)), name, 20) for name in REPORTS]
    assert not next(one for one in reports if one.report.name == "redelivery").table.num_rows
    write_page(Folder(str(tmp_path)), reports)
    with opening(browser, {"batch": tmp_path / "report.html"}) as open_page:
        view = open_page("batch")
        heights = view.evaluate(
            "[document.documentElement.scrollHeight, ...[...document.querySelectorAll('svg')]"
            ".map(one => one.getBoundingClientRect().height)]"
        )
        boxes = view.evaluate("[...document.querySelectorAll('svg')].map(one => one.outerHTML)")
    assert len(heights) > 5
    assert max(heights) < 20_000
    assert [box for box in boxes if "e+" in box[:500] or "NaN" in box or "Infinity" in box] == []
