"""Results of a server with the stores of the distributed profile: written to S3 by executors, there after a kill."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from support.postgres import postgres_server
from support.s3 import ACCESS_KEY, SECRET_KEY, s3_server
from support.server import served_process

from weirflow import RemoteSession


@pytest.mark.campaign
def test_a_result_on_s3_outlives_the_server(tmp_path):
    with s3_server() as s3, postgres_server() as postgres:
        bucket = s3.make_bucket()
        environment = {
            "WEIRFLOW_DURABILITY_PROFILE": "distributed-durable",
            "WEIRFLOW_CHECKPOINT_URI": f"s3://{bucket}/state",
            "WEIRFLOW_METADATA_URL": postgres.make_uri(),
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_ENDPOINT_URL": s3.endpoint,
            "AWS_REGION": "us-east-1",
            "AWS_ALLOW_HTTP": "true",
        }
        token = _first_token(environment)
        with served_process(tmp_path / "server", "--cores", "2", keeps=False, environment=environment) as served:
            with RemoteSession(served.flight_url, token, connect_timeout=60) as session:
                result = session.sql("SELECT id, id * 2 AS twice FROM range(100000)").run()
                tickets = [endpoint.ticket for endpoint in result._info.endpoints]
                assert len(tickets) == 2
                assert _ids(session, tickets) == list(range(100_000))
            served.kill()
            served.start()
            with RemoteSession(served.flight_url, token, connect_timeout=60) as session:
                assert _ids(session, tickets) == list(range(100_000))
        assert SECRET_KEY not in served.log_text()


def _first_token(environment):
    """Made by the command, before there is a server, as deploy/compose.yaml says."""
    command = [sys.executable, "-m", "weirflow", "tokens", "create", "ann", "--role", "admin", "--json"]
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["token"]


def _ids(session, tickets):
    """The ids of all parts, each of which has its doubles beside it."""
    tables = [session._connection.rows(ticket) for ticket in tickets]
    assert all(row["twice"] == 2 * row["id"] for table in tables for row in table.slice(0, 100).to_pylist())
    return sorted(number for table in tables for number in table["id"].to_pylist())
