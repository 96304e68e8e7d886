"""One HTML page: nothing is loaded from anywhere, so it can be mailed and kept.

Scripts are the two that come with the product, named by their hash in the page's security policy:
whatever else a text may look like, a browser does not run it. Data stands in blocks of JSON in
which no character can end a script.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from html import escape
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from amqpsniff.child_processes import safe_environment
from amqpsniff.errors import UsageError
from amqpsniff.installation import how_to_add

VEGA_LITE = "https://vega.github.io/schema/vega-lite/v6.json"
"""The version of Vega-Lite that specifications are written for; nothing is loaded from there."""

NOTHING = "No chart: there is nothing to draw."

_BUNDLER = """
import sys
from vl_convert import javascript_bundle
sys.stdout.buffer.write(javascript_bundle("window.vegaEmbed = vegaEmbed;").encode())
"""

_POLICY = (
    "default-src 'none'; script-src '{}'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'"
)
"""Styles may stand in the page because the charts' library writes some; no text of ours does."""

_DEAD = (
    ".charts, .choose, .lifelines, .filter, .find { display: none; } "
    "th button::after { content: none; }"
)
"""Style that hides parts of the page that need the script."""

_SCRIPTLESS = (
    '<noscript><p class="about">Charts, conversations, sorting and filters need JavaScript, which '
    "is off; all else is here.</p></noscript>"
)


class Page:
    """A page, to which sections are added one by one.

    Args:
        title: Of the page.
        about: One line under it.
    """

    def __init__(self, title: str, about: str) -> None:
        self._title = title
        self._about = about
        self._sections: list[tuple[str, str, str]] = []
        self._charts: list[dict[str, Any]] = []
        self._data: dict[str, Any] = {}

    def chart(self, spec: dict[str, Any]) -> str:
        """A place for a chart, given as a Vega-Lite specification."""
        self._charts.append({"$schema": VEGA_LITE, **spec})
        return f'<div class="chart" data-chart="{len(self._charts) - 1}"></div>'

    def charts(self, specs: Iterable[dict[str, Any] | None], *, across: int = 2) -> str:
        """Places for charts, beside each other where there is room, one to three `across`.

        Those that are None have nothing to draw: where all are, a sentence stands for them.
        """
        all_specs = list(specs)
        places = [self.chart(spec) for spec in all_specs if spec is not None]
        if not places:
            return f'<p class="none">{NOTHING}</p>' if all_specs else ""
        number = min(across, len(places))
        return f'<div class="charts across{number}">{"".join(places)}</div>'

    def data(self, name: str, value: Any) -> None:
        """Give the page's script a value, as JSON."""
        self._data[name] = value

    def section(self, key: str, heading: str, *parts: str, about: str = "") -> None:
        """A section of the page; `parts` are HTML, the other arguments text."""
        note = f'<p class="about">{escape(about)}</p>' if about else ""
        content = f"<h2>{escape(heading)}</h2>{note}{''.join(parts)}"
        self._sections.append((key, heading, content))

    def html(self) -> str:
        """The page; raises UsageError when the package with the charts' library is missing."""
        script = f"{bundle()}\n{_asset('page.js')}"
        links = "".join(
            f'<a href="#{escape(key)}">{escape(heading)}</a>' for key, heading, _ in self._sections
        )
        sections = "".join(
            f'<section id="{escape(key)}">{inside}</section>' for key, _, inside in self._sections
        )
        values = {"charts": self._charts, **self._data}
        return "\n".join(
            [
                "<!DOCTYPE html>",
                '<html lang="en"><head><meta charset="utf-8">',
                f'<meta http-equiv="Content-Security-Policy" content="{_policy(script)}">',
                '<meta name="viewport" content="width=device-width, initial-scale=1">',
                '<meta name="color-scheme" content="light dark">',
                '<meta name="referrer" content="no-referrer">',
                f"<title>{escape(self._title)}</title>",
                f"<style>{_asset('page.css')}</style>",
                f"<noscript><style>{_DEAD}</style></noscript></head><body>",
                '<a class="skip" href="#content">Skip to the content</a>',
                (
                    f'<header><div class="title"><h1>{escape(self._title)}</h1>'
                    '<button type="button" id="theme" hidden>Dark</button></div>'
                    f"<p>{escape(self._about)}</p></header>"
                ),
                f'<nav aria-label="Sections">{links}</nav>',
                f'<main id="content" tabindex="-1">{_SCRIPTLESS}{sections}</main>',
                f'<script type="application/json" id="data">{in_script(values)}</script>',
                f'<script type="module">{script}</script>',
                "</body></html>",
                "",
            ]
        )


@cache
def begin_bundle() -> subprocess.Popen[bytes] | Path:
    """Have the charts' library put together by a process of its own; `bundle` waits for it.

    It takes two seconds and 100 MB of memory, which are spent while captures are read. The
    result is kept in the user's cache folder: if that file exists, its path is returned. Raises
    UsageError when the package that does it is missing.
    """
    if find_spec("vl_convert") is None:
        raise UsageError(f"charts need the package vl-convert-python: {how_to_add('report')}")
    cached = _cached_bundle()
    if cached is not None and cached.exists():
        return cached
    return subprocess.Popen(
        [sys.executable, "-c", _BUNDLER],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=safe_environment(),
    )


@cache
def bundle() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script; raises UsageError when they are not there."""
    process = begin_bundle()
    if isinstance(process, Path):
        return process.read_text(encoding="utf-8")
    encoded, complaint = process.communicate()
    if process.returncode or not encoded:  # of one that was ended there may be a part
        reason = complaint.decode(errors="replace").strip().rpartition("\n")[2]
        raise UsageError(
            f"the charts' library does not run: {reason or f'it ended with {process.returncode}'}"
        )
    script = encoded.decode().replace("</script", "<\\/script").replace("<!--", "<\\!--")
    with suppress(OSError):  # a page can be made without the cache
        _keep_bundle(script)
    return script


def _cached_bundle() -> Path | None:
    """The file that keeps the bundle of the installed version; None for a user without a home."""
    from platformdirs import user_cache_path

    folder, package = user_cache_path("amqpsniff"), find_spec("vl_convert")
    assert package is not None
    assert package.origin is not None
    # `importlib.metadata` says the version too, and takes 10 ms to import
    for dist_info in Path(package.origin).parents[1].glob("vl_convert_python-*.dist-info"):
        if folder.is_absolute():  # a relative one may hold anything: it is the current folder's
            return folder / f"charts-{dist_info.stem.rpartition('-')[2]}.js"
    return None


def _keep_bundle(script: str) -> None:
    """Write the bundle to its file; another process sees it whole or not at all."""
    path = _cached_bundle()
    if path is None:
        return
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with TemporaryDirectory(dir=path.parent) as folder:
        file = Path(folder, path.name)
        file.write_text(script, encoding="utf-8")
        file.replace(path)


def in_script(value: Any) -> str:
    """A value as JSON that may stand in a script: no character of it can end that."""
    try:
        text = json.dumps(value, separators=(",", ":"), default=str, allow_nan=False)  # ASCII only
    except ValueError:  # JSON has no infinity, and one would break the whole page
        text = json.dumps(_finite(value), separators=(",", ":"), default=str)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _finite(value: Any) -> Any:
    """The value with null in place of numbers that JSON cannot hold."""
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _policy(script: str) -> str:
    digest = hashlib.sha256(script.encode()).digest()
    return _POLICY.format(f"sha256-{base64.b64encode(digest).decode()}")


@cache
def _asset(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")
