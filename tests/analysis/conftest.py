"""The Spark session of the tests of the jobs."""

from tests.spark.conftest import spark

__all__ = ["spark"]
