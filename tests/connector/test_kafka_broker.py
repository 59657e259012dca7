"""The Kafka broker that other tests rely on: it takes and gives records, and never outlives its test run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, Producer
from support.kafka import KafkaBroker

TESTS = Path(__file__).parents[1]


def produce(broker, topic, records, name=None, ending=Producer.commit_transaction):
    settings = {} if name is None else {"transactional.id": name}
    with Producer({"bootstrap.servers": broker.bootstrap, **settings}) as producer:
        if name is not None:
            producer.init_transactions(30)
            producer.begin_transaction()
        for key, value in records:
            producer.produce(topic, key=key, value=value)
        assert producer.flush(30) == 0
        if name is not None:
            ending(producer, 30)


def consume(broker, topic, count, **settings):
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": topic,
            "auto.offset.reset": "earliest",
            **settings,
        }
    )
    consumer.subscribe([topic])
    deadline = time.monotonic() + 30
    records = []
    while len(records) < count and time.monotonic() < deadline:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            records.append((message.partition(), message.key(), message.value()))
    consumer.close()
    return records


def test_records_come_back_as_they_were_sent(broker):
    sent = [(f"k{number}".encode(), b"\x00\xff" * number) for number in range(5)]
    broker.create_topic("plain")
    produce(broker, "plain", sent)
    assert consume(broker, "plain", 5) == [(0, key, value) for key, value in sent]


def test_a_topic_has_the_partitions_asked_for(broker):
    broker.create_topic("wide", partitions=3)
    produce(broker, "wide", [(str(number).encode(), b"v") for number in range(60)])
    assert {partition for partition, _, _ in consume(broker, "wide", 60)} == {0, 1, 2}


def test_read_committed_shows_no_aborted_record(broker):
    broker.create_topic("transactions")
    produce(broker, "transactions", [(b"a", b"lost")], "t1", Producer.abort_transaction)
    produce(broker, "transactions", [(b"b", b"kept")], "t2")
    seen = consume(broker, "transactions", 1, **{"isolation.level": "read_committed"})
    assert seen == [(0, b"b", b"kept")]


@pytest.mark.campaign
def test_stop_ends_the_process_and_removes_the_data():
    broker = KafkaBroker()
    process, folder = psutil.Process(broker.pid), broker._folder
    broker.stop()
    broker.stop()
    assert (process.is_running(), folder.exists()) == (False, False)


@pytest.mark.campaign
def test_the_broker_dies_with_a_killed_test_run(tmp_path):
    script = "from support.kafka import KafkaBroker; b = KafkaBroker(); print(b.pid, flush=True); input()"
    run = subprocess.Popen(
        [sys.executable, "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(TESTS), "TMPDIR": str(tmp_path)},
    )
    with run:
        broker = psutil.Process(int(run.stdout.readline()))
        run.send_signal(signal.SIGKILL)
    psutil.wait_procs([broker], timeout=10)
    assert not broker.is_running() or broker.status() == psutil.STATUS_ZOMBIE
