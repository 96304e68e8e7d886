"""One real Spark session on two local cores for every test of the jobs."""

import shutil
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A session on `local[2]` that knows `format("amqp")`."""
    pytest.importorskip("pyspark")
    if shutil.which("java") is None:
        pytest.skip("no java")
    from amqpsniff.spark_jobs.session import session

    made = session("local[2]", "tests", brief=True)
    made.conf.set("spark.sql.shuffle.partitions", "2")
    yield made
    made.stop()
