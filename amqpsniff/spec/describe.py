"""Finding methods by what a person types: a name, half a name, a class or an id."""

from ..errors import UsageError
from .methods import METHODS, Method

_SUGGESTIONS = 3
"""How many near names an error offers: more do not fit a line."""


def _by_id(wanted: str) -> list[Method] | None:
    """The rows of `60/40`, `60,40` or `60`; None when `wanted` is not written like an id."""
    numbers = tuple(part.strip() for part in wanted.replace(",", "/").split("/"))
    if len(numbers) > 2 or not all(number.isascii() and number.isdigit() for number in numbers):
        return None
    return [row for row in METHODS if _id(row)[: len(numbers)] == numbers]


def _id(row: Method) -> tuple[str, str]:
    return str(row.class_id), str(row.method_id)


def _by_name(wanted: str) -> list[Method]:
    """The rows of `basic.publish`, else of the class `basic`, else of `publish` in any class."""
    for part in ("name", "class_name", "method"):
        rows = [row for row in METHODS if _part(row, part) == wanted]
        if rows:
            return rows
    return []


def _part(row: Method, part: str) -> str:
    return row.name.partition(".")[2] if part == "method" else getattr(row, part)


def _near(wanted: str) -> list[str]:
    import difflib  # costs more than all tables; needed for a typing error only

    words = {word for row in METHODS for word in (row.name, row.class_name, _part(row, "method"))}
    return difflib.get_close_matches(wanted, sorted(words), _SUGGESTIONS)


def describe(name_or_id: str) -> list[Method]:
    """All rows of a method or class, in the order of `METHODS`.

    Takes `basic.publish`, `publish`, the class `basic`, the ids `60/40` and `60`; case and `_` for
    `-` do not matter. Raises UsageError, with the nearest names, when nothing is called that.
    """
    wanted = name_or_id.strip().lower().replace("_", "-")
    rows = _by_id(wanted)
    if rows is None:
        rows = _by_name(wanted)
    if rows:
        return rows
    near = _near(wanted)
    hint = f"did you mean {' or '.join(near)}?" if near else "try basic.publish or 60/40"
    raise UsageError(f"no method or class is called {name_or_id!r}; {hint}")
