"""Jars from the real Maven repository."""

from __future__ import annotations

import importlib.util
import os
import shutil
import zipfile
from pathlib import Path

import pytest

from weirflow.errors import PackageUnavailable
from weirflow.spark.jars.packages import resolve_jars

JAVA = Path(shutil.which("java") or "java")
IVY_JAR = next((Path(importlib.util.find_spec("pyspark").origin).parent / "jars").glob("ivy-*.jar"))


def resolve(package, *, cache, java=JAVA):
    return resolve_jars([package], spark_version="4.1.3", cache=cache, java=java, ivy_jar=IVY_JAR)


def test_a_small_artifact_is_fetched_once_and_then_served_offline(tmp_path):
    fetched = resolve("org.apache.commons:commons-pool2:2.12.1", cache=tmp_path)
    assert [jar.name for jar in fetched] == ["org.apache.commons_commons-pool2-2.12.1.jar"]
    assert "org/apache/commons/pool2/ObjectPool.class" in zipfile.ZipFile(fetched[0]).namelist()
    offline = resolve("org.apache.commons:commons-pool2:2.12.1", cache=tmp_path, java=Path("/nowhere/java"))
    assert offline == fetched


def test_an_artifact_nobody_published_is_named(tmp_path):
    with pytest.raises(PackageUnavailable, match=r"does not have org\.apache\.commons:commons-pool2:0\.0\.0"):
        resolve("org.apache.commons:commons-pool2:0.0.0", cache=tmp_path)


def test_the_kafka_connector_is_four_jars():
    cache = Path(os.environ.get("WEIRFLOW_CACHE_DIR") or Path.home() / ".cache" / "weirflow")
    classes = {name for jar in resolve("kafka", cache=cache) for name in zipfile.ZipFile(jar).namelist()}
    assert {
        "org/apache/spark/sql/kafka010/KafkaSourceProvider.class",
        "org/apache/spark/kafka010/KafkaTokenUtil.class",
        "org/apache/kafka/clients/producer/KafkaProducer.class",
        "org/apache/commons/pool2/ObjectPool.class",
    } <= classes
