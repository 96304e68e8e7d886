"""A folder for PYTHONPATH: Spark looks there for data sources that nobody has registered.

It takes `DefaultSource` of every top-level module whose name begins with `pyspark_`. The package
adds no such module to site-packages, so that its folder is to be named.
"""
