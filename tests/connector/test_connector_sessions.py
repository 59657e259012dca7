"""Sessions with connectors: what outlives them, and what is refused before Spark starts."""

from __future__ import annotations

import pyarrow as pa
import pytest
from support.connectors import require_connectors

from weirflow import Session
from weirflow.errors import ConfigError, PackageUnavailable


def test_a_single_node_iceberg_table_survives_the_session(exclusive_spark, tmp_path):
    require_connectors("iceberg")
    rows = pa.table({"k": ["a", "b", "a"], "n": pa.array([1, 2, 3], pa.int32())})
    settings = {"packages": ["iceberg"], "driver_memory": "1g"}
    with Session.single_node(tmp_path, **settings) as first:
        first.register("source", rows)
        first.sql("CREATE TABLE iceberg.db.kept USING iceberg PARTITIONED BY (k) AS SELECT * FROM source")
    with Session.single_node(tmp_path, **settings) as second:
        assert second.table("iceberg.db.kept").orderBy("n").to_arrow().equals(rows)
        second.from_arrow(rows).write_table("iceberg.db.kept", format="iceberg", mode="append")
        assert second.table("iceberg.db.kept").orderBy("n").to_arrow().equals(rows.take([0, 0, 1, 1, 2, 2]))


def test_an_unknown_package_is_refused_with_a_suggestion(exclusive_spark):
    with (
        Session.embedded(packages=["icebreg"]) as session,
        pytest.raises(ConfigError, match="icebreg") as caught,
    ):
        session.sql("SELECT 1")
    assert caught.value.hint.startswith("did you mean 'iceberg'?")


def test_a_connector_without_jars_for_this_spark_is_refused_before_spark_starts(exclusive_spark, monkeypatch):
    monkeypatch.setattr("pyspark.__version__", "9.9.0")
    with (
        Session.embedded(packages=["delta"]) as session,
        pytest.raises(PackageUnavailable, match=r"delta connector has no jars for Spark 9\.9\.0") as caught,
    ):
        session.sql("SELECT 1")
    assert "name Maven coordinates made for Spark 9.9" in caught.value.hint
