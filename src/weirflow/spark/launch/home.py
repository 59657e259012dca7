"""Where the installed Spark is."""

from __future__ import annotations

from pathlib import Path

from pyspark.find_spark_home import _find_spark_home


def spark_home() -> Path:
    """The folder with Spark's ``jars``: SPARK_HOME if it is set, else the one inside the pyspark package."""
    return Path(_find_spark_home())  # type: ignore[no-untyped-call]  # PySpark does not type this module
