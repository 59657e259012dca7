"""The queries of a benchmark as views, compared with Spark after every refresh of its tables."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
from support.maintained import Maintained, comparable

from weirflow.ivm.zset.delta import DeltaBatch
from weirflow.sql.types import nullable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from weirflow import Session

Row = tuple[Any, ...]
Changes = dict[str, list[tuple[Row, int]]]


class Views(Protocol):
    """Views over tables that change."""

    @property
    def views(self) -> Mapping[str, Counter[Row]]:
        """Their rows."""

    @property
    def schemas(self) -> Mapping[str, pa.Schema]:
        """Their columns."""

    def tick(self, changes: Mapping[str, Sequence[tuple[Row, int]]]) -> object:
        """Apply weighted rows to tables."""


class FlowViews:
    """Views of a Session's flow, as Spark reads them; none of them may be recomputed."""

    def __init__(self, flow: Any, sources: Mapping[str, pa.Schema], queries: Mapping[str, str]) -> None:
        self._flow = flow
        self._sources = sources
        for name, schema in sources.items():
            flow.register_source(name, schema)
        for name, sql in queries.items():
            flow.register_view(name, sql)
        self._names = list(queries)
        assert [one.name for one in flow.describe().relations if one.kind == "diff"] == []

    @property
    def views(self) -> Mapping[str, Counter[Row]]:
        return {name: _rows(self._flow.snapshot(name)) for name in self._names}

    @property
    def schemas(self) -> Mapping[str, pa.Schema]:
        return {name: self._flow.schema(name) for name in self._names}

    def tick(self, changes: Mapping[str, Sequence[tuple[Row, int]]]) -> object:
        return self._flow.tick({name: _delta(self._sources[name], rows) for name, rows in changes.items() if rows})


class BenchmarkOracle:
    """Ticks views and asks Spark for the same queries over the same tables.

    Args:
        session: whose Spark is asked.
        sources: the tables.
        queries: what is asked, by the names of the views.
        kinds: the views, kept in one way or another.

    Attributes:
        filled: the views that have had a row with a value in it.
        differing: what was not equal, and after how many ticks.
    """

    def __init__(
        self, session: Session, sources: Mapping[str, pa.Schema], queries: Mapping[str, str], *kinds: Views
    ) -> None:
        self._session = session
        self._queries = queries
        self._kinds = kinds
        self._tables = Maintained(sources, {})
        self._stale: set[str] = set()
        self._ticks = 0
        self.filled: set[str] = set()
        self.differing: list[str] = []

    def tick(self, changes: Changes) -> None:
        """Apply weighted rows to the tables and to those of all views."""
        self._ticks += 1
        self._stale |= set(changes)
        for one in (self._tables, *self._kinds):
            one.tick(changes)

    def ask(self) -> None:
        """Compare all views with Spark's answers, types included."""
        while self._stale:
            name = self._stale.pop()
            self._session.register(name, self._tables.table(name))
        kinds = [(type(views).__name__, views.views, views.schemas) for views in self._kinds]
        for name, sql in self._queries.items():
            answer = self._session.sql(sql).to_arrow()
            rows, types = _rows(answer), [nullable(kind) for kind in answer.schema.types]
            for kind, views, schemas in kinds:
                what = f"{name} of {kind} after {self._ticks} ticks"
                self._compare(what, views[name], rows)
                found = [nullable(one) for one in schemas[name].types]
                if (schemas[name].names, found) != (answer.schema.names, types):
                    self.differing.append(f"{what}: {schemas[name]} instead of {answer.schema}")
            if any(value is not None for row in rows for value in row):
                self.filled.add(name)

    def _compare(self, what: str, found: Counter[Row], expected: Counter[Row]) -> None:
        if found != expected:
            lost, extra = list((expected - found).items())[:2], list((found - expected).items())[:2]
            self.differing.append(f"{what}: lacks {lost}, has {extra}")


def _rows(table: pa.Table) -> Counter[Row]:
    columns = [[comparable(value) for value in column.to_pylist()] for column in table.columns]
    return Counter(zip(*columns, strict=True))


def _delta(schema: pa.Schema, rows: Sequence[tuple[Row, int]]) -> DeltaBatch:
    columns = [pa.array([row[at] for row, _ in rows], kind) for at, kind in enumerate(schema.types)]
    table = pa.table(columns, schema=schema)
    return DeltaBatch.from_weighted(
        table.append_column("_weight", pa.array([weight for _, weight in rows], pa.int64()))
    )
