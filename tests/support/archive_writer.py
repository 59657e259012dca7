"""A script that lets a JVM write the archive of Spark's classes, if there is none."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyspark

from weirflow import Session, Settings
from weirflow.spark.launch.archive import ClassArchive
from weirflow.spark.launch.java import find_java


def is_there() -> bool:
    """Whether the next JVM would map an archive."""
    jars = sorted(Path(pyspark.__path__[0], "jars").glob("*.jar"))
    return bool(ClassArchive(Settings().cache_dir / "classes", find_java(), jars, may_write=False).java_options)


def write() -> None:
    """By a Session that does a bit of everything, so that most of the classes that tests need are in it."""
    with tempfile.TemporaryDirectory() as folder, Session(cores=2, driver_memory="1g", progress="off") as session:
        session.register("t", [{"k": 1, "s": "a"}, {"k": 2, "s": "b"}])
        session.sql("SELECT s, COUNT(*) AS n FROM t JOIN t AS u USING (k, s) GROUP BY s ORDER BY n").to_arrow()
        session.table("t").write_parquet(f"{folder}/t")
        session.read_parquet(f"{folder}/t").collect()


if __name__ == "__main__" and not is_there():
    write()
