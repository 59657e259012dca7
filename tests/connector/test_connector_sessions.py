"""Sessions with connectors: what is refused before Spark starts."""

from __future__ import annotations

import pytest

from weirflow import Session
from weirflow.errors import ConfigError, PackageUnavailable


def test_an_unknown_package_is_refused_with_a_suggestion(exclusive_spark):
    with (
        Session.embedded(packages=["icebreg"]) as session,
        pytest.raises(ConfigError, match="icebreg") as caught,
    ):
        session.sql("SELECT 1")
    assert caught.value.hint.startswith("did you mean 'iceberg'")


def test_a_connector_without_jars_for_this_spark_is_refused_before_spark_starts(exclusive_spark, monkeypatch):
    monkeypatch.setattr("pyspark.__version__", "9.9.0")
    with (
        Session.embedded(packages=["delta"]) as session,
        pytest.raises(PackageUnavailable, match=r"delta connector has no jars for Spark 9\.9\.0") as caught,
    ):
        session.sql("SELECT 1")
    assert "name Maven coordinates made for Spark 9.9" in caught.value.hint
