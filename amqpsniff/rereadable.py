"""Results that can be read any number of times."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from amqpsniff.errors import UsageError
from amqpsniff.installation import how_to_add

if TYPE_CHECKING:
    import pyarrow as pa

Item = TypeVar("Item")


class Rereadable(ABC, Generic[Item]):
    """A result that every loop reads from its beginning, and of which nothing is kept.

    `next()` goes through one reading of its own, as an iterator would. An input that can be read
    only once (standard input) raises UsageError when it is read again.
    """

    _own: Iterator[Item] | None = None

    @abstractmethod
    def __iter__(self) -> Iterator[Item]:
        """A new reading."""

    def __next__(self) -> Item:
        if self._own is None:
            self._own = iter(self)
        return next(self._own)


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

    def __init__(self, read: Callable[[], Iterator[Item]]) -> None:
        self._read = read

    def __iter__(self) -> Iterator[Item]:
        return self._read()


class TableRows(Rows[Item], Tabular[Item]):
    """The same of a table; `arrow` is made by another function."""

    def __init__(self, read: Callable[[], Iterator[Item]], arrow: Callable[[], pa.Table]) -> None:
        super().__init__(read)
        self._arrow = arrow

    def arrow(self) -> pa.Table:
        """All rows as a `pyarrow.Table`."""
        return self._arrow()
