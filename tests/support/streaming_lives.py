"""Streaming queries into files, Iceberg and Kafka, in a process that may be killed anywhere.

As a script it is one life of one: ``streaming_lives.py <kind> <folder> <servers>``.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from weirflow import Session, Trigger

START = datetime(2024, 1, 1, tzinfo=UTC)
SCHEMA = "at TIMESTAMP, customer STRING, amount BIGINT"
TABLE = "iceberg.streams.totals"
IN, OUT = "orders", "copies"
Row = tuple[datetime, str, int]


def rows(number: int) -> list[Row]:
    """The rows of the file of this number: half a minute, not in order."""
    chosen = random.Random(number)
    moments = [30 * number + chosen.randrange(30) for _ in range(5)]
    return [(START + timedelta(seconds=at), chosen.choice("abc"), chosen.randrange(100)) for at in moments]


def land(folder: Path, files: int) -> None:
    """Write all files, each a second later than the one before, which is the order that Spark reads them in."""
    folder.mkdir(parents=True)
    begin = time.time() - files
    for number in range(files):
        path = folder / f"{number:03d}.json"
        lines = [
            {"at": at.isoformat(), "customer": customer, "amount": amount} for at, customer, amount in rows(number)
        ]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        os.utime(path, (begin + number, begin + number))


def totals(files: int) -> Counter[tuple[datetime, str, int, int]]:
    """What a run that never died writes: the windows of two minutes that are final, by customer."""
    every = [row for number in range(files) for row in rows(number)]
    last = max(at for at, _, _ in every) - timedelta(seconds=30)
    groups: dict[tuple[datetime, str], list[int]] = {}
    for at, customer, amount in every:
        groups.setdefault((at - (at - START) % timedelta(minutes=2), customer), []).append(amount)
    return Counter(
        (begin, customer, len(amounts), sum(amounts))
        for (begin, customer), amounts in groups.items()
        if begin + timedelta(minutes=2) <= last
    )


def opened(kind: str, folder: Path) -> Session:
    """The Session of a life."""
    packages = [] if kind == "parquet" else [kind]
    return Session.single_node(folder / "session", packages=packages, cores=2, driver_memory="1g", progress="off")


def writer(session: Session, kind: str, folder: Path, servers: str) -> Any:
    """The query of this kind."""
    if kind == "kafka":
        kafka = {"kafka.bootstrap.servers": servers}
        records = session.read_stream(
            "kafka", subscribe=IN, startingOffsets="earliest", maxOffsetsPerTrigger=5, **kafka
        ).select("key", "value")
        return records.write_stream().format("kafka-transactions").options(**kafka, topic=OUT)
    stream = session.read_stream("json", folder / "inbox", schema=SCHEMA, maxFilesPerTrigger=1)
    windows = stream.with_event_time("at", watermark="30 seconds").key_by("customer").tumbling_window(120_000)
    made = windows.agg(["count(*) AS n", "sum(amount) AS total"]).selectExpr(
        "window.start AS begin", "customer", "n", "total"
    )
    if kind == "parquet":
        return made.write_stream().format("parquet").option("path", folder / "out")
    session.sql(
        f"CREATE TABLE IF NOT EXISTS {TABLE} (begin TIMESTAMP, customer STRING, n BIGINT, total BIGINT) USING iceberg"
    )
    return made.write_stream().format("iceberg").table(TABLE)


def live(kind: str, folder: Path, servers: str) -> None:
    """Take in all there is."""
    with opened(kind, folder) as session:
        made = writer(session, kind, folder, servers).option("checkpointLocation", folder / "saved")
        with made.trigger(Trigger.available_now()).start() as query:
            query.await_termination()


if __name__ == "__main__":
    live(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
