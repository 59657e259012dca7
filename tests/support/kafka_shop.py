"""A stream of files into a Kafka topic in transactions, in a process that may be killed anywhere.

As a script it is one life of it: ``kafka_shop.py <folder> <servers> [failpoint] [nth]``.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from support.stream_shop import SCHEMA

from weirflow import Session, Trigger
from weirflow.failpoints import watch_failpoints

TOPIC = "orders"


def live(folder: Path, servers: str, point: str, nth: int) -> None:
    """Write all files to the topic, one a batch; die when a failpoint is reached for the nth time."""
    seen = 0

    def die(name: str) -> None:
        nonlocal seen
        seen += name == point
        if name == point and seen == nth:
            os.kill(os.getpid(), signal.SIGKILL)

    watch_failpoints(die)
    with Session.embedded(cores=2, driver_memory="1g", progress="off") as session:
        rows = session.read_stream("json", folder / "inbox", schema=SCHEMA, maxFilesPerTrigger=1)
        records = rows.selectExpr("customer AS key", "CAST(amount AS STRING) AS value")
        writer = records.write_stream().format("kafka-transactions").trigger(Trigger.available_now())
        writer.options(**{"topic": TOPIC, "kafka.bootstrap.servers": servers, "checkpointLocation": folder / "saved"})
        with writer.start() as query:
            print("started", flush=True)  # noqa: T201 - for the parent
            query.await_termination()


if __name__ == "__main__":
    live(
        Path(sys.argv[1]),
        sys.argv[2],
        sys.argv[3] if len(sys.argv) > 3 else "",
        int(sys.argv[4]) if len(sys.argv) > 4 else 0,
    )
