"""Tables and materialized views of a shop, on Iceberg or Delta, and whether a view holds what its own commit names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from weirflow.materialized.opened import find_view
from weirflow.materialized.sources import SourceTables
from weirflow.materialized.target import Target

if TYPE_CHECKING:
    from random import Random

    import pytest

    from weirflow import Session
    from weirflow.materialized.target import Holding
    from weirflow.materialized.view import MaterializedView
    from weirflow.spark.frames.frame import DataFrame

TOTALS = (
    "SELECT c.region, o.customer, SUM(o.amount) AS total, COUNT(*) AS orders "
    "FROM {orders} o JOIN {customers} AS c ON o.customer = c.name GROUP BY c.region, o.customer"
)
COPIES = "SELECT customer, amount FROM {orders} WHERE amount > 1"
MERGED_ON_READ = "'write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read'"
_HERE = "weirflow.materialized.refresh.FEW_ROWS", "weirflow.flows.small_stages.FEW_ROWS"
_READ = ("weirflow.materialized.refresh._FEW",)
_REWRITTEN = ("weirflow.flows.sinks.whole_rows._FEW",)
PATHS: Mapping[str, Sequence[str]] = {
    "here": (),
    "here, merged": _REWRITTEN,
    "on executors": _HERE,
    "on executors, merged": (*_HERE, *_READ),
}
"""Ways that a refresh goes, by where changes are read and how they come into the table: up to how many rows are few is
set below none for each."""
_NAMES = ("ann", "bob", "cid", "dan")


class Lake:
    """Tables and views of one kind, dropped at the end.

    Args:
        session: whose they are.
        kind: ``iceberg`` or ``delta``.
    """

    def __init__(self, session: Session, kind: str) -> None:
        self.session, self.kind = session, kind
        self.made: list[str] = []
        self.orders, self.customers = self.name("orders"), self.name("customers")

    def fill(self) -> None:
        """Make the tables."""
        self.table("orders", "id BIGINT, customer STRING, amount BIGINT")
        self.table("customers", "name STRING, region STRING")
        if self.kind == "delta":  # of the other one the files are compared
            self.session.spark.sql("ALTER TABLE customers SET TBLPROPERTIES (delta.enableChangeDataFeed = true)")
        self.sql("INSERT INTO {orders} VALUES (1, 'ann', 5), (2, 'bob', 7), (3, 'bob', 7)")
        self.sql("INSERT INTO {customers} VALUES ('ann', 'north'), ('bob', 'south')")

    def name(self, name: str) -> str:
        return f"iceberg.mv.{name}" if self.kind == "iceberg" else name

    def table(self, name: str, columns: str) -> str:
        self.session.spark.sql(f"CREATE TABLE {self.name(name)} ({columns}) USING {self.kind}")
        self.made.append(self.name(name))
        return self.name(name)

    def view(self, query: str, name: str = "view", policy: str = "incremental") -> MaterializedView:
        self.sql(
            f"CREATE MATERIALIZED VIEW {self.name(name)} USING {self.kind} "
            f"TBLPROPERTIES (refresh_policy = '{policy}') AS {query}"
        )
        self.made.append(self.name(name))
        return self.session.materialized(self.name(name))

    def sql(self, text: str) -> DataFrame:
        return self.session.sql(text.format(orders=self.orders, customers=self.customers))

    def change(self, chosen: Random, number: int) -> None:
        """Change a few rows of both tables: some come, some go, and some are others afterwards."""
        known = 10 * (number + 1)
        rows = ", ".join(
            f"({known + place}, '{chosen.choice(_NAMES)}', {chosen.randrange(9)})"
            for place in range(chosen.randrange(1, 8))
        )
        self.sql(f"INSERT INTO {{orders}} VALUES {rows}")
        self.sql(f"DELETE FROM {{orders}} WHERE id = {chosen.randrange(known)}")
        self.sql(f"UPDATE {{orders}} SET amount = amount + 1 WHERE id % 10 = {chosen.randrange(10)}")
        if chosen.random() < 0.3:
            name = chosen.choice(_NAMES)
            self.sql(f"DELETE FROM {{customers}} WHERE name = '{name}'")
            self.sql(f"INSERT INTO {{customers}} VALUES ('{name}', 'region {number % 5}')")

    def versions(self, table: str) -> list[Any]:
        if self.kind == "delta":
            found = self.session.spark.sql(f"DESCRIBE HISTORY {table}").select("version")
        else:
            found = self.session.spark.sql(f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at DESC")
        return [row[0] for row in found.collect()]

    def roll_back(self, table: str, version: object) -> None:
        if self.kind == "delta":
            self.session.sql(f"RESTORE TABLE {table} TO VERSION AS OF {version}")
        else:
            self.session.sql(f"CALL iceberg.system.rollback_to_snapshot('{table}', {version})")

    def compact(self, table: str) -> None:
        if self.kind == "delta":
            self.session.sql(f"OPTIMIZE {table}")
        else:
            options = "options => map('rewrite-all', 'true')"
            self.session.sql(f"CALL iceberg.system.rewrite_data_files(table => '{table}', {options})")

    def close(self) -> None:
        for name in reversed(self.made):
            self.session.spark.sql(f"DROP TABLE IF EXISTS {name}")


def holding_of(session: Session, view: str) -> Holding:
    """What a view holds, by its own account."""
    return _target(session, view)[0].holding()


def holds_what_it_names(session: Session, view: str) -> bool:
    """Whether the table equals Spark's result of the query over the snapshots that the table's own commit names."""
    target, sources = _target(session, view)
    holding = target.holding()
    assert holding.obstacle is None, holding.obstacle
    assert holding.note is not None
    return in_order(session.spark.table(view)) == in_order(sources.query(holding.note.sources))


def is_current(session: Session, view: str) -> bool:
    """Whether it also holds the rows of the tables as they are now."""
    return holds_what_it_names(session, view) and session.materialized(view).describe().is_fresh


def in_order(frame: Any) -> list[str]:
    """The rows of a native frame, to be compared."""
    return sorted(map(str, frame.collect()))


def go(path: str, patch: pytest.MonkeyPatch) -> None:
    """Have refreshes go one of ``PATHS``, however few rows have changed."""
    for name in PATHS[path]:
        patch.setattr(name, -1)


def _target(session: Session, view: str) -> tuple[Target, SourceTables]:
    found = find_view(session.spark, view)
    assert found is not None
    sources = SourceTables(session.spark, found.definition)
    return Target(sources.native, found.table, found.kind, found.definition.id, found.place), sources
