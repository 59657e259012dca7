"""Flows and checkpoints of streams as an earlier version has stored them: they go on, and no batch counts twice.

``stored/streams.zip`` was written at commit 7ab98da in the folder ``WRITTEN_IN``: a Session with three flows of one
source and view, each fed by two batches. Two were attached, one of them in shards; the third was written to by
``write_stream().flow(...)``, which told batches by tokens.
"""

import json
import os
import time
import zipfile
from pathlib import Path

import pytest

from weirflow import Session, Trigger
from weirflow.metadata import open_metadata

STORED = Path(__file__).parent / "stored" / "streams.zip"
WRITTEN_IN = "/tmp/weirflow-stored"
SCHEMA = "customer STRING, amount BIGINT"
CHECKPOINTS = {
    "attached": "session/flows/attached/streams/orders",
    "spread": "session/partitioned/spread/streams/orders",
    "written": "session/checkpoints/queries/written",
}


@pytest.fixture
def folder(tmp_path, exclusive_spark):
    """What was stored, moved here."""
    with zipfile.ZipFile(STORED) as stored:
        stored.extractall(tmp_path)
    for checkpoint in CHECKPOINTS.values():
        for log in (tmp_path / checkpoint / "sources" / "0").iterdir():
            log.write_text(log.read_text().replace(WRITTEN_IN, str(tmp_path)))
    for number in range(2):
        os.utime(tmp_path / "inbox" / f"{number}.json", (time.time() - 10 + number,) * 2)
    with open_metadata(str(tmp_path / "session" / "metadata.db")) as metadata:  # the flow is leased by its new path
        metadata.acquire(f"flow/{tmp_path}/session/partitioned/spread", "the one before", 10).release()
    return tmp_path


def start(session, folder, name):
    """Go on with the stream into a flow, as it was begun."""
    flow = session.flow(name, partitions=2) if name == "spread" else session.flow(name)
    stream = session.read_stream("json", folder / "inbox", schema=SCHEMA, maxFilesPerTrigger=1)
    if name != "written":
        return flow, flow.attach(stream, "orders", trigger="available now")
    writer = stream.write_stream().flow(flow, "orders").query_name("written")
    return flow, writer.trigger(Trigger.available_now()).start()


def test_streams_that_an_earlier_version_has_begun_go_on(folder):
    for name, checkpoint in CHECKPOINTS.items():
        if name != "attached":
            (folder / checkpoint / "commits" / "1").unlink()  # killed before Spark noted that the batch is done
    (folder / "inbox" / "2.json").write_text(json.dumps({"customer": "ann", "amount": 100}) + "\n")
    with Session.single_node(folder / "session", cores=2, driver_memory="1g", progress="off") as session:
        found = {}
        for name in CHECKPOINTS:
            flow, query = start(session, folder, name)
            assert query.await_termination(120)
            totals = {row["customer"]: row["total"] for row in flow.snapshot("totals").to_pylist()}
            position = flow.position(query.id if name == "written" else "orders")
            found[name] = (flow.epoch, totals, position.origin == query.id, position.at)
    assert found == dict.fromkeys(CHECKPOINTS, (3, {"ann": 112, "bob": 1}, True, "2"))
