"""Catalogs by name against real ones: a folder, SQLite, Iceberg's REST server, Glue, and Delta, in files and on S3."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
import pytest
from support.connectors import require_connectors
from support.iceberg_rest import CLIENT, TOKEN, guarded, iceberg_rest_server
from support.postgres import PASSWORD
from support.s3 import ACCESS_KEY, SECRET_KEY, s3_server
from support.shared_session import SETTINGS

from weirflow import Session
from weirflow.errors import (
    AuthenticationFailed,
    CatalogNotFound,
    ConfigError,
    EndpointUnreachable,
    PackageUnavailable,
    PathNotFound,
    UnsupportedError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

ROWS = [{"id": 0, "b": "x"}, {"id": 2, "b": None}]
SELECT = "SELECT * FROM VALUES (0L, 'x'), (1L, 'y'), (2L, NULL) AS t(id, b)"


@pytest.fixture
def session(connector_spark: Session) -> Iterator[Session]:
    require_connectors("iceberg", "sqlite")
    yield connector_spark
    connector_spark.sql("USE spark_catalog.default")
    for catalog in connector_spark.describe().catalogs:
        connector_spark.drop_catalog(catalog.name)


@pytest.fixture(scope="module")
def rest() -> Iterator[str]:
    with iceberg_rest_server() as address:
        yield address


def rows(session, table):
    return session.sql(f"SELECT * FROM {table} ORDER BY id").to_arrow().to_pylist()


def write(session, schema):
    """Make a table, and change it."""
    session.sql(f"CREATE SCHEMA IF NOT EXISTS {schema}")
    session.sql(f"CREATE TABLE {schema}.t AS {SELECT}")
    session.sql(f"DELETE FROM {schema}.t WHERE id = 1")
    assert rows(session, f"{schema}.t") == ROWS


def test_catalogs_of_different_kinds_are_side_by_side(session, rest, tmp_path):
    session.sql(f"CREATE CATALOG lake USING 'iceberg-rest+{rest}'")
    session.sql(f"CREATE CATALOG folder USING iceberg_hadoop WITH (uri = '{(tmp_path / 'folder').as_uri()}')")
    session.add_catalog("base", f"iceberg-jdbc+sqlite://{tmp_path}/c.db", warehouse=f"{tmp_path.as_uri()}/base")
    for name in ("lake", "folder", "base"):
        write(session, f"{name}.shop")
    joined = session.sql(
        "SELECT count(*) AS n FROM lake.shop.t JOIN folder.shop.t USING (id) JOIN base.shop.t USING (id)"
    )
    assert joined.to_arrow().to_pylist() == [{"n": 2}]
    assert session.sql("SELECT count(*) AS n FROM base.shop.t.snapshots").to_arrow().to_pylist() == [{"n": 2}]
    listed = session.sql("SHOW CATALOGS LIKE 'lake|base'").to_arrow().to_pylist()
    assert [(row["catalog"], row["kind"]) for row in listed] == [("base", "iceberg-jdbc"), ("lake", "iceberg-rest")]

    session.sql("USE base.shop")
    with pytest.raises(UnsupportedError, match="'base' is the current one"):
        session.sql("DROP CATALOG base")
    session.sql("USE spark_catalog.default")
    session.sql("DROP CATALOG base")
    with pytest.raises(CatalogNotFound, match="base"):
        rows(session, "base.shop.t")
    session.add_catalog("base", f"iceberg-jdbc+sqlite://{tmp_path}/c.db", warehouse=f"{tmp_path.as_uri()}/base")
    assert rows(session, "base.shop.t") == ROWS  # what is in a catalog stays

    session.sql("DROP TABLE lake.shop.t PURGE")


def test_tokens_and_oauth2(session, rest):
    with guarded(rest) as door:
        address = f"iceberg-rest+{door}"
        session.sql(f"CREATE CATALOG by_token USING '{address}' WITH (token = :token)", {"token": TOKEN})
        session.add_catalog("by_client", address, credential=CLIENT)
        write(session, "by_token.secrets")
        assert rows(session, "by_client.secrets.t") == ROWS
        session.sql("DROP TABLE by_client.secrets.t PURGE")
        settings = session.sql("SET").to_arrow().to_pylist()
        assert [row for row in settings if "canary" in row["value"]] == []
        for options in ({}, {"token": f"wrong-{TOKEN}"}, {"credential": f"x{CLIENT}"}):
            with pytest.raises(AuthenticationFailed, match=r"'no' .* refused the credentials") as caught:
                session.add_catalog("no", address, **options)
            error = caught.value
            assert "canary" not in f"{error} {vars(error)} {error.__cause__}"
        assert "no" not in {info.name for info in session.catalogs()}


REFUSED = [
    ("iceberg-rest+http://127.0.0.1:1", {}, EndpointUnreachable, "'no' does not answer: 127.0.0.1:1 cannot be reached"),
    ("iceberg-rest+http://no.such.host.invalid", {}, EndpointUnreachable, "the host name is not known"),
    ("iceberg-hive+thrift://127.0.0.1:1", {"warehouse": "file:///tmp"}, EndpointUnreachable, "'no' does not answer"),
    ("iceberg-nessie+http://127.0.0.1:1", {"warehouse": "file:///tmp"}, EndpointUnreachable, "'no' does not answer"),
    ("iceberg-jdbc+sqlite:///no/such/c.db", {"warehouse": "file:///tmp"}, PathNotFound, "cannot open its database"),
    ("iceberg-glue", {"warehouse": "s3://b/x"}, PackageUnavailable, "needs the package iceberg-aws"),
    ("iceberg-jdbc+sqlite:///tmp/c.db", {"warehouse": "gs://b/x"}, PackageUnavailable, "needs the package iceberg-gcp"),
    (
        "iceberg-jdbc+sqlite:///tmp/c.db",
        {"warehouse": "abfss://c@a.dfs.core.windows.net/x"},
        PackageUnavailable,
        "needs the package iceberg-azure",
    ),
]


@pytest.mark.parametrize(("address", "options", "kind", "says"), REFUSED)
def test_what_does_not_work_is_one_sentence_and_leaves_nothing(session, address, options, kind, says):
    before = session.sql("SET").to_arrow().num_rows
    with pytest.raises(kind, match=says) as caught:
        session.add_catalog("no", address, **options)
    assert caught.value.hint
    assert session.sql("SET").to_arrow().num_rows == before
    assert session.describe().catalogs == ()


def test_a_server_of_something_else_is_told_apart(session, rest):
    with pytest.raises(ConfigError, match=r"'no' .* answers, but not like an Iceberg catalog"):
        session.add_catalog("no", f"iceberg-rest+{rest}/elsewhere")


@pytest.mark.parametrize(
    ("path", "says", "hint"),
    [
        ("s3://b/x", "s3://", "packages=['s3']"),
        ("gs://b/x", "gs://", "gcs-connector"),
        ("s3a://b/x", "the package s3", "packages=['s3']"),
        ("abfss://c@a.dfs.core.windows.net/x", "hadoop-azure", "hadoop-azure"),
    ],
)
def test_the_package_for_a_path_is_named(session, path, says, hint):
    with pytest.raises(PackageUnavailable, match=says) as caught:
        session.read_parquet(path)
    assert hint in caught.value.hint


def test_other_engines_read_a_catalog_in_a_database(session, tmp_path):
    sql = pytest.importorskip("pyiceberg.catalog.sql")
    session.add_catalog("base", f"iceberg-jdbc+sqlite://{tmp_path}/c.db", warehouse=f"{tmp_path.as_uri()}/base")
    write(session, "base.shop")
    catalog = sql.SqlCatalog("base", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"{tmp_path.as_uri()}/base")
    table = catalog.load_table("shop.t")
    assert sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"]) == ROWS
    files = [task.file.file_path.removeprefix("file:") for task in table.scan().plan_files()]
    found = duckdb.sql(f"SELECT * FROM read_parquet({files}) ORDER BY id").to_arrow_table()
    assert found.to_pylist() == ROWS


def test_a_catalog_in_postgresql_asks_for_a_password(session, postgres, tmp_path):
    require_connectors("postgresql")
    postgres.add_user("lake", PASSWORD)
    files = f"{tmp_path.as_uri()}/base"
    with postgres.on_tcp() as port:
        address = f"iceberg-jdbc+postgresql://127.0.0.1:{port}/postgres"
        for password in ({}, {"password": f"wrong-{PASSWORD}"}):
            with pytest.raises(AuthenticationFailed, match=r"'no' .* refused the credentials") as caught:
                session.add_catalog("no", address, warehouse=files, user="lake", **password)
            assert "canary" not in f"{caught.value} {vars(caught.value)}"
        session.add_catalog("base", address, warehouse=files, user="lake", password=PASSWORD)
        write(session, "base.shop")
        session.drop_catalog("base")


@pytest.mark.campaign
def test_a_durable_session_has_its_catalogs_again(exclusive_spark, tmp_path):
    require_connectors("iceberg", "sqlite")
    with Session.single_node(tmp_path / "kept", **SETTINGS) as session:
        # Spark is not started yet: it starts with the packages that the catalog needs.
        session.sql(
            "CREATE CATALOG lake USING iceberg_jdbc "
            f"WITH (uri = 'sqlite://{tmp_path}/c.db', warehouse = '{tmp_path.as_uri()}/lake')"
        )
        write(session, "lake.shop")
        write(session, "iceberg.shop")
    with Session.single_node(tmp_path / "kept", **SETTINGS) as session:
        assert rows(session, "lake.shop.t") == ROWS
        assert rows(session, "iceberg.shop.t") == ROWS
        session.sql("DROP CATALOG lake")
    with Session.single_node(tmp_path / "kept", **SETTINGS) as session:
        assert session.describe().catalogs == ()


@pytest.mark.campaign
def test_glue_databases_and_delta_on_s3_are_read_by_others(exclusive_spark, tmp_path, monkeypatch):
    require_connectors("iceberg", "iceberg-aws", "delta", "s3", "sqlite")
    pyiceberg = pytest.importorskip("pyiceberg.catalog")
    deltalake = pytest.importorskip("deltalake")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    with s3_server() as s3:
        bucket = s3.make_bucket()
        files = {"s3_endpoint": s3.endpoint, "path_style": "true", "region": "us-east-1"}
        of_hadoop = {
            "spark.hadoop.fs.s3a.endpoint": s3.endpoint,
            "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
            "spark.hadoop.fs.s3a.path.style.access": "true",
        }
        glue = {"address": "iceberg-glue", "warehouse": f"s3://{bucket}/glue", "glue_endpoint": s3.endpoint, **files}
        base = {
            "address": f"iceberg-jdbc+sqlite://{tmp_path}/c.db",
            "warehouse": f"s3://{bucket}/base",
            "access_key": ACCESS_KEY,
            "secret_key": SECRET_KEY,
            **files,
        }
        settings = {**SETTINGS, "spark_conf": {**SETTINGS["spark_conf"], **of_hadoop}, "packages": ["delta", "s3"]}
        with Session.embedded(**settings, catalogs={"glue": glue, "base": base}) as session:
            write(session, "glue.shop")
            write(session, "base.shop")
            session.sql(f"CREATE TABLE delta.`s3://{bucket}/delta/t` USING delta AS SELECT * FROM glue.shop.t")
            session.sql(f"CREATE TABLE named USING delta LOCATION 's3://{bucket}/delta/u' AS SELECT * FROM base.shop.t")
            session.sql("UPDATE named SET b = 'z' WHERE id = 2")
            assert rows(session, f"delta.`s3://{bucket}/delta/t`") == ROWS
            assert rows(session, "named") == [ROWS[0], {"id": 2, "b": "z"}]

        def by_id(table):
            return sorted(table.to_pylist(), key=lambda row: row["id"])

        s3_of_pyiceberg = {"s3.endpoint": s3.endpoint, "s3.region": "us-east-1"}
        in_glue = {"type": "glue", "glue.endpoint": s3.endpoint, "glue.region": "us-east-1", **s3_of_pyiceberg}
        in_base = {"type": "sql", "uri": f"sqlite:///{tmp_path}/c.db", **s3_of_pyiceberg}
        # pyiceberg calls a catalog in a database by the name that it has there.
        for name, properties in (("glue", in_glue), ("base", in_base)):
            table = pyiceberg.load_catalog(name, **properties).load_table("shop.t")
            assert by_id(table.scan().to_arrow()) == ROWS
        options = {"AWS_ENDPOINT_URL": s3.endpoint, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1"}
        read = deltalake.DeltaTable(f"s3://{bucket}/delta/u", storage_options=options)
        assert by_id(read.to_pyarrow_table()) == [ROWS[0], {"id": 2, "b": "z"}]
