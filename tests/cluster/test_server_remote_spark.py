"""Results of a server whose Spark is somewhere else: written by its executors, fetched from the server's spool."""

from __future__ import annotations

import pyarrow as pa
import pytest
from support.flight import flighted

from weirflow import RemoteSession, Session
from weirflow.errors import QueryError, ResultTooLarge, UnsupportedError
from weirflow.server.results.spool import SpoolLimits

ROWS = 20_000


def _remote(served, role):
    return RemoteSession(f"weirflow://{served.address}", served.tokens[role])


def _fetch_twice(session):
    """A result of three parts, each fetched, and fetched again."""
    result = session.sql(f"SELECT id, id * 2 AS twice FROM range(0, {ROWS}, 1, 3)").run()
    tickets = [endpoint.ticket for endpoint in result._info.endpoints]
    assert len(tickets) == 3
    first, again = ([session._connection.rows(one) for one in tickets] for _ in range(2))
    assert first == again
    rows = pa.concat_tables(first).sort_by("id")
    assert rows.to_pydict() == {"id": list(range(ROWS)), "twice": list(range(0, 2 * ROWS, 2))}


@pytest.mark.campaign
def test_spark_connect(connect_server, tmp_path):
    with (
        Session.distributed(connect_server.url, token=connect_server.token) as session,
        flighted(session, tmp_path, SpoolLimits(result_bytes=1 << 20)) as served,
    ):
        with _remote(served, "admin") as admin:
            _fetch_twice(admin)
            with pytest.raises(ResultTooLarge):
                admin.sql("SELECT id, uuid() AS u FROM range(0, 200000, 1, 2)").run()
            with pytest.raises(QueryError, match="zero"):
                admin.sql("SELECT 1 / (id - id) AS x FROM range(3)").run()
            assert admin.sql("SELECT id FROM range(3) WHERE id < 0").to_arrow().num_rows == 0
        with _remote(served, "reader") as reader, pytest.raises(UnsupportedError):  # nobody sees what it would do
            reader.sql("SELECT 1 AS one").to_arrow()


@pytest.mark.campaign
def test_executors_of_a_cluster(cluster, tmp_path):
    settings = {"driver_memory": "1g", "spark_conf": {"spark.executor.memory": "512m"}}
    with (
        Session.distributed(cluster.url, token=cluster._secret, **settings) as session,
        flighted(session, tmp_path) as served,
        _remote(served, "reader") as reader,
    ):
        _fetch_twice(reader)
