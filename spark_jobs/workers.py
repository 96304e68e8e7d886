"""The process that Python workers are forked from; Spark runs it in place of `pyspark.daemon`.

Spark puts PySpark on the path of workers as a zip, before all else. What comes from a zip is
compiled anew by every process, which is 0.35 s of the 0.4 s that PySpark takes to import. The zip
that is part of an installed PySpark has nothing that stands not beside it compiled: it is left out.
Modules of the engine are imported here, once; not Arrow, which would start threads before the fork.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path


def path_without_zips(path: Iterable[str]) -> list[str]:
    """The path without the zips of a PySpark that is on it as installed.

    Those of a PySpark that is installed nowhere stay.
    """
    given = list(path)
    left = []
    for one in given:
        zipped = Path(one)
        installed = zipped.parent.parent.parent  # of pyspark/python/lib/pyspark.zip
        if (
            zipped.suffix == ".zip"
            and zipped.name.startswith(("pyspark", "py4j"))
            and (installed / "worker.py").exists()
            and str(installed.parent) in given
        ):
            continue
        left.append(one)
    return left


def main() -> None:
    """Wait for orders to fork a worker."""
    sys.path[:] = path_without_zips(sys.path)
    from pyspark import daemon

    import amqpsniff.pipeline  # noqa: F401 (workers need it at once)

    daemon.manager()


if __name__ == "__main__":
    main()
