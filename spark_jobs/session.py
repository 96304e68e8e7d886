"""A Spark session with the settings of this package, embedded in the process by default."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from amqpsniff.child_processes import require_room
from amqpsniff.errors import AmqpsniffError, UsageError
from amqpsniff.tables.export import RISING

DRIVER_MEMORY = "1g"
"""Only rows that are shown pass through the driver; tasks decode in Python workers, whose memory is
not the JVM's."""

EMBEDDED = "local[*]"

LOOPBACK = "127.0.0.1"

EMBEDDED_JAVA = (
    "-XX:+UseSerialGC "
    "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"
)
"""Options of the Java of an embedded Spark: its memory is small, and workers need the processors.
Arrow does not check bounds at every value: batches come from our workers alone (two million frames
into the JVM: 1.3 processor seconds of it instead of 1.5)."""

PARQUET = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "parquet.writer.version": "PARQUET_2_0",
    **{f"parquet.enable.dictionary#{name}": "false" for name in RISING},
}
"""Spark's settings for Parquet, those of the direct writer: times as numbers, and rising columns as
differences, without trying a dictionary (1.2 million frames: 3.4 processor seconds of the JVM
and 8.5 MB instead of 4.0 and 16.9)."""

BRIEF_JAVA = f"{EMBEDDED_JAVA} -XX:TieredStopAtLevel=1"
"""Options for a JVM that lives for seconds and handles few rows: its compiler stops at the first
tier (measured until the second job is done: 4.3 processor seconds instead of 7.9). With all rows
passing through the JVM this costs more than it saves (writing two million frames, warm: 10
processor seconds of the JVM instead of 6)."""

ATTEMPTS = 4
"""Attempts of an embedded Spark at a task, the same as on clusters."""

_LOCAL = re.compile(r"^local\[(\*|\d+)\]$")

_MASTER = re.compile(
    r"yarn$|spark://.|k8s://.|local$|local\[(\*|[1-9]\d*)(,\s*[1-9]\d*)?\]$|local-cluster\["
)
"""Masters that Spark starts with; with others it exits before it reports an error."""

_HADOOP = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")
"""Environment variables that say where YARN is."""

INSTALL_JAVA = (
    'install it ("apt install default-jre-headless", "dnf install java-21-openjdk-headless", '
    '"brew install openjdk") or set JAVA_HOME'
)

JAVA_MISSING = f"Spark needs Java 17 or later, and none was found; {INSTALL_JAVA}"

JAVA_USELESS = (
    "did not start Spark, which needs Java 17 or later, the whole of it and not a choice of "
    f"modules; {INSTALL_JAVA}"
)


class NoJava(AmqpsniffError):
    """Java is missing, or cannot start Spark."""


def require_java() -> None:
    """Raise NoJava unless Spark would find a Java."""
    home = os.environ.get("JAVA_HOME")
    if home and not (Path(home) / "bin" / "java").exists():
        raise NoJava(f"JAVA_HOME is {home}, where there is no bin/java; {JAVA_MISSING}")
    if not home and shutil.which("java") is None:
        raise NoJava(JAVA_MISSING)


def check_master(master: str | None) -> None:
    """Raise UsageError for an invalid master, and for one that Spark would not find."""
    if master is None:
        return
    if not _MASTER.match(master):
        raise UsageError(
            f"no Spark master `{master}`; give local[*], spark://HOST:PORT, yarn or k8s://HOST:PORT"
        )
    if master == "yarn" and not any(os.environ.get(name) for name in _HADOOP):
        raise UsageError(f"--master yarn needs {' or '.join(_HADOOP)} to be set")


def context(
    master: str | None = EMBEDDED, name: str = "amqpsniff", brief: bool = False
) -> SparkContext:
    """The active context, or a new one on `master`.

    With None, the master is that of spark-submit or the configuration. Workers run this Python
    unless PYSPARK_PYTHON names another, so that they find the same packages. A Spark in this
    machine listens on the loopback interface only, unless configured otherwise. `brief`: few rows
    pass through its JVM. Raises NoJava, and UsageError for an invalid master.
    """
    check_master(master)
    if "PYSPARK_GATEWAY_PORT" not in os.environ:  # set by spark-submit, which brought its own
        require_java()
        require_room()  # PySpark waits for ever for a file that Java writes there
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    conf = (configuration() if master is None else SparkConf()).setAppName(name)
    if master is not None:
        conf.setMaster(_LOCAL.sub(rf"local[\1,{ATTEMPTS}]", master))
        if master.startswith("local"):
            os.environ.setdefault("SPARK_LOCAL_IP", LOOPBACK)
            conf.set("spark.ui.enabled", "false")
            conf.set("spark.driver.defaultJavaOptions", BRIEF_JAVA if brief else EMBEDDED_JAVA)
    conf.set("spark.driver.memory", DRIVER_MEMORY)
    conf.set("spark.ui.showConsoleProgress", "false")
    conf.set("spark.python.daemon.module", "amqpsniff.spark_jobs.workers")
    with _java():
        return SparkContext.getOrCreate(conf)


def configuration() -> SparkConf:
    """The configuration of spark-submit, which Java reads.

    A Spark in this machine is reached from it only, unless configured otherwise.
    """
    with _java():
        SparkContext._ensure_initialized()
    conf = SparkConf()
    inside = (conf.get("spark.master") or EMBEDDED).startswith("local")
    if inside and "SPARK_LOCAL_IP" not in os.environ:
        conf.setIfMissing("spark.ui.enabled", "false")  # its pages are for every interface
        if not (conf.contains("spark.driver.host") or "SPARK_LOCAL_HOSTNAME" in os.environ):
            conf.set("spark.driver.host", LOOPBACK)
            conf.setIfMissing("spark.driver.bindAddress", LOOPBACK)
    return conf


@contextlib.contextmanager
def _java() -> Iterator[None]:
    """Raise NoJava if Java does not start Spark."""
    try:
        yield
    except PySparkRuntimeError as error:
        if error.getCondition() != "JAVA_GATEWAY_EXITED":
            raise
        home = os.environ.get("JAVA_HOME")
        java = Path(home) / "bin" / "java" if home else shutil.which("java")
        raise NoJava(f"{java} {JAVA_USELESS}") from error


def session(
    master: str | None = EMBEDDED, name: str = "amqpsniff", brief: bool = False
) -> SparkSession:
    """The active session, or a new one with `format("amqp")` registered; see `context`."""
    from . import register

    context(master, name, brief)
    spark = (
        SparkSession.builder.config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.execution.pyspark.udf.faulthandler.enabled", "true")
        .config(map=PARQUET)
        .getOrCreate()
    )
    register(spark)
    return spark
