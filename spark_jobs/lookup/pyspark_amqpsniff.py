"""The data source `amqp`, for Spark to find."""

from amqpsniff.spark_jobs.source import AmqpDataSource as DefaultSource

__all__ = ["DefaultSource"]
