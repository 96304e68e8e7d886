"""A Spark session with the settings this package wants, embedded in the process by default."""

from __future__ import annotations

import os
import sys

from pyspark.sql import SparkSession

DRIVER_MEMORY = "1g"
"""Rows pass through the driver only when they are shown; tasks decode in Python workers, whose
memory is not the JVM's."""


def session(master: str = "local[*]", name: str = "amqpsniff") -> SparkSession:
    """The active session, or a new one on `master` with `format("amqp")` registered.

    Workers run this Python, so that they find the same packages. An embedded session listens on the
    loopback interface only.
    """
    from . import register

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    spark = (
        SparkSession.builder.master(master)
        .appName(name)
        .config("spark.driver.memory", DRIVER_MEMORY)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.execution.pyspark.udf.faulthandler.enabled", "true")
        .getOrCreate()
    )
    register(spark)
    return spark
