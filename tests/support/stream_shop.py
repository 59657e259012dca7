"""A stream of files into a durable flow into Parquet files, in a process that may be killed anywhere.

As a script it is one life of it: ``stream_shop.py <folder> [failpoint] [nth]``; it prints every epoch.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

from weirflow import IncrementalFlow, Session
from weirflow.failpoints import watch_failpoints

SCHEMA = "customer STRING, amount BIGINT"
VIEWS = {
    "totals": "SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer",
    "best": "SELECT customer, total FROM totals ORDER BY total DESC, customer LIMIT 2",
}


def declare(flow: IncrementalFlow, out: Path) -> None:
    """The source, the views and their sinks."""
    flow.register_source("orders", SCHEMA)
    for name, sql in VIEWS.items():
        flow.register_view(name, sql)
        flow.sink(name, out / name, every=2)


def rows(number: int) -> list[dict[str, object]]:
    """The rows of the file of this number."""
    chosen = random.Random(number)
    return [{"customer": chosen.choice("abcde"), "amount": chosen.randrange(100)} for _ in range(4)]


def land(folder: Path, files: int) -> None:
    """Write all files, each a second later than the one before, which is the order that Spark reads them in."""
    folder.mkdir(parents=True)
    begin = time.time() - files
    for number in range(files):
        path = folder / f"{number:03d}.json"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows(number)))
        os.utime(path, (begin + number, begin + number))


def live(folder: Path, point: str, nth: int) -> None:
    """Take in all files; die when a failpoint is reached for the nth time."""
    seen = 0

    def die(name: str) -> None:
        nonlocal seen
        seen += name == point
        if name == point and seen == nth:
            os.kill(os.getpid(), signal.SIGKILL)

    watch_failpoints(die)
    with Session.single_node(folder / "session", cores=2, driver_memory="1g", progress="off") as session:
        flow = session.flow("shop", checkpoint_every=4)
        declare(flow, folder / "out")
        flow.on_delta("totals", lambda epoch, _: print(f"epoch {epoch}", flush=True))  # noqa: T201 - for the parent
        stream = session.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(folder / "inbox"))
        with flow.attach(stream, "orders", trigger="available now") as attachment:
            attachment.await_termination()


if __name__ == "__main__":
    live(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "", int(sys.argv[3]) if len(sys.argv) > 3 else 0)
