"""Where the captures are, for every test, and what tests do not depend on: moods of the machine."""

import contextlib
import gc
import os
from collections import Counter, defaultdict
from itertools import count
from pathlib import Path

import pytest

from tests.browser import browser
from tests.live.broker import broker_here, worker
from tests.thorough import EACH, FEW, MANY, rounds

__all__ = ["broker_here", "browser", "worker"]  # fixtures: one browser for a whole run

REPO = Path(__file__).resolve().parent.parent
SAMPLES = REPO / "samples"
CAPTURES = REPO / "tests" / "captures"
OWN = CAPTURES / "own"
# Captures of others, and facts, beside the repository; tests that read them skip without them.
SHARED = Path(os.environ.get("AMQPSNIFF_SHARED", REPO.parent / "shared"))

SHOWN_OTHERWISE = (
    "COLUMNS LINES NO_COLOR FORCE_COLOR PY_COLORS CLICOLOR CLICOLOR_FORCE TTY_COMPATIBLE "
    "TTY_INTERACTIVE GITHUB_ACTIONS TERMINAL_WIDTH PYTHONIOENCODING SSLKEYLOGFILE "
    "AMQPSNIFF_TRACEBACK"
).split()
"""Environment variables that change what is printed, or read; tests that want one set it."""

for _name in SHOWN_OTHERWISE:
    os.environ.pop(_name, None)

with contextlib.suppress(ImportError):
    from hypothesis import HealthCheck, settings

    # a machine that is busy takes longer than Hypothesis expects of any example
    settings.register_profile(
        "patient",
        settings.default,
        max_examples=rounds(100),
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.load_profile("patient")


def own_captures() -> dict[str, Path]:
    """Our captures by name: those of `tests/captures/own`, and samples that are not among them."""
    paths = [*sorted(SAMPLES.glob("*.pcap*")), *sorted(OWN.glob("*.pcap"))]
    return dict(sorted((path.name.partition(".")[0], path) for path in paths))


def own_capture(name: str) -> Path:
    """Our capture of that name."""
    return own_captures()[name]


SHARED_FIXTURES = ("spark", "broker_here", "browser")
"""Fixtures that start what takes seconds to start, and stays."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A whole suite tries a share of the cases of each test; see `tests.thorough`.

    Tests of a shared fixture come first: then one worker of xdist has all of them, and starts it
    once.
    """
    if len(items) >= MANY and EACH > 1:
        sizes = Counter(map(_test_of, items))
        places: defaultdict[str, count[int]] = defaultdict(count)
        left = [
            item
            for item in items
            if next(places[name := _test_of(item)]) % EACH and sizes[name] > FEW
        ]
        config.hook.pytest_deselected(items=left)
        dropped = set(left)
        items[:] = [item for item in items if item not in dropped]

    def place(item: pytest.Item) -> int:
        names = getattr(item, "fixturenames", ())
        return next(
            (at for at, one in enumerate(SHARED_FIXTURES) if one in names), len(SHARED_FIXTURES)
        )

    items.sort(key=place)


def _test_of(item: pytest.Item) -> str:
    """The name of a test without its parameters."""
    return item.nodeid.partition("[")[0]


def pytest_collection_finish() -> None:
    """Tests that were collected are not looked at whenever garbage is collected.

    Garbage is looked for seldom: by Python's own threshold it takes an eighth of the time.
    """
    gc.set_threshold(*THRESHOLD)
    gc.freeze()


def pytest_unconfigure() -> None:
    gc.unfreeze()


THRESHOLD = (7_000, 10, 10)
RUNS_COLLECTED = 20
_runs = count(1)


def pytest_runtest_teardown() -> None:
    """The program looks for garbage more seldom: what it leaves in this process would add up.

    What is left then stays, modules above all, and is not looked at again: `diff` looks for
    garbage in each run.
    """
    if gc.get_threshold() != THRESHOLD:
        gc.set_threshold(*THRESHOLD)
        if next(_runs) % RUNS_COLLECTED == 0:
            gc.collect()
            gc.freeze()


@pytest.fixture(scope="session")
def public_captures() -> Path:
    """Folder of captures from public repositories, listed in its MANIFEST.tsv."""
    path = SHARED / "captures" / "public"
    if not path.is_dir():
        pytest.skip("no captures of others beside the repository (AMQPSNIFF_SHARED)")
    return path


@pytest.fixture(scope="session")
def samples() -> Path:
    """Folder of the captures in the repository."""
    return SAMPLES
