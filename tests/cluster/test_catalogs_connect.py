"""Catalogs by name on a Spark Connect server: it has packages of its own, and a catalog as long as the session."""

from __future__ import annotations

import pytest
from support.connect import ConnectServer
from support.connectors import require_connectors
from support.iceberg_rest import jars_of

from weirflow import Session
from weirflow.errors import PackageUnavailable, UnsupportedError


def connected(server, **settings):
    return Session.distributed(f"sc://localhost:{server.port}", token=server.token, progress="off", **settings)


def test_a_server_without_a_package_is_named(connect_server, tmp_path):
    with connected(connect_server, catalogs={"lake": f"iceberg-hadoop+{tmp_path.as_uri()}"}) as session:
        with pytest.raises(PackageUnavailable, match="needs the package iceberg") as caught:
            session.sql("CREATE TABLE lake.shop.t AS SELECT 1 AS id")
        assert "a Spark Connect server needs it in its own settings" in caught.value.hint
        with pytest.raises(PackageUnavailable, match=r"'other' .* needs the package iceberg"):
            session.add_catalog("other", f"iceberg-hadoop+{tmp_path.as_uri()}")
        assert [info.name for info in session.catalogs()] == ["lake", "spark_catalog"]


@pytest.mark.campaign
def test_catalogs_of_a_server_with_iceberg(tmp_path):
    require_connectors("iceberg", "sqlite")
    conf = {
        "spark.jars": ",".join(map(str, jars_of("iceberg", "sqlite"))),
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    }
    lake = f"iceberg-hadoop+{tmp_path.as_uri()}/lake"
    with ConnectServer(conf=conf) as server, connected(server, catalogs={"lake": lake}) as session:
        session.add_catalog("base", f"iceberg-jdbc+sqlite://{tmp_path}/c.db", warehouse=f"{tmp_path.as_uri()}/base")
        session.sql("CREATE TABLE lake.shop.t AS SELECT 1 AS id")
        session.sql("CREATE TABLE base.shop.t AS SELECT * FROM lake.shop.t")
        assert session.table("base.shop.t").to_arrow().to_pylist() == [{"id": 1}]
        with pytest.raises(UnsupportedError, match="Spark Connect has it until the session ends"):
            session.sql("DROP CATALOG base")
        with pytest.raises(PackageUnavailable, match=r"'glue' .* needs the package iceberg-aws"):
            session.add_catalog("glue", "iceberg-glue", warehouse="s3://b/x")
