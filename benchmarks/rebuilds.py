"""Ticks whose delta is as large as what is there, against building the view from nothing.

    python benchmarks/rebuilds.py [--rows N] [--rounds N] [--views NAME ...] [--kinds NAME ...]

Each view is loaded over N rows. Then one tick changes a tenth, half, all or twice as many rows: it inserts, or it
replaces (each replaced row is two of the delta). Side by side with it a new flow loads the rows as they are afterwards,
and DuckDB computes the view of them, which it has in memory. The views are compared after every tick. Figures are CPU
seconds, the least of the rounds. Hot keys are measured too: views over a join of a table with itself, of which one
percent has the same key. Writes benchmarks/results/rebuilds.json.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from weirflow.ivm import compiled
from weirflow.ivm.flow import IncrementalFlow
from weirflow.ivm.zset.delta import DeltaBatch

RESULTS = Path(__file__).parent / "results" / "rebuilds.json"
SHARES = (0.1, 0.5, 1.0, 2.0)
COLUMNS = {
    "t": {"id": pa.int64(), "j": pa.int64(), "k": pa.int64(), "v": pa.int64(), "x": pa.float64(), "s": pa.string()},
    "u": {"j": pa.int64(), "w": pa.int64()},
}
VIEWS = {
    "sums": "SELECT k, count(*) AS n, sum(v) AS sv, avg(x) AS ax FROM t GROUP BY k",
    "sums of many groups": "SELECT j, count(*) AS n, sum(v) AS sv FROM t GROUP BY j",
    "min and max": "SELECT k, min(v) AS low, max(x) AS high FROM t GROUP BY k",
    "min and max of many groups": "SELECT j, min(v) AS low, max(s) AS high FROM t GROUP BY j",
    "count distinct": "SELECT k, count(DISTINCT v) AS n FROM t GROUP BY k",
    "distinct": "SELECT DISTINCT j, s FROM t",
    "top 100": "SELECT id, v FROM t ORDER BY v DESC, id LIMIT 100",
    "join": "SELECT t.id, t.v, u.w FROM t JOIN u ON t.j = u.j",
    "left join": "SELECT t.id, t.v, u.w FROM t LEFT JOIN u ON t.j = u.j",
    "full join": "SELECT t.id, t.v, u.w FROM t FULL JOIN u ON t.j = u.j",
    "semi join": "SELECT id, v FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.j = t.j)",
    "anti join": "SELECT id, v FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.j = t.j)",
    "sums of a join": "SELECT t.k, count(*) AS n, sum(u.w) AS sw FROM t JOIN u ON t.j = u.j GROUP BY t.k",
    "intersect": "SELECT j FROM t INTERSECT SELECT j FROM u",
    "except": "SELECT j FROM t EXCEPT SELECT j FROM u",
    "except all": "SELECT j FROM t EXCEPT ALL SELECT j FROM u",
    "union all": "SELECT j, v FROM t UNION ALL SELECT j, w FROM u",
}
HOT = {
    "hot: one side": "SELECT a.k, count(*) AS n, sum(b.v) AS sv FROM t a JOIN t b ON a.k = b.k GROUP BY a.k",
    "hot: extremes": "SELECT a.k, min(b.v) AS low, max(b.x) AS high FROM t a JOIN t b ON a.k = b.k GROUP BY a.k",
    "hot: both sides": "SELECT a.k, sum(a.v) AS sa, sum(b.v) AS sb FROM t a JOIN t b ON a.k = b.k GROUP BY a.k",
    "hot: products": "SELECT a.k, sum(a.v % 1000 * b.v) AS sv FROM t a JOIN t b ON a.k = b.k GROUP BY a.k",
}
HOT_SHARE = 100
"""One of so many rows has the hot key."""
MOST = 1.2
"""How many times as long as building the view a tick may take, before it is marked."""

Tables = Mapping[str, pa.Table]


@dataclass(frozen=True)
class Change:
    """Tables as they are, and what changes them."""

    before: Tables
    delta: Mapping[str, DeltaBatch]
    after: Tables


def made(name: str, count: int, first: int, total: int, dice: np.random.Generator) -> pa.Table:
    """Rows of a table, with ids from ``first`` on."""
    data: dict[str, np.ndarray]
    if name == "u":
        data = {"j": dice.integers(0, total // 4, count), "w": dice.integers(0, 1000, count)}
    else:
        j = dice.integers(0, total // 4, count)
        data = {
            "id": np.arange(first, first + count),
            "j": j,
            "k": j % max(total // 100, 1),
            "v": dice.integers(0, 1_000_000, count),
            "x": dice.integers(0, 1 << 20, count) / 64,
            "s": np.array([f"name {number}" for number in range(1000)])[dice.integers(0, 1000, count)],
        }
    return pa.table({column: pa.array(data[column], kind) for column, kind in COLUMNS[name].items()})


def inserted(rows: int, share: float) -> Change:
    """A delta that inserts this share of the rows."""
    dice = np.random.default_rng(7)
    before = {name: made(name, size, 0, rows, dice) for name, size in (("t", rows), ("u", rows // 10))}
    new = {name: made(name, int(len(old) * share), len(old), rows, dice) for name, old in before.items()}
    delta = {name: DeltaBatch.from_inserts(table) for name, table in new.items()}
    return Change(before, delta, {name: pa.concat_tables([before[name], new[name]]) for name in new})


def replaced(rows: int, share: float) -> Change:
    """A delta that retracts and inserts, together this share of the rows."""
    whole = inserted(rows, share / 2)
    count = {name: len(delta) for name, delta in whole.delta.items()}
    delta = {
        name: DeltaBatch.from_updates(old.slice(0, count[name]), whole.delta[name].inserts())
        for name, old in whole.before.items()
    }
    return Change(whole.before, delta, {name: whole.after[name].slice(count[name]) for name in delta})


KINDS: dict[str, Callable[[int, float], Change]] = {"insert": inserted, "replace": replaced}


def loaded(sql: str, tables: Tables) -> tuple[IncrementalFlow, float]:
    """A flow whose view has these rows, and the CPU seconds it took to load them."""
    flow = IncrementalFlow()
    for name, columns in COLUMNS.items():
        flow.register_source(name, pa.schema(columns))
    flow.register_view("view", sql)
    begun = time.process_time()
    flow.tick(dict(tables))
    return flow, time.process_time() - begun


def recomputed(sql: str, tables: Tables) -> tuple[pa.Table, float]:
    """What DuckDB finds, and the CPU seconds of the query alone."""
    with duckdb.connect() as connection:
        for name, table in tables.items():
            connection.register(f"given_{name}", table)
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM given_{name}")
        begun = time.process_time()
        connection.execute(f"CREATE TABLE result AS {sql}")
        spent = time.process_time() - begun
        return connection.table("result").to_arrow_table(), spent


def is_whole(kind: pa.DataType) -> bool:
    """Whether values of the type are whole numbers."""
    return bool(pa.types.is_integer(kind) or (pa.types.is_decimal(kind) and kind.scale == 0))


def digest(table: pa.Table) -> tuple[int, int]:
    """How many rows a table has, and the sum of their hashes: equal for equal multisets."""
    with duckdb.connect() as connection:
        connection.register("found", table)
        # DuckDB's sum of integers is wider than ours.
        columns = [f"CAST({one.name} AS HUGEINT)" if is_whole(one.type) else one.name for one in table.schema]
        query = f"SELECT count(*), sum(CAST(hash({', '.join(columns)}) AS HUGEINT)) FROM found"
        counted, total = connection.execute(query).fetchone() or (0, None)
        return int(counted), int(total or 0)


def measured(sql: str, change: Change, rounds: int) -> dict[str, float]:
    """The least CPU seconds of a tick, of loading from nothing, and of DuckDB."""
    best = dict.fromkeys(("tick", "build", "duckdb"), float("inf"))
    for _ in range(rounds):
        flow, _unused = loaded(sql, change.before)
        begun = time.process_time()
        flow.tick(dict(change.delta))
        best["tick"] = min(best["tick"], time.process_time() - begun)
        fresh, spent = loaded(sql, change.after)
        best["build"] = min(best["build"], spent)
        expected, spent = recomputed(sql, change.after)
        best["duckdb"] = min(best["duckdb"], spent)
        seen = [digest(table) for table in (flow.snapshot("view"), fresh.snapshot("view"), expected)]
        assert seen[0] == seen[1] == seen[2], (sql, seen)
        flow.close()
        fresh.close()
    return best


def ticks(rows: int, rounds: int, views: Mapping[str, str], kinds: Iterable[str]) -> Iterator[dict[str, object]]:
    """One line for each view, kind and share."""
    for kind in kinds:
        for share in SHARES:
            change = KINDS[kind](rows, share)
            for name, sql in views.items():
                found = measured(sql, change, rounds)
                yield {"view": name, "kind": kind, "share": share, **found, "ratio": found["tick"] / found["build"]}


def hot_keys(rows: int, rounds: int, views: Mapping[str, str]) -> Iterator[dict[str, object]]:
    """One line for each view over a table of which many rows have one key, with the most memory it took so far."""
    dice = np.random.default_rng(7)
    table = made("t", rows, 0, rows, dice)
    hot = np.where(dice.random(rows) * HOT_SHARE < 1, -1, np.arange(rows) // 2)
    table = table.set_column(2, "k", pa.array(hot))
    tables = {"t": table, "u": made("u", 0, 0, rows, dice)}
    for name, sql in views.items():
        spent = float("inf")
        for _ in range(rounds):
            flow, taken = loaded(sql, tables)
            spent = min(spent, taken)
            # Each of the rows once more, and gone again: what comes back must be what it was.
            small = table.slice(0, rows // 1000)
            before = digest(flow.snapshot("view"))
            begun = time.process_time()
            flow.tick("t", DeltaBatch.from_inserts(small))
            flow.tick("t", DeltaBatch.from_deletes(small))
            ticked = (time.process_time() - begun) / 2
            assert digest(flow.snapshot("view")) == before
            flow.close()
        expected, duck = recomputed(sql, tables)
        assert digest(expected) == before, sql
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
        yield {"view": name, "build": spent, "tick of 0.1%": ticked, "duckdb": duck, "peak GB": peak}


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--views", nargs="*", default=[*VIEWS, *HOT], choices=[*VIEWS, *HOT])
    parser.add_argument("--kinds", nargs="*", default=[*KINDS], choices=[*KINDS])
    arguments = parser.parse_args()
    compiled.load()
    chosen = [{name: sql for name, sql in views.items() if name in arguments.views} for views in (VIEWS, HOT)]
    lines = []
    for line in hot_keys(arguments.rows, arguments.rounds, chosen[1]):
        lines.append(line)
        print("  ".join(f"{name} {of:.2f}" if isinstance(of, float) else f"{of:<18}" for name, of in line.items()))
    print(f"{'view':<28}{'kind':<9}{'delta':>6}{'tick':>9}{'build':>9}{'DuckDB':>9}{'tick/build':>12}", flush=True)
    slow = 0
    for line in ticks(arguments.rows, arguments.rounds, chosen[0], arguments.kinds):
        lines.append(line)
        over = float(str(line["ratio"])) > MOST
        slow += over
        spans = "".join(f"{float(str(line[name])):>9.3f}" for name in ("tick", "build", "duckdb"))
        mark = "  slower" if over else ""
        print(
            f"{line['view']:<28}{line['kind']:<9}{line['share']:>6.0%}{spans}{line['ratio']:>12.2f}{mark}", flush=True
        )
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({"rows": arguments.rows, "cpu_seconds": lines}, indent=2) + "\n")
    print(f"{slow} of {len(lines)} ticks took more than {MOST:g} times as long as building the view", file=sys.stderr)


if __name__ == "__main__":
    main()
