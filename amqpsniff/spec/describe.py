"""Finding rows by what a person types: a name, half a name, a class, an id, a code or a topic."""

from ..errors import UsageError
from . import amqp10
from .constants import FRAME_TYPES, PROTOCOL_HEADERS, REPLY_CODES, reply_code
from .methods import METHODS, Method
from .properties import properties_for
from .rows import DIALECTS, Row
from .tags import FIELD_TAGS

SPOKEN = (*DIALECTS, "1.0")
"""The versions that have rows."""

TOPICS: dict[str, tuple[Row, ...]] = {
    "codes": REPLY_CODES,
    "tags": FIELD_TAGS,
    "frames": FRAME_TYPES,
    "headers": PROTOCOL_HEADERS,
    "performatives": amqp10.COMPOSITES,
    "conditions": amqp10.CONDITIONS,
}
"""Rows other than methods, by the word that a person types for them."""

_SUGGESTIONS = 3
"""How many near names an error offers: more do not fit a line."""


def _by_id(query: str) -> list[Method] | None:
    """The rows of `60/40`, `60,40` or `60`; None when `query` is not written like an id."""
    numbers = tuple(part.strip() for part in query.replace(",", "/").split("/"))
    if len(numbers) > 2 or not all(number.isascii() and number.isdigit() for number in numbers):
        return None
    return [row for row in METHODS if _id(row)[: len(numbers)] == numbers]


def _id(row: Method) -> tuple[str, str]:
    return str(row.class_id), str(row.method_id)


def _by_name(query: str) -> list[Method]:
    """The rows of `basic.publish`, else of the class `basic`, else of `publish` in any class."""
    for part in ("name", "class_name", "method"):
        rows = [row for row in METHODS if _part(row, part) == query]
        if rows:
            return rows
    return []


def _part(row: Method, part: str) -> str:
    return row.name.partition(".")[2] if part == "method" else getattr(row, part)


def _near(query: str) -> list[str]:
    import difflib  # costs more than all tables; needed for a typing error only

    words = {word for row in METHODS for word in (row.name, row.class_name, _part(row, "method"))}
    return difflib.get_close_matches(query, sorted(words), _SUGGESTIONS)


def describe(name_or_id: str) -> list[Method]:
    """All rows of a method or class, in the order of `METHODS`.

    Takes `basic.publish`, `publish`, the class `basic`, the ids `60/40` and `60`; case and `_` for
    `-` do not matter. Raises UsageError, with the nearest names, when nothing is called that.
    """
    query = name_or_id.strip().lower().replace("_", "-")
    rows = _by_id(query)
    if rows is None:
        rows = _by_name(query)
    if rows:
        return rows
    near = _near(query)
    hint = f"did you mean {' or '.join(near)}?" if near else "try basic.publish or 60/40"
    raise UsageError(f"no method or class is called {name_or_id!r}; {hint}")


def names() -> dict[str, str]:
    """All names that `look_up` accepts: topics, classes, methods, reply codes with their names."""
    methods = [row.name for row in METHODS]
    classes = [name.partition(".")[0] for name in methods]
    composites = [row.name for row in amqp10.COMPOSITES]
    conditions = [row.name for row in amqp10.CONDITIONS]
    descriptions = dict.fromkeys([*TOPICS, *classes, *methods, *composites, *conditions], "")
    return descriptions | {str(row.code): row.name for row in REPLY_CODES}


def look_up(name: str, dialect: str | None = None) -> list[Row]:
    """The rows that a person means, all of one kind; every method for an empty name.

    Besides what `describe` takes: a reply code, a topic, a composite or condition of AMQP 1.0. With
    a `dialect`, one of `SPOKEN`, only its rows. Raises UsageError if nothing is found.
    """
    rows = _of_10(name) if dialect == "1.0" else _of_any(name)
    if dialect is None:
        return rows
    rows = [row for row in rows if dialect in _dialects(row)]
    if not rows:
        raise UsageError(f"{dialect} has nothing called `{name}`; leave out --dialect")
    return rows


def _of_any(name: str) -> list[Row]:
    word = name.strip().lower()
    if not word:
        return list(METHODS)
    if word in TOPICS:
        return list(TOPICS[word])
    code = reply_code(int(word)) if word.isascii() and word.isdigit() and len(word) == 3 else None
    if code is not None and code.code >= 200:
        return [code]
    try:
        return list(describe(word))
    except UsageError:
        rows = _of_10(word)
        if not rows:
            raise
        return rows


def _of_10(name: str) -> list[Row]:
    """Composites of AMQP 1.0, or other rows with the name."""
    return list(TOPICS.get(name, ()) or amqp10.find(name)) if name else list(amqp10.COMPOSITES)


def _dialects(row: Row) -> tuple[str, ...]:
    of_10 = isinstance(row, amqp10.Composite | amqp10.Condition)
    return getattr(row, "dialects", ("1.0",) if of_10 else DIALECTS)


def plain(value: object) -> object:
    """A row for JSON: objects by column, bytes in hex, without `index`, a detail."""
    if isinstance(value, Row):
        row = {name: plain(getattr(value, name)) for name in value.__slots__ if name != "index"}
        if isinstance(value, Method) and value.content:
            row["properties"] = plain(properties_for(value.dialects[-1], value.class_id))
        return row
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    return value.hex() if isinstance(value, bytes) else value
