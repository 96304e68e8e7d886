"""Arguments of calls compared with the types that they are declared with.

Programs pass lists in place of a text, and numbers in place of a list. The check uses the type
annotations of the dataclass, so no type is written twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from amqpsniff.errors import UsageError


def check_types(arguments: Any) -> None:
    """Raise UsageError for a field of a dataclass that has another type than it is declared with.

    The items of a list are not checked.
    """
    kind: Any = type(arguments)
    for name, kinds in _declared(kind):
        value = getattr(arguments, name)
        classes = tuple(get_origin(kind) or kind for kind in kinds)
        if float in classes:
            classes += (int,)
        is_truth = isinstance(value, bool) and bool not in classes
        if is_truth or not isinstance(value, classes):
            raise UsageError(f"{name} is {value!r}; it is of the type {_listed(kinds)}")


def several(name: str, given: Any, *kinds: Any) -> tuple[Any, ...]:
    """One value, or those of a list; raises UsageError for one that is not of these classes."""
    is_one = isinstance(given, (*kinds, str)) or not isinstance(given, Iterable)
    values = (given,) if is_one else tuple(given)
    for value in values:
        if not isinstance(value, kinds):
            raise UsageError(f"{name}: {value!r} is not of the type {_listed(kinds)}")
    return values


@cache
def _declared(kind: type) -> list[tuple[str, tuple[Any, ...]]]:
    """The fields of a dataclass, each with the types that it may have."""
    hints = get_type_hints(kind).items()
    unions = (Union, UnionType)
    return [
        (name, get_args(hint) if get_origin(hint) in unions else (hint,)) for name, hint in hints
    ]


def _listed(kinds: Iterable[Any]) -> str:
    """Types as a programmer writes them: `str, int or Iterable[str]`."""
    *names, last = [
        (str(kind) if get_origin(kind) else kind.__name__).rpartition(".")[2]
        for kind in kinds
        if kind is not type(None)
    ]
    return f"{', '.join(names)} or {last}" if names else last
