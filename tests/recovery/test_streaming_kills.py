"""Streaming queries that are killed whenever: what they have written in the end is that of a run that never died."""

import random
import re
import sys
import time
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from confluent_kafka import Consumer, Producer
from support import streaming_lives
from support.connectors import require_connectors
from support.kafka import KafkaBroker
from support.processes import ChildProcess

FILES = 8
TYPES = pa.schema({"begin": pa.timestamp("us", "UTC"), "customer": pa.string(), "n": pa.int64(), "total": pa.int64()})


def life(kind, folder, servers):
    script = Path(streaming_lives.__file__)
    command = [sys.executable, script, kind, folder, servers]
    return ChildProcess(command, name=kind, env={"PYTHONPATH": str(script.parent.parent)})


def survive(kind, folder, chosen, kills, servers=""):
    """Kill it after some batches, again and again; then let it finish."""
    for _ in range(kills):
        done = len(list((folder / "saved" / "commits").glob("[0-9]*")))
        batches = min(done + chosen.randrange(1, 4), FILES - 1)
        with life(kind, folder, servers) as child:
            commits = folder / "saved" / "commits"
            child.wait_until(
                lambda child=child, commits=commits, batches=batches: (
                    len(list(commits.glob("[0-9]*"))) >= batches or child.returncode == 0
                ),
                180.0,
                "so far",
            )
            time.sleep(chosen.uniform(0, 0.5))
            child.kill()
    with life(kind, folder, servers) as child:
        assert child.wait(180.0) == 0, child.log


def totals(table):
    return Counter(tuple(row.values()) for row in table.select(TYPES.names).cast(TYPES).to_pylist())


@pytest.fixture
def folder(tmp_path, own_spark):
    own_spark()  # there is room for one Spark
    streaming_lives.land(tmp_path / "inbox", FILES)
    return tmp_path


def check(kind, folder):
    expected = streaming_lives.totals(FILES)
    assert len(expected) > 1
    if kind == "parquet":
        logs = [path.read_text() for path in (folder / "out" / "_spark_metadata").glob("[0-9]*")]
        files = {name for log in logs for name in re.findall(r'"path":"file://([^"]+)"', log)}
        assert totals(pq.read_table(sorted(files))) == expected
        return
    with streaming_lives.opened(kind, folder) as session:
        assert totals(session.table(streaming_lives.TABLE).to_arrow()) == expected


def test_windows_in_files_survive_a_kill(folder):
    survive("parquet", folder, random.Random(0), 1)
    check("parquet", folder)


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kind", ["parquet", "iceberg"])
def test_windows_survive_kills(folder, kind, seed):
    if kind == "iceberg":
        require_connectors("iceberg")
    survive(kind, folder, random.Random(seed), 4)
    check(kind, folder)


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(2))
def test_records_from_kafka_to_kafka_survive_kills(folder, seed):
    require_connectors("kafka")
    sent = [f"{number}".encode() for number in range(5 * FILES)]
    with KafkaBroker() as broker:
        broker.create_topic(streaming_lives.IN)
        broker.create_topic(streaming_lives.OUT)
        with Producer({"bootstrap.servers": broker.bootstrap}) as producer:
            for value in sent:
                producer.produce(streaming_lives.IN, value=value)
            assert producer.flush(30) == 0
        survive("kafka", folder, random.Random(seed), 5, broker.bootstrap)
        assert committed(broker) == sent


def committed(broker):
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": "reader", "enable.partition.eof": True}
    consumer = Consumer({**settings, "isolation.level": "read_committed", "auto.offset.reset": "earliest"})
    consumer.subscribe([streaming_lives.OUT])
    found = []
    while (message := consumer.poll(30)) is not None and message.error() is None:
        found.append(message.value())
    consumer.close()
    return sorted(found, key=int)
