"""The process that workers are forked from takes PySpark from where it is compiled."""

from pathlib import Path

from amqpsniff.spark_jobs.workers import path_without_zips


def test_zips_of_an_installed_pyspark_are_left_out(tmp_path: Path) -> None:
    site = tmp_path / "site-packages"
    lib = site / "pyspark" / "python" / "lib"
    lib.mkdir(parents=True)
    zips = [str(lib / "pyspark.zip"), str(lib / "py4j-0.10.9.9-src.zip")]
    others = ["", str(tmp_path / "own.zip"), str(site)]
    assert path_without_zips([*zips, *others]) == [*zips, *others]  # nothing is installed there
    (site / "pyspark" / "worker.py").touch()
    assert path_without_zips([*zips, *others]) == others
    assert path_without_zips(zips) == zips  # it is not on the path


def test_zips_of_a_spark_elsewhere_stay(tmp_path: Path) -> None:
    lib = str(tmp_path / "spark" / "python" / "lib" / "pyspark.zip")
    assert path_without_zips([lib, str(tmp_path)]) == [lib, str(tmp_path)]
