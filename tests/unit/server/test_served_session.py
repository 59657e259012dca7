"""The Session of a server: what it does not have, for whoever asks."""

from __future__ import annotations

import pytest

from weirflow.config import Settings
from weirflow.server.session import served_session

EXECUTORS = "spark.executor.extraJavaOptions"


def test_settings_do_not_undo_it():
    given = {"spark.sql.runSQLOnFiles": "true", "spark.sql.variable.substitute": "true"}
    with served_session(Settings(spark_conf=given)) as session:
        assert session.settings.spark_conf == dict.fromkeys(given, "false")


@pytest.mark.parametrize(
    ("given", "wanted"),
    [({}, "-Djavax.xml.accessExternalDTD="), ({EXECUTORS: "-Xss4m"}, "-Xss4m -Djavax.xml.accessExternalDTD=")],
)
def test_executors_elsewhere_fetch_no_dtds(given, wanted):
    with served_session(Settings(placement="distributed", endpoint="spark://127.0.0.1:1", spark_conf=given)) as session:
        assert session.settings.spark_conf[EXECUTORS] == wanted
