"""Batches of captures on Spark, installed as `amqpsniff.spark_jobs`."""
