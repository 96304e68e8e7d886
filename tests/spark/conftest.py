"""One real Spark session on two local cores for every test of the jobs."""

import os
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.cli.running import Result

Job = Callable[..., Result]


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A session on `local[2]` that knows `format("amqp")`, as new ones of it do."""
    pytest.importorskip("pyspark")
    if shutil.which("java") is None:
        pytest.skip("no java")
    from amqpsniff.spark_jobs import lookup
    from amqpsniff.spark_jobs.session import session

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", next(iter(lookup.__path__)), prepend=os.pathsep)
        made = session("local[2]", "tests", brief=True)
    made.conf.set("spark.sql.shuffle.partitions", "2")
    yield made
    made.stop()


@pytest.fixture
def job(spark: Any, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Job:
    """The job of `amqpsniff batch`, run in the session of the tests."""
    from amqpsniff.spark_jobs.batch import main

    monkeypatch.setattr(spark.sparkContext, "stop", lambda: None)

    def run(*arguments: object) -> Result:
        capfd.readouterr()
        code = main([*map(str, arguments), "--master", "local[2]"])
        return Result(code, *capfd.readouterr())

    return run
