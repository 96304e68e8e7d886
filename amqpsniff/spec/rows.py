"""Rows of the protocol tables.

A row is written once, when its table is imported, and never changes. The classes are plain slots
classes because importing `typing` or `dataclasses` would cost more time than parsing all tables.
"""

DIALECTS = ("0-8", "0-9", "0-9-1")
"""The dialects whose frames and methods the tables describe, oldest first."""

SIDES = ("client", "server")
"""The two sides of a connection, as columns name them."""

_LETTERS = {
    "8": ("0-8",),
    "9": ("0-9",),
    "1": ("0-9-1",),
    "89": ("0-8", "0-9"),
    "91": ("0-9", "0-9-1"),
    "891": DIALECTS,
}

_assign = object.__setattr__


class Row:
    """An immutable row; its columns are its slots. Compares, hashes and pickles by value.

    Raises TypeError when made of more or fewer values than it has columns.
    """

    __slots__: tuple[str, ...] = ()

    def __init__(self, *values: object) -> None:
        columns = self.__slots__
        if len(values) != len(columns):
            raise TypeError(f"{type(self).__name__} takes {len(columns)} values")
        for column, value in zip(columns, values):  # noqa: B905 (checked above)
            _assign(self, column, value)

    def _values(self) -> tuple[object, ...]:
        return tuple(getattr(self, column) for column in self.__slots__)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} rows do not change")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} rows do not change")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Row) or type(other) is not type(self):
            return NotImplemented
        return self is other or self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return type(self), self._values()

    def __repr__(self) -> str:
        columns = (f"{column}={getattr(self, column)!r}" for column in self.__slots__)
        return f"{type(self).__name__}({', '.join(columns)})"


def columns(names: str) -> tuple[str, ...]:
    """The slots of a row class: column names in the order in which its table writes them."""
    return tuple(names.split())


def dialects_of(letters: str) -> tuple[str, ...]:
    """The dialects that the letters of a table's first column stand for: `891` is all three."""
    return _LETTERS[letters]
