"""What runs of the command line import, for the process that they are forked from."""

import importlib
import pkgutil
from collections.abc import Iterable, Iterator

import amqpsniff

OTHERS = ("pyarrow.parquet", "duckdb", "rich.console", "rich.progress", "rich.table")
UNWANTED = ("amqpsniff.__main__", "amqpsniff.spark_jobs", "amqpsniff.pytest_plugin")


def modules_of(path: Iterable[str], package: str) -> Iterator[str]:
    """Names of the modules of a package and of those in it."""
    for one in pkgutil.iter_modules(path, f"{package}."):
        if one.name not in UNWANTED:
            yield one.name
            if one.ispkg:
                yield from modules_of(importlib.import_module(one.name).__path__, one.name)


for name in (*modules_of(amqpsniff.__path__, "amqpsniff"), *OTHERS):
    importlib.import_module(name)
