"""Pathway: rows through its Python connector, timed from the commit to the end of the output's time.

Rows are Python dictionaries before the clock starts, and lie in the connector's queue when it does. Automatic commits
are off. Tables have primary keys, and only the columns that the view needs.

Doubles are sent as integers and divided behind the sum: Pathway 0.33.0 leaves the sum of a float column as it was
when as many rows of a group come as go in one commit.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from ticking.child import Scenario, Tick, serve
from ticking.data import DIMS, FACTS, GRAIN, WEIGHT
from ticking.views import TOP

if TYPE_CHECKING:
    from collections.abc import Callable

pw: Any = import_module("pathway")

# Pathway reports the end of a time only where the output changed: a row with this key, which counts facts, always does.
MARKER = -1
SLICE = 100_000
DEADLINE = 900
SETTLED_S = 0.5


@dataclass(frozen=True)
class Work:
    """Rows to send, and whether a commit follows."""

    added: list[dict[str, Any]]
    removed: list[dict[str, Any]]
    commit: bool = True


class Subject(pw.io.python.ConnectorSubject):  # type: ignore[misc] # Pathway is not installed where types are checked
    """A table: sends what is put into ``work``, until that is ``None``."""

    def __init__(self) -> None:
        super().__init__()
        self.work: queue.Queue[Work | None] = queue.Queue()
        self.committed_at: queue.Queue[float] = queue.Queue()

    def run(self) -> None:
        """Called by Pathway, in a thread of its own. A table whose connector has ended holds no time open."""
        while (work := self.work.get()) is not None:
            for row in work.added:
                self.next(**row)
            for row in work.removed:
                self.delete(**row)
            if work.commit:
                self.committed_at.put(time.perf_counter())
                self.commit()


class Pathway:
    """One graph for one view, run by a thread; a process opens it once."""

    version = version("pathway")

    def open(self, scenario: Scenario) -> None:
        """Build the graph, start it, and wait until the whole base has arrived."""
        self.name = scenario.view.name
        columns, build = GRAPHS[self.name]
        self.changes: list[tuple[int, bool, Any, dict[str, Any]]] = []
        self.time_ends: queue.Queue[float] = queue.Queue()
        self.columns = {"facts": columns, "dims": DIMS.names}
        subjects = {"facts": Subject(), "dims": Subject()}
        self.subject = subjects[scenario.view.changes]
        self.changing = self.columns[scenario.view.changes]
        facts = _table(subjects["facts"], columns, FACTS)
        view = build(facts, _table(subjects["dims"], DIMS.names, DIMS)) if "d" in columns else build(facts)
        self.names = list(view.column_names())
        pw.io.subscribe(view, on_change=self._changed, on_time_end=self._time_ended)
        threading.Thread(target=lambda: pw.run(monitoring_level=pw.MonitoringLevel.NONE), daemon=True).start()
        fact_rows, dim_rows = scenario.base()
        for name, rows in (("dims", dim_rows), ("facts", fact_rows)):
            for start in range(0, len(rows), SLICE):
                part = _rows(rows.slice(start, SLICE), self.columns[name])
                subjects[name].work.put(Work(part, [], commit=start + SLICE >= len(rows)))
            if name != scenario.view.changes:
                subjects[name].work.put(None)
        while self._facts_seen() < scenario.rows:
            self.time_ends.get(timeout=DEADLINE)
        self.subject.committed_at.get(timeout=DEADLINE)
        # The output is complete a moment before its time ends; that end must not be taken for the first tick's.
        with contextlib.suppress(queue.Empty):
            while True:
                self.time_ends.get(timeout=SETTLED_S)

    def tick(self, delta: pa.RecordBatch) -> Tick:
        """Send, commit, wait for the end of the time."""
        rows = _rows(delta, self.changing)
        weights = delta[WEIGHT].to_pylist()
        added = [row for row, weight in zip(rows, weights, strict=True) if weight > 0]
        removed = [row for row, weight in zip(rows, weights, strict=True) if weight < 0]
        while not self.time_ends.empty():
            self.time_ends.get()
        started = time.perf_counter()
        self.subject.work.put(Work(added, removed))
        committed = self.subject.committed_at.get(timeout=DEADLINE)
        ended = self.time_ends.get(timeout=DEADLINE)
        return Tick(ended - committed, sending=committed - started)

    def view(self) -> pa.Table:
        """The latest row of each key; the marker is left out."""
        rows: dict[Any, dict[str, Any]] = {}
        for _, is_addition, key, row in sorted(self.changes, key=lambda change: change[:2]):
            if is_addition:
                rows[key] = row
            else:
                del rows[key]
        kept = [row for row in rows.values() if row[self.names[0]] != MARKER]
        return pa.table({name: [row[name] for row in kept] for name in self.names})

    def _changed(self, key: Any, row: dict[str, Any], time: int, is_addition: bool) -> None:  # noqa: FBT001 - Pathway's
        self.changes.append((time, is_addition, key, row))

    def _time_ended(self, time: int) -> None:  # noqa: ARG002 - Pathway's signature
        self.time_ends.put(_now())

    def _facts_seen(self) -> int:
        """How many facts the output accounts for."""
        marked = self.name in {"top-10", "extremes"}
        count = self.names[-1] if marked else "n"
        return sum(
            row[count] if is_addition else -row[count]
            for _, is_addition, _, row in list(self.changes)
            if not marked or row["k"] == MARKER
        )


def _now() -> float:
    return time.perf_counter()


def _rows(batch: pa.RecordBatch, names: list[str]) -> list[dict[str, Any]]:
    if "grains" in names:
        batch = batch.append_column("grains", pc.cast(pc.multiply(batch["v"], GRAIN), pa.int64()))
    rows: list[dict[str, Any]] = batch.select(names).to_pylist()
    return rows


def _table(subject: Subject, names: list[str], schema: pa.Schema) -> Any:
    schema = schema.append(pa.field("grains", pa.int64()))
    python = {pa.int64(): int, pa.float64(): float, pa.string(): str}
    key = schema.names[0]
    columns = {
        name: pw.column_definition(dtype=python[schema.field(name).type], primary_key=name == key) for name in names
    }
    return pw.io.python.read(subject, schema=pw.schema_builder(columns), autocommit_duration_ms=None)


def group_by(facts: Any) -> Any:
    """Count, sum and mean of each key."""
    sums = facts.groupby(facts.k).reduce(facts.k, n=pw.reducers.count(), grains=pw.reducers.sum(facts.grains))
    return sums.select(sums.k, sums.n, total=sums.grains / GRAIN, mean=sums.grains / GRAIN / sums.n)


def join(facts: Any, dims: Any) -> Any:
    """Sum and count of each region."""
    joined = facts.join(dims, facts.d == dims.d).select(dims.region, facts.grains)
    sums = joined.groupby(joined.region).reduce(
        joined.region, n=pw.reducers.count(), grains=pw.reducers.sum(joined.grains)
    )
    return sums.select(sums.region, total=sums.grains / GRAIN, n=sums.n)


def top(facts: Any) -> Any:
    """The keys with the greatest sums, by one sort of all keys."""
    sums = facts.groupby(facts.k).reduce(facts.k, total=pw.reducers.sum(facts.q))
    ranked = sums.select(rank=pw.make_tuple(-sums.total, sums.k))
    best = ranked.reduce(ranks=pw.reducers.sorted_tuple(ranked.rank))
    rows = best.select(rank=_first(best.ranks)).flatten(pw.this.rank)
    found = rows.select(k=pw.declare_type(int, rows.rank[1]), total=-pw.declare_type(int, rows.rank[0]))
    return found.concat_reindex(facts.reduce(k=MARKER, total=pw.reducers.count()))


def extremes(facts: Any) -> Any:
    """Least and greatest value, and the number of distinct integers, of each key."""
    found = facts.groupby(facts.k).reduce(
        facts.k,
        low=pw.reducers.min(facts.v),
        high=pw.reducers.max(facts.v),
        kinds=pw.reducers.count_distinct(facts.q),
    )
    return found.concat_reindex(facts.reduce(k=MARKER, low=0.0, high=0.0, kinds=pw.reducers.count()))


def _first(ranks: Any) -> Any:
    return pw.apply_with_type(lambda all_ranks: all_ranks[:TOP], list[tuple[int, int]], ranks)


GRAPHS: dict[str, tuple[list[str], Callable[..., Any]]] = {
    "group-by": (["uid", "k", "grains"], group_by),
    "join": (["uid", "d", "grains"], join),
    "top-10": (["uid", "k", "q"], top),
    "extremes": (["uid", "k", "v", "q"], extremes),
    "dimension": (["uid", "d", "grains"], join),
}

if __name__ == "__main__":
    serve(Pathway)
