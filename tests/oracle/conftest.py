import json
import os
import sys

import pytest
from pyspark.sql import SparkSession
from support.plain_plans import plain_plans
from support.shared_session import INTERPRETED, SETTINGS
from typer.testing import CliRunner

from weirflow import Session
from weirflow.cli.app import app

_OF_VALUES = {
    "test_aggregates", "test_eval_modes", "test_expressions", "test_function_catalogue", "test_regex",
    "test_scalar_functions", "test_settings", "test_sql_types", "test_strict_math", "test_time_windows",
}  # fmt: skip
_IN_PARTITIONS = {
    "test_cli", "test_co_process_spark", "test_errors_spark", "test_flow_sql_shards", "test_frame",
    "test_operations_spark", "test_partitioned_spark", "test_process_spark", "test_session", "test_settings",
    "test_streaming", "test_tick_timeout", "test_workers_spark",
}  # fmt: skip


@pytest.fixture(autouse=True)
def _plain(request):
    """A query of a few rows has one partition and the plan that is made first, but where plans are the subject."""
    if request.module.__name__.rpartition(".")[2] in _IN_PARTITIONS or "session" not in request.fixturenames:
        yield
        return
    with plain_plans(request.getfixturevalue("session").spark):
        yield


@pytest.fixture(autouse=True)
def _compiled(request):
    """Where single values are compared Spark runs the code it generates, as it does for users."""
    if request.module.__name__.rpartition(".")[2] not in _OF_VALUES or "session" not in request.fixturenames:
        yield
        return
    conf = request.getfixturevalue("session").spark.conf
    for name in INTERPRETED:
        conf.unset(name)
    yield
    for name, value in INTERPRETED.items():
        conf.set(name, value)


@pytest.fixture(scope="module")
def native_spark(tmp_path_factory, own_spark):
    own_spark()
    folder = tmp_path_factory.mktemp("spark")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.local.dir", str(folder / "local"))
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    yield spark
    spark.stop()


@pytest.fixture(scope="session")
def durable_conf(tmp_path_factory):
    """With one warehouse for all of them, durable Sessions can share a Spark."""
    return {**INTERPRETED, "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse"))}


@pytest.fixture
def durable_spark(shared_session, durable_conf):
    """Keeps the Spark of durable Sessions running, so that opening one again is cheap."""
    path = f"{durable_conf['spark.sql.warehouse.dir']}-keeper"
    keeper = shared_session.open(placement="single-node", path=path, spark_conf=durable_conf)
    keeper.spark  # noqa: B018 - starts it
    return keeper


@pytest.fixture
def open_durable(durable_spark, durable_conf):
    """Opens a durable Session with its stores under a folder."""
    return lambda folder: Session.single_node(folder, **{**SETTINGS, "spark_conf": durable_conf})


class Command:
    """The ``weirflow`` command in this process, on a Spark that runs already."""

    def __init__(self, conf):
        self._env = {"WEIRFLOW_CORES": "2", "WEIRFLOW_DRIVER_MEMORY": "1g", "WEIRFLOW_SPARK_CONF": json.dumps(conf)}

    def __call__(self, *arguments, stdin=None, code=0):
        done = CliRunner().invoke(app, [*map(str, arguments)], input=stdin, env=self._env, prog_name="weirflow")
        assert done.exit_code == code, done.stderr
        assert "Traceback" not in done.stderr
        return done


@pytest.fixture
def weirflow(session):
    session.spark  # noqa: B018 - starts it
    return Command(INTERPRETED)


@pytest.fixture
def weirflow_durable(durable_spark, durable_conf):
    return Command(durable_conf)
