"""A Spark session with the settings this package wants, embedded in the process by default."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from amqpsniff.errors import AmqpsniffError

DRIVER_MEMORY = "1g"
"""Rows pass through the driver only when they are shown; tasks decode in Python workers, whose
memory is not the JVM's."""

EMBEDDED = "local[*]"

JAVA_MISSING = (
    "Spark needs Java 17 or later, and none was found; install it "
    '("apt install default-jre-headless", "dnf install java-21-openjdk-headless", '
    '"brew install openjdk") or set JAVA_HOME'
)


class NoJava(AmqpsniffError):
    """There is no Java to start Spark with."""


def require_java() -> None:
    """Raise NoJava unless there is a Java that Spark would find."""
    home = os.environ.get("JAVA_HOME")
    if home and not (Path(home) / "bin" / "java").exists():
        raise NoJava(f"JAVA_HOME is {home}, where there is no bin/java; {JAVA_MISSING}")
    if not home and shutil.which("java") is None:
        raise NoJava(JAVA_MISSING)


def session(master: str | None = EMBEDDED, name: str = "amqpsniff") -> SparkSession:
    """The active session, or a new one on `master` with `format("amqp")` registered.

    Null for the master that spark-submit or the configuration names. Workers run this Python unless
    PYSPARK_PYTHON says otherwise, so that they find the same packages. An embedded session listens
    on the loopback interface only. Raises NoJava.
    """
    from . import register

    if "PYSPARK_GATEWAY_PORT" not in os.environ:  # set by spark-submit, which brought its own
        require_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name)
    if master is not None:
        builder = builder.master(master)
        if master.startswith("local"):
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
            builder = builder.config("spark.ui.enabled", "false")
    spark = (
        builder.config("spark.driver.memory", DRIVER_MEMORY)
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.execution.pyspark.udf.faulthandler.enabled", "true")
        .getOrCreate()
    )
    register(spark)
    return spark
