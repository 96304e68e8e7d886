"""Results that can be read any number of times."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from amqpsniff.errors import UsageError
from amqpsniff.html_repr import ROWS_SHOWN, grid
from amqpsniff.installation import how_to_add

if TYPE_CHECKING:
    import pyarrow as pa

Item = TypeVar("Item")


class Rereadable(ABC, Generic[Item]):
    """A result that every loop reads from its beginning; nothing is kept in memory.

    `next()` continues a reading of its own, like an iterator. An input that can be read
    only once (standard input) raises UsageError when it is read again.
    """

    _iterator: Iterator[Item] | None = None

    @abstractmethod
    def __iter__(self) -> Iterator[Item]:
        """A new reading."""

    def __next__(self) -> Item:
        if self._iterator is None:
            self._iterator = iter(self)
        return next(self._iterator)


class Tabular(Rereadable[Item]):
    """Rows that are a table too; each of these methods reads the input once."""

    @abstractmethod
    def arrow(self) -> pa.Table:
        """All rows as a `pyarrow.Table`."""

    def df(self) -> Any:
        """All rows as a data frame of pandas, with Arrow's types: a null makes no float of a
        number. Raises UsageError without pandas (extra `dataframes`).
        """
        try:
            import pandas as pd
        except ImportError:
            raise _missing("pandas") from None
        return self.arrow().to_pandas(types_mapper=pd.ArrowDtype)

    def pl(self) -> Any:
        """All rows as a polars data frame. Raises UsageError without polars: extra `dataframes`."""
        try:
            import polars as pl
        except ImportError:
            raise _missing("polars") from None
        return pl.from_arrow(self.arrow())


def _missing(library: str) -> UsageError:
    return UsageError(f"there is no {library} here; {how_to_add('dataframes')}")


class Rows(Rereadable[Item]):
    """Rows that a function reads again for each loop."""

    def __init__(self, name: str, read: Callable[[], Iterator[Item]]) -> None:
        self._name = name
        self._read = read

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._name}>"

    def __iter__(self) -> Iterator[Item]:
        return self._read()


class TableRows(Rows[Item], Tabular[Item]):
    """The same of a table, whose items have an `as_dict`; `arrow` is made by another function.

    With `once` the input can be read only once, and so is not read to be shown.
    """

    def __init__(
        self,
        name: str,
        read: Callable[[], Iterator[Item]],
        arrow: Callable[[], pa.Table],
        *,
        once: bool,
    ) -> None:
        super().__init__(name, read)
        self._arrow = arrow
        self._once = once

    def _repr_html_(self) -> str:
        """For notebooks: the first rows, and the columns that have a value in one of them."""
        first: list[Any] = [] if self._once else list(islice(self._read(), ROWS_SHOWN + 1))
        rows = [row.as_dict() for row in first]
        names = [
            name for name in (rows[0] if rows else ()) if any(row[name] is not None for row in rows)
        ]
        shown = ([row[name] for name in names] for row in rows[:ROWS_SHOWN])
        return grid(self._name, names, shown, more=self._once or len(rows) > ROWS_SHOWN)

    def arrow(self) -> pa.Table:
        """All rows as a `pyarrow.Table`."""
        return self._arrow()
