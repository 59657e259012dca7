"""Queries that outlive their client on a Spark elsewhere, whose driver the job is, or whose client."""

from __future__ import annotations

from collections import Counter

import psutil
import pytest
from support.detached_jobs import job_pids, land, no_job_left, written
from support.processes import alive

from weirflow import Session
from weirflow.types import QueryState

SMALL = {"driver_memory": "1g", "spark_conf": {"spark.executor.memory": "512m"}}


def copying(folder):
    def copy(session):
        numbers = session.read_stream("json", f"{folder}/inbox", schema="n BIGINT", maxFilesPerTrigger=1)
        writer = numbers.write_stream().format("parquet").option("path", f"{folder}/out")
        return writer.option("checkpointLocation", f"{folder}/saved").query_name("copy").start()

    return copy


@pytest.fixture
def folder(tmp_path):
    with no_job_left(tmp_path):
        yield tmp_path


@pytest.mark.parametrize("kind", [pytest.param("standalone", marks=pytest.mark.campaign), "connect"])
def test_a_query_outlives_its_client(kind, request, exclusive_spark, folder):
    server = request.getfixturevalue("cluster" if kind == "standalone" else "connect_server")
    token, settings = (server._secret, SMALL) if kind == "standalone" else (server.token, {})

    def opened():
        return Session.distributed(server.url, token=token, progress="off", **settings)

    land(folder, 1, 2)
    with opened() as session:
        started = session.streams.detach(copying(folder), at=folder / "jobs")
    land(folder, 3)
    with opened() as session:
        query = session.streams.get("copy", at=folder / "jobs")
        assert query.id == started.id
        query.process_all_available()
        [job] = job_pids(folder)
        assert token not in str((psutil.Process(job).cmdline(), psutil.Process(job).environ()))
        query.stop()
        assert query.status().state is QueryState.STOPPED
        assert alive({job}) == set()
    kept = [path.read_bytes() for path in (folder / "jobs").rglob("*") if path.is_file()]
    assert token.encode() not in b"".join(kept)
    assert written(folder) == Counter([1, 2, 3])
