"""An option that is nearly a known one is a slip of the pen; Spark would ignore it."""

import pytest

from weirflow import Session
from weirflow.errors import ConfigError
from weirflow.spark.frames.source_options import require_known_options


@pytest.mark.parametrize(
    ("source", "option", "meant"),
    [
        ("csv", "heder", "header"),
        ("csv", "delimitr", "delimiter"),
        ("json", "multiline_", "multiLine"),
        ("parquet", "checkpointlocatoin", "checkpointLocation"),
        ("kafka", "kafka.bootstrap.server", "kafka.bootstrap.servers"),
        ("kafka", "startingOffset", "startingOffsets"),
        ("rate", "rowPerSecond", "rowsPerSecond"),
    ],
)
def test_a_slip_is_refused_with_what_was_meant(source, option, meant):
    with pytest.raises(ConfigError, match=f"{source} has no option '{option}'") as caught:
        require_known_options(source, ["path", option])
    assert caught.value.hint == f"did you mean {meant!r}?"


@pytest.mark.parametrize(
    ("source", "option"),
    [("csv", "HEADER"), ("kafka", "kafka.ssl.truststore.location"), ("csv", "somethingElse"), ("my.source", "heder")],
)
def test_other_options_are_for_the_source_to_know(source, option):
    require_known_options(source, [option])


def test_reading_asks_before_spark_starts():
    with Session.embedded() as session, pytest.raises(ConfigError, match="csv has no option 'heder'"):
        session.read_csv("/nowhere", heder=True)
    assert "not started" in session.describe().spark
