"""One real Spark session on two local cores for every test of the jobs."""

import os
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.cli.running import Result

Job = Callable[..., Result]

QUICK_JAVA = " -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
"""Spark's classes are loaded without a check of each: two of the eight seconds until it runs."""

QUICK_QUERIES = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "2",
}
"""Each query has a few rows: to plan it twice, and to compile Java for it, takes longer than to run
it. Jobs that tests start as processes have what Spark does by itself."""


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A session on `local[2]` that knows `format("amqp")`, as new ones of it do."""
    pytest.importorskip("pyspark")
    if shutil.which("java") is None:
        pytest.skip("no java")
    from amqpsniff.spark_jobs import lookup, session

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", next(iter(lookup.__path__)), prepend=os.pathsep)
        patch.setattr(session, "BRIEF_JAVA", session.BRIEF_JAVA + QUICK_JAVA)
        made = session.session("local[2]", "tests", brief=True)
    for name, value in QUICK_QUERIES.items():
        made.conf.set(name, value)
    yield made
    made.stop()


@pytest.fixture
def job(spark: Any, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Job:
    """The job of `amqpsniff batch`, run in the session of the tests."""
    from amqpsniff.spark_jobs.batch import main

    monkeypatch.setattr(spark.sparkContext, "stop", lambda: None)

    def run(*arguments: object) -> Result:
        capfd.readouterr()
        code = main(["--master", "local[2]", *map(str, arguments)])
        return Result(code, *capfd.readouterr())

    return run
