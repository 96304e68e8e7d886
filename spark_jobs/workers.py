"""The process that Python workers are forked from; Spark runs it in place of `pyspark.daemon`.

Spark puts PySpark first on the path of workers, as a zip. Modules from a zip are compiled again by
every process, which is 0.35 s of the 0.4 s that PySpark takes to import. The zip of an installed
PySpark is left out, since the same modules stand next to it, compiled. Modules that every worker
needs are imported here, once. A process that is forked should have one thread: Arrow is told to
start none, and is not imported here if it would import NumPy, which starts some.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import os
import sys
from collections.abc import Iterable
from pathlib import Path

from amqpsniff.process_tuning import ARROW_MEMORY, raise_gc_threshold, take_large_pages

NEEDED = (
    "pyspark.worker",
    "amqpsniff.pipeline",
    "amqpsniff.findings.catalogue",
    "amqpsniff.session.event_logs",
    "amqpsniff.session.rules.registry",
)
"""Modules that start no thread."""

ARROW = (
    "pyarrow.compute",
    "pyarrow.parquet",
    "amqpsniff.archive.task_io",
    "amqpsniff.tables.export",
)
"""Modules with Arrow in them: 0.09 s of a processor in each worker that imports them by itself."""

NO_THREAD = ("JE_ARROW_MALLOC_CONF", "background_thread:false")
"""Lets Arrow's second allocator, which nothing here uses, do without a thread of its own."""


def path_without_zips(path: Iterable[str]) -> list[str]:
    """The path without the zips of a PySpark that is on it as installed.

    The zips of a PySpark that is not installed stay.
    """
    entries = list(path)
    remaining = []
    for entry in entries:
        zipped = Path(entry)
        installed = zipped.parent.parent.parent  # of pyspark/python/lib/pyspark.zip
        if (
            zipped.suffix == ".zip"
            and zipped.name.startswith(("pyspark", "py4j"))
            and (installed / "worker.py").exists()
            and str(installed.parent) in entries
        ):
            continue
        remaining.append(entry)
    return remaining


def main() -> None:
    """Fork workers when Spark asks for them."""
    sys.path[:] = path_without_zips(sys.path)
    prepare()
    from pyspark import daemon

    daemon.manager()


def prepare() -> None:
    """Import the modules that workers need and that start no thread.

    Workers do not look for garbage among them, and do so as seldom as the command line.
    """
    name, value = NO_THREAD
    os.environ[name] = ",".join(filter(None, (os.environ.get(name), value)))
    os.environ.setdefault(*ARROW_MEMORY)
    alone = importlib.util.find_spec("numpy") is None
    for module in (*NEEDED, *ARROW) if alone else NEEDED:
        importlib.import_module(module)
    raise_gc_threshold()
    take_large_pages()
    gc.freeze()


if __name__ == "__main__":
    main()
