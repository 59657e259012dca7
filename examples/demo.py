"""A small shop on Spark: its orders arrive as files, two views follow them, the process is killed, nothing is lost.

Run it with ``make demo``.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from weirflow import Session

if TYPE_CHECKING:
    from weirflow import DeltaBatch, StreamingQuery
    from weirflow.flows.local import SessionFlow

# What happens in the shop; each list arrives as one file.
DAY = [
    [("insert", "ann", 30), ("insert", "bob", 12)],
    [("delete", "ann", 30), ("insert", "ann", 3)],  # Ann's 30 was a mistake
    [("insert", "cid", 25)],
    [("insert", "bob", 20)],
    [("delete", "cid", 25)],  # Cid sends everything back
    [("insert", "ann", 40)],
]
BEFORE_THE_KILL = 4
COLUMNS = "op STRING, customer_id STRING, amount BIGINT"


def open_shop(session: Session, folder: Path) -> SessionFlow:
    """The flow: a source, two views, and a sink that writes what changes. Opened again, it is as it was."""
    flow = session.flow("shop")
    flow.register_source("orders", "customer_id STRING, amount BIGINT")
    flow.register_view("order_totals", "SELECT customer_id, SUM(amount) AS total FROM orders GROUP BY customer_id")
    flow.register_view("top_customers", "SELECT * FROM order_totals ORDER BY total DESC LIMIT 1")

    flow.on_delta("order_totals", lambda epoch, delta: show(f"tick {epoch}: order_totals", delta))
    flow.on_delta("top_customers", lambda _, delta: show("        top_customers", delta))
    flow.sink("order_totals", to=folder / "changes")
    return flow


def follow_orders(session: Session, flow: SessionFlow, folder: Path) -> StreamingQuery:
    """Let every file that lands in the folder tick the flow, also those that landed while nobody was there."""
    files = session.spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).json(str(folder / "inbox"))
    return flow.attach(files, "orders", changes="op")


def serve(folder: Path) -> None:
    """What the child process does until it is killed."""
    with Session.single_node(folder / "session") as session:
        flow = open_shop(session, folder)
        stream = follow_orders(session, flow, folder)
        while flow.epoch < BEFORE_THE_KILL - 1:
            time.sleep(0.01)
        flow.checkpoint()
        say(f"A checkpoint of tick {flow.epoch} is taken; what follows is only in the log.")
        stream.await_termination()


def main() -> None:
    """Tell the story, in a temporary folder."""
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="weirflow-demo-") as name:
        folder = Path(name)
        (folder / "inbox").mkdir()

        say("A shop's orders land as files in a folder. Spark streams them into a flow, and two views follow:")
        child = subprocess.Popen([sys.executable, __file__, name])
        for number in range(1, BEFORE_THE_KILL + 1):
            land(folder, number)
            wait_for(folder, f"changes/*-{number:020d}.parquet", child)
            if number == BEFORE_THE_KILL - 1:
                wait_for(folder, "session/flows/shop/manifests/*", child)

        child.kill()
        child.wait()
        say(f"The process is killed (kill -9 {child.pid}). Nobody is there when the next file lands.")
        land(folder, BEFORE_THE_KILL + 1)

        with Session.single_node(folder / "session") as session:
            flow = open_shop(session, folder)
            say(f"Another process opens the shop: it is at tick {flow.epoch} again, and the stream goes on.")
            stream = follow_orders(session, flow, folder)
            for number in range(BEFORE_THE_KILL + 2, len(DAY) + 1):
                land(folder, number)
            stream.process_all_available()
            prove(session, flow, folder)
    say(f"All of this took {time.perf_counter() - started:.0f} seconds.")


def prove(session: Session, flow: SessionFlow, folder: Path) -> None:
    """Compare views and sink with what Spark computes from all files at once."""
    session.register("inbox", session.read_json(folder / "inbox"))
    session.register("changes", session.read_parquet(folder / "changes"))
    batch = session.sql(
        "SELECT customer_id, SUM(IF(op = 'insert', amount, -amount)) AS total FROM inbox "
        "GROUP BY customer_id HAVING SUM(IF(op = 'insert', 1, -1)) > 0"
    )
    sunk = session.sql("SELECT customer_id, total FROM changes GROUP BY customer_id, total HAVING SUM(_weight) > 0")

    expected = sorted(batch.to_arrow().to_pylist(), key=str)
    for what, rows in [("the view", flow.snapshot("order_totals")), ("the sink", sunk.to_arrow())]:
        if sorted(rows.to_pylist(), key=str) != expected:
            raise SystemExit(f"{what} is wrong: {rows.to_pylist()} instead of {expected}")
    if flow.snapshot("top_customers").to_pylist() != [max(expected, key=lambda row: row["total"])]:
        raise SystemExit("the top customer is wrong")
    say("Checked: a batch query of Spark over all files finds the same totals as the view, and as the sink's files:")
    batch.orderBy("customer_id").show()


def land(folder: Path, number: int) -> None:
    """Put the file of this number into the folder, all at once."""
    rows = [dict(zip(("op", "customer_id", "amount"), order, strict=True)) for order in DAY[number - 1]]
    part = folder / f"{number}.part"
    part.write_text("".join(json.dumps(row) + "\n" for row in rows))
    part.rename(folder / "inbox" / f"{number}.json")


def wait_for(folder: Path, pattern: str, child: subprocess.Popen[bytes]) -> None:
    """Wait until there is a file of this name."""
    while not any(folder.glob(pattern)):
        if child.poll() is not None:
            raise SystemExit("the child process ended too early")
        time.sleep(0.01)


def show(title: str, delta: DeltaBatch) -> None:
    """Print the rows of a delta, each with its weight."""
    for row in sorted(delta.to_arrow().to_pylist(), key=lambda row: (row["_weight"], row["customer_id"])):
        print(f"  {title:<22} {row['_weight']:+d}  {row['customer_id']}  {row['total']:>3}", flush=True)
        title = ""


def say(text: str) -> None:
    """Print a line of the story."""
    print(f"\n{text}", flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        serve(Path(sys.argv[1]))
    else:
        main()
