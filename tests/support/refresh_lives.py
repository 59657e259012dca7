"""Refreshes of a materialized view in a process that is killed at a failpoint.

As a script it is one life: ``refresh_lives.py <kind> <folder> [<failpoint>]``. It looks whether the view equals its
query over the snapshots that its own commit names, adds rows to a table, and refreshes.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from weirflow import Session
from weirflow.failpoints import watch_failpoints
from weirflow.materialized.opened import find_view
from weirflow.materialized.sources import SourceTables
from weirflow.materialized.target import Target

QUERY = "SELECT customer, COUNT(*) AS orders, SUM(amount) AS total FROM {orders} GROUP BY customer"


def names(kind: str) -> tuple[str, str]:
    """Those of the table and the view."""
    return ("iceberg.shop.orders", "iceberg.shop.totals") if kind == "iceberg" else ("orders", "totals")


def opened(kind: str, folder: Path) -> Session:
    """A Session with the table and the view."""
    session = Session.single_node(folder, packages=[kind], cores=2, driver_memory="1g", progress="off")
    orders, totals = names(kind)
    session.spark.sql(f"CREATE TABLE IF NOT EXISTS {orders} (id BIGINT, customer STRING, amount BIGINT) USING {kind}")
    session.sql(
        f"CREATE MATERIALIZED VIEW IF NOT EXISTS {totals} USING {kind} "
        f"TBLPROPERTIES (refresh_policy = 'incremental') AS {QUERY.format(orders=orders)}"
    )
    return session


def equals_what_it_names(session: Session, view: str) -> bool:
    """Whether the rows are Spark's result over the versions that the table's own commit names."""
    found = find_view(session.spark, view)
    assert found is not None
    sources = SourceTables(session.spark, found.definition)
    holding = Target(sources.native, found.table, found.kind, found.definition.id, found.place).holding()
    if holding.obstacle is not None:
        return holding.note is None and session.table(view).count() == 0  # before the first refresh
    assert holding.note is not None
    return in_order(session.spark.table(view)) == in_order(sources.query(holding.note.sources))


def in_order(frame: Any) -> list[str]:
    """The rows, to be compared."""
    return sorted(map(str, frame.collect()))


def live(kind: str, folder: Path, point: str) -> None:
    """One life, to its end or to the failpoint."""

    def die(reached: str) -> None:
        if reached == point:
            os.kill(os.getpid(), signal.SIGKILL)

    with opened(kind, folder) as session:
        orders, totals = names(kind)
        assert equals_what_it_names(session, totals), "what the life before left"
        session.spark.sql(f"INSERT INTO {orders} SELECT id, concat('c', id % 3), id FROM range(7)")
        session.spark.sql(f"DELETE FROM {orders} WHERE amount = 5")
        watch_failpoints(die)
        done = session.materialized(totals).refresh()
        assert equals_what_it_names(session, totals)
        assert session.materialized(totals).describe().is_fresh
        sys.stdout.write(f"refreshed: {done.mode} {done.code}\n")


if __name__ == "__main__":
    live(sys.argv[1], Path(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else "")
