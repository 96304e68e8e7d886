"""A browser for tests: Chromium without a window, where it is installed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from tests.waiting import PATIENCE

NAMES = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A running Chromium; tests skip without one."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip("no chromium on this machine (apt-get install chromium)")
    with playwright.sync_playwright() as running:
        # as root it has no sandbox; the pages are ours
        started = running.chromium.launch(
            executable_path=program, args=["--no-sandbox"], timeout=PATIENCE * 1000
        )
        yield started
        started.close()
