"""What a refresh of a materialized view costs: TPC-H's queries on Iceberg or Delta, side by side with Spark.

    python benchmarks/refresh.py [--scale F] [--queries N ...] [--format iceberg|delta] [--policy P] [--shares F ...]
                                 [--writes merge-on-read|copy-on-write]

Each query is a materialized view, and a plain table that Spark overwrites with the result of the same query, in the
same session. Orders and their lines change, a half of the chosen orders by updates, a quarter by deletions and a
quarter by insertions; keys are drawn from all orders, so that nearly every file of a table is touched. After each
change all views are refreshed, and all plain tables overwritten, the one first for every second query. No time counts
unless the two tables are equal as multisets. One small change before the others is not counted. Changing the tables,
and building the state with the first refresh, are not charged to anyone; the latter is reported apart.

CPU is that of this process and all below it: driver, JVM and Python workers. Prints seconds, ratios and how the refresh
was done, and writes benchmarks/results/refresh-<format>.json.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
from tpch_tables import QUERIES, TpchTables

from weirflow import Session

RESULTS = Path(__file__).parent / "results"
SHARES = (0.0001, 0.001, 0.01, 0.1)
POLICIES = ("auto", "incremental", "full")
WARM_UP = 0.0001
MERGE_ON_READ, COPY_ON_WRITE = "merge-on-read", "copy-on-write"
PROPERTIES = {
    ("iceberg", MERGE_ON_READ): {f"write.{one}.mode": MERGE_ON_READ for one in ("merge", "update", "delete")},
    ("iceberg", COPY_ON_WRITE): {f"write.{one}.mode": COPY_ON_WRITE for one in ("merge", "update", "delete")},
    ("delta", MERGE_ON_READ): {"delta.enableChangeDataFeed": "true"},
    ("delta", COPY_ON_WRITE): {"delta.enableChangeDataFeed": "false", "delta.enableDeletionVectors": "false"},
}
"""Those of the tables that change: they write changes down, or rewrite files whole."""
KEYS = {"orders": ("o_orderkey",), "lineitem": ("l_orderkey", "l_linenumber")}
LONG = 5.0
"""Seconds of a full refresh from which on it counts for the median."""
MOST_OF_FULL, MOST_ABOVE_FULL = 1.1, 1.0
"""A refresh should take no more than this part of a full one, and so many seconds."""
VIEWS = {**QUERIES, 18: QUERIES[18].replace("sum(l_quantity)\n", "sum(l_quantity) AS quantity\n", 1)}
"""The queries; Delta has no columns with parentheses in their names."""


@dataclass(frozen=True)
class Spent:
    """What a call took, in seconds: by the clock, and of all cores."""

    seconds: float
    cpu: float


@dataclass(frozen=True)
class Measured:
    """One query after one change.

    Attributes:
        query: its number.
        share: which part of the orders changed.
        mode: how the view was refreshed.
        code: why it was refreshed in full; None if it was not.
        refresh: what that took.
        spark: what overwriting the plain table took.
    """

    query: int
    share: float
    mode: str
    code: str | None
    refresh: Spent
    spark: Spent

    @property
    def ratio(self) -> float:
        """How many times as long as the refresh Spark took."""
        return self.spark.seconds / self.refresh.seconds

    @property
    def is_too_slow(self) -> bool:
        """Whether one would rather have had a full refresh."""
        return self.refresh.seconds > MOST_OF_FULL * self.spark.seconds + MOST_ABOVE_FULL


@dataclass(frozen=True)
class Change:
    """Some orders with their lines: the keys of those that go, and rows that are new or instead of others."""

    gone: Any
    rows: Mapping[str, pa.Table]


class Orders:
    """Which orders there are, as changes go on."""

    def __init__(self, scale: float) -> None:
        self._tables = TpchTables(scale)
        self._alive = np.arange(self._tables.orders)
        self._next = self._tables.orders
        self._random = np.random.default_rng(1)

    def base(self) -> dict[str, pa.RecordBatch]:
        """All tables, before the first change."""
        return self._tables.small() | self._tables.of_orders(self._alive)

    def change(self, share: float) -> Change:
        """The next change, of this share of the orders."""
        size = max(4, round(self._tables.orders * share))
        touched = self._random.choice(self._alive, size - size // 4, replace=False)
        gone, updated = touched[: size // 4], touched[size // 4 :]
        added, values = self._fresh(size // 4), self._fresh(len(updated))
        self._alive = np.concatenate([np.setdiff1d(self._alive, gone, assume_unique=True), added])
        new, instead = self._tables.of_orders(added), self._tables.of_orders(values)
        of = dict(zip(values.tolist(), updated.tolist(), strict=True))
        rows = {name: pa.concat_tables([pa.table(new[name]), _renamed(instead[name], of)]) for name in KEYS}
        return Change(gone, rows)

    def _fresh(self, count: int) -> Any:
        self._next += count
        return np.arange(self._next - count, self._next)


def _renamed(rows: pa.RecordBatch, keys: Mapping[int, int]) -> pa.Table:
    """The values of some orders, under the keys of others."""
    renamed = pa.array([keys[key] for key in rows.column(0).to_pylist()], rows.schema.field(0).type)
    return pa.table([renamed, *rows.columns[1:]], schema=rows.schema)


class Lake:
    """The tables and views, in the current schema of a Session."""

    def __init__(self, session: Session, kind: str, policy: str, writes: str = MERGE_ON_READ) -> None:
        self._session = session
        self._kind = kind
        self._policy = policy
        self._properties = PROPERTIES[kind, writes]
        if kind == "iceberg":
            session.sql("CREATE NAMESPACE iceberg.tpch")
            session.sql("USE iceberg.tpch")

    def load(self, tables: Mapping[str, pa.RecordBatch]) -> None:
        """Make the tables that the queries read."""
        properties = ", ".join(f"'{name}' = '{value}'" for name, value in self._properties.items())
        for name, rows in tables.items():
            self._session.register("loaded", self._session.from_arrow(pa.table(rows)).repartition(2))
            self._session.sql(
                f"CREATE TABLE {name} USING {self._kind} TBLPROPERTIES ({properties}) AS SELECT * FROM loaded"
            )

    def define(self, query: int) -> dict[str, float]:
        """Make the view of a query and its plain table, both filled; returns what building the state took."""
        sql, using = VIEWS[query], f"USING {self._kind}"
        properties = f"TBLPROPERTIES (refresh_policy = '{self._policy}')"
        self._session.sql(f"CREATE MATERIALIZED VIEW {_view(query)} {using} {properties} AS {sql}")
        self._session.sql(f"CREATE TABLE {_plain(query)} {using} AS {sql}")
        cost = self._session.materialized(_view(query)).refresh().cost
        return {"first_s": cost.seconds, "state_s": cost.state_seconds}

    def apply(self, change: Change) -> None:
        """Change orders and lines: one commit for those that go, and one for the others."""
        self._session.register("gone", self._session.from_arrow(pa.table({"key": change.gone})))
        for name, keys in KEYS.items():
            self._session.register("changed", self._session.from_arrow(change.rows[name]))
            same = " AND ".join(f"t.{key} = s.{key}" for key in keys)
            self._session.sql(f"MERGE INTO {name} t USING gone s ON t.{keys[0]} = s.key WHEN MATCHED THEN DELETE")
            self._session.sql(
                f"MERGE INTO {name} t USING changed s ON {same} "
                "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
            )

    def measure(self, query: int, share: float, *, ours_first: bool) -> Measured:
        """Bring both tables of a query up to date. Ends the program when they differ."""
        records: list[Any] = []

        def refresh() -> None:
            records.append(self._session.materialized(_view(query)).refresh())

        def overwrite() -> None:
            self._session.sql(f"INSERT OVERWRITE {_plain(query)} {VIEWS[query]}")

        calls: list[Callable[[], None]] = [refresh, overwrite] if ours_first else [overwrite, refresh]
        spent = [cost_of(call) for call in calls]
        ours, theirs = self._rows(_view(query)), self._rows(_plain(query))
        if ours != theirs:
            raise SystemExit(f"q{query} is wrong: only ours {ours - theirs}, only Spark's {theirs - ours}")
        refreshed, spark = spent if ours_first else reversed(spent)
        return Measured(query, share, records[0].mode, records[0].code, refreshed, spark)

    def _rows(self, table: str) -> Counter[tuple[Any, ...]]:
        columns = self._session.table(table).to_arrow().columns
        return Counter(zip(*(column.to_pylist() for column in columns), strict=True))


def _view(query: int) -> str:
    return f"view_q{query}"


def _plain(query: int) -> str:
    return f"plain_q{query}"


def cost_of(call: Callable[[], None]) -> Spent:
    """What a call takes."""
    cpu, begun = _cpu_seconds(), time.perf_counter()
    call()
    return Spent(round(time.perf_counter() - begun, 3), round(_cpu_seconds() - cpu, 2))


def _cpu_seconds() -> float:
    """Of this process and all below it, also those that have ended meanwhile."""
    parents: dict[int, list[int]] = {}
    ticks: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):  # it has just ended
            continue
        pid = int(folder.name)
        ticks[pid] = sum(map(int, fields[11:15]))
        parents.setdefault(int(fields[1]), []).append(pid)

    def below(pid: int) -> Iterator[int]:
        yield pid
        for child in parents.get(pid, ()):
            yield from below(child)

    return sum(ticks.get(pid, 0) for pid in below(os.getpid())) / os.sysconf("SC_CLK_TCK")


def summary(measured: Sequence[Measured]) -> list[str]:
    """What the figures say, a line for each share, and one for each refresh that took too long."""
    lines = []
    for share in dict.fromkeys(one.share for one in measured):
        here = [one for one in measured if one.share == share]
        long = [one.ratio for one in here if one.spark.seconds >= LONG]
        total = sum(one.refresh.seconds for one in here) / sum(one.spark.seconds for one in here)
        cpu = sum(one.refresh.cpu for one in here) / max(sum(one.spark.cpu for one in here), 0.01)
        modes = Counter(one.mode if one.code is None else f"{one.mode} {one.code}" for one in here)
        lines.append(
            f"{share:.2%}: Spark / refresh {median(one.ratio for one in here):.2f} in the median, "
            f"{f'{median(long):.2f}' if long else 'no query'} of those with {LONG:g} s and more; "
            f"all refreshes {total:.2f} of Spark's time, {cpu:.2f} of its CPU; "
            + ", ".join(f"{count} {mode}" for mode, count in modes.items())
        )
    lines += [
        f"q{one.query} at {one.share:.2%} took more than {MOST_OF_FULL:g} x Spark + {MOST_ABOVE_FULL:g} s: "
        f"{one.refresh.seconds:.1f} s, Spark {one.spark.seconds:.1f} s"
        for one in measured
        if one.is_too_slow
    ]
    return lines


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=0.1, help="TPC-H's scale factor; 1 has 6 million lines")
    parser.add_argument("--queries", type=int, nargs="+", choices=sorted(QUERIES), default=sorted(QUERIES), metavar="N")
    parser.add_argument("--shares", type=float, nargs="+", default=SHARES, help="parts of the orders that change")
    parser.add_argument("--format", choices=("iceberg", "delta"), default="iceberg")
    parser.add_argument("--policy", choices=POLICIES, default="auto", help="the refresh_policy of the views")
    parser.add_argument(
        "--writes",
        choices=(MERGE_ON_READ, COPY_ON_WRITE),
        default=MERGE_ON_READ,
        help="how the tables keep changes: written down (of Delta: a change data feed), or by rewriting files",
    )
    return parser.parse_args()


def shown(one: Measured) -> str:
    """One line of the table."""
    return (
        f"{f'q{one.query}':<7}{one.share:>8.2%}{one.refresh.seconds:>11.2f}{one.spark.seconds:>9.2f}"
        f"{one.ratio:>7.2f}{one.refresh.cpu:>8.1f}{one.spark.cpu:>11.1f}  {one.mode} {one.code or ''}".rstrip()
    )


def write_report(arguments: argparse.Namespace, first: Mapping[int, Any], measured: Sequence[Measured]) -> None:
    """Write the JSON, with what was measured until now."""
    RESULTS.mkdir(exist_ok=True)
    lines = summary(measured)
    report = {**vars(arguments), "first": first, "measured": [asdict(one) for one in measured], "summary": lines}
    (RESULTS / f"refresh-{arguments.format}.json").write_text(json.dumps(report, indent=2) + "\n")


def main() -> None:
    """Print the table and write the JSON."""
    arguments = _arguments()
    orders = Orders(arguments.scale)
    measured: list[Measured] = []
    with Session.embedded(cores=2, driver_memory="4g", packages=[arguments.format], progress="off") as session:
        lake = Lake(session, arguments.format, arguments.policy, arguments.writes)
        print(f"making tables of scale {arguments.scale}", file=sys.stderr)
        lake.load(orders.base())
        first = {}
        for query in arguments.queries:
            print(f"first refresh of q{query}", file=sys.stderr)
            first[query] = lake.define(query)
        for number, share in enumerate((WARM_UP, *arguments.shares)):
            lake.apply(orders.change(share))
            for place, query in enumerate(arguments.queries):
                print(f"change {number} of {len(arguments.shares)}, q{query}", file=sys.stderr)
                found = lake.measure(query, share, ours_first=place % 2 == 0)
                print(f"  {shown(found)}", file=sys.stderr)
                measured += [found] if number else []
                write_report(arguments, first, measured)  # what is there counts, should it not come to its end
    print(f"scale {arguments.scale:g} on {arguments.format}, {arguments.writes}, refresh_policy {arguments.policy}")
    print(f"{'query':<7}{'change':>8}{'refresh s':>11}{'Spark s':>9}{'ratio':>7}{'CPU s':>8}{'Spark CPU':>11}  how")
    for one in measured:
        print(shown(one))
    print("\n".join(summary(measured)))


if __name__ == "__main__":
    main()
