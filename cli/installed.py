"""Messages about the installation."""

from __future__ import annotations

import sys
from importlib.util import find_spec


def describe() -> None:
    """Print the compiled modules, and the versions of Python and of the libraries."""
    from amqpsniff.installation import compiled_modules, versions

    compiled, found = compiled_modules()
    print(f"compiled modules: {compiled} of {found}{'' if compiled else SLOW}")
    for name, version in versions():
        print(f"{name}: {version or 'not installed'}")


SLOW = " (everything works, some ten times slower; a C compiler at installation time helps)"


def warn_once_if_slow() -> None:
    """Say once to a person at a terminal that nothing is compiled; then never again."""
    if not sys.stderr.isatty():
        return
    module = find_spec("amqpsniff.columns")
    if module is None or not (module.origin or "").endswith(".py"):
        return
    from contextlib import suppress

    from platformdirs import user_cache_path

    marker = user_cache_path("amqpsniff") / "said-that-it-is-slow"
    if not marker.is_absolute() or marker.exists():
        return
    with suppress(OSError):
        marker.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        marker.touch()
        print(f"amqpsniff: the hot modules are not compiled{SLOW}", file=sys.stderr)
