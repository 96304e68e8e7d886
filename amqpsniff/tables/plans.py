"""Plans of DuckDB: whether a statement has to hold rows of a table before it gives any.

A plan is a tree of steps, each an object of JSON with a `name`, and in `children` the steps whose
rows it takes.
"""

from __future__ import annotations

from typing import Any

PASSING = frozenset("FILTER LIMIT PROJECTION STREAMING_LIMIT STREAMING_WINDOW UNION UNNEST".split())
"""Steps of DuckDB's plans that give rows while they take them."""

GATHERING = frozenset(("HASH_GROUP_BY", "PERFECT_HASH_GROUP_BY", "TOP_N", "UNGROUPED_AGGREGATE"))
"""Steps that keep but a few facts of the rows that they take, and give these."""


def holds_rows(step: dict[str, Any]) -> bool:
    """Whether a step of a plan, or one beneath it, holds rows of a table."""
    if any(map(holds_rows, step["children"])):
        return True
    return step["name"].strip() not in PASSING | GATHERING and any(
        map(_gives_rows, step["children"])
    )


def _gives_rows(step: dict[str, Any]) -> bool:
    """Whether a step gives rows of a table, and not only what it, or one beneath, gathers."""
    if step["name"].strip() in GATHERING:
        return False
    return not step["children"] or any(map(_gives_rows, step["children"]))
