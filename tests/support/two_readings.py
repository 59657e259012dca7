"""Two readings of one text: the plan that Spark's analyzer makes of it, and the plan of the binder, side by side.

Both are maintained over the same ticks. They must have the same columns and rows, or the binder must refuse the text.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from support.compiled_views import compile_views
from support.generator.deltas import Tables
from support.maintained import Maintained
from support.spark_engine import plan_reader

from weirflow.errors import DataError, NotIncremental, QueryError
from weirflow.spark.errors import translate
from weirflow.sql.bind.query import bind_query
from weirflow.sql.plan import Field
from weirflow.sql.settings import USUAL
from weirflow.sql.stored import decode_plan

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from weirflow.sql.settings import SqlSettings


Row = tuple[Any, ...]
Tick = "Mapping[str, Sequence[tuple[Row, int]]]"
_NAME = "_a_view"
MANY = 40
"""How many texts are maintained in one circuit."""


@dataclass(frozen=True)
class Texts:
    """Queries by name over the same sources, and the ticks that change them."""

    sources: Mapping[str, pa.Schema]
    queries: Mapping[str, str]
    ticks: Sequence[Tick]
    chained: bool = False
    """Whether each query may read those before it."""

    def every(self, step: int) -> Texts:
        """With one query in so many."""
        return replace(self, queries=dict(list(self.queries.items())[::step]))


@dataclass
class Outcome:
    """What came of many texts."""

    texts: int = 0
    same_plans: int = 0
    """Read by both, as the same plan."""
    same_rows: int = 0
    """Read by both, as other plans with the same columns and rows."""
    refused: Counter[str] = field(default_factory=Counter)
    """Refused by the binder, by code."""
    rejected: dict[str, str] = field(default_factory=dict)
    """Rejected by Spark and read by the binder, with Spark's words."""
    recomputed: dict[str, str] = field(default_factory=dict)
    """Read by the binder and not imported, with the reason."""
    differences: list[str] = field(default_factory=list)
    rows: int = 0
    """How many rows were compared."""

    def __str__(self) -> str:
        return (
            f"{self.texts} texts: {self.same_plans} are the same plan, {self.same_rows} have the same {self.rows} "
            f"rows, {self.refused.total()} refused by the binder {dict(self.refused)}, {len(self.rejected)} rejected "
            f"by Spark alone, {len(self.recomputed)} not imported, {len(self.differences)} differences"
        )


class TwoReadings:
    """Reads texts both ways and compares.

    Args:
        open_session: a new native session of Spark's.
        settings: with which both read.
    """

    def __init__(self, open_session: Callable[[], Any], settings: SqlSettings = USUAL) -> None:
        self._reader = plan_reader(open_session)
        self._settings = settings
        self.outcome = Outcome()

    def check(self, texts: Texts) -> None:
        """Compare the readings of all texts."""
        tables, imported = dict(texts.sources), {}
        for name, text in texts.queries.items():
            found = self._read(tables, text)
            if found is None:
                continue
            if texts.chained:
                tables[name] = self._columns(tables, text, found)
            if texts.chained or not self._is_same_plan(tables, text, found):
                imported[name] = found
        names = list(imported)
        size = len(names) if texts.chained else MANY
        for batch in [names[at : at + size] for at in range(0, len(names), size or 1)]:
            self._compare(texts, {name: imported[name] for name in batch})

    def _is_same_plan(self, tables: Mapping[str, pa.Schema], text: str, imported: str) -> bool:
        catalog = {name: tuple(Field(one.name, one.type) for one in schema) for name, schema in tables.items()}
        same = _placeless(bind_query(text, catalog, settings=self._settings)) == _placeless(decode_plan(imported))
        self.outcome.same_plans += same
        return same

    def _read(self, tables: Mapping[str, pa.Schema], text: str) -> str | None:
        """The imported plan of a text that both read, if their columns are the same."""
        outcome = self.outcome
        outcome.texts += 1
        try:
            ours: QueryError | pa.Schema = self._columns(tables, text)
        except QueryError as error:
            ours = error
        try:
            imported = self._reader.read(text, tables, self._settings)
            assert imported is not None
            theirs: QueryError | pa.Schema = self._columns(tables, text, imported)
        except Exception as error:  # noqa: BLE001 - what is no refusal is raised again
            theirs = _refusal(error)
        if isinstance(ours, QueryError):
            outcome.refused["both" if isinstance(theirs, QueryError) else ours.code] += 1
            return None
        if isinstance(theirs, NotIncremental):
            outcome.recomputed[text] = f"{theirs.reason}: {theirs.message}"
            return None
        if isinstance(theirs, QueryError):
            outcome.rejected[text] = f"{theirs.condition}: {theirs.message}"
            return None
        if (ours.names, ours.types) != (theirs.names, theirs.types):
            outcome.differences.append(f"{text}\n  the binder's columns: {_shown(ours)}\n  Spark's: {_shown(theirs)}")
            return None
        return imported

    def _columns(self, tables: Mapping[str, pa.Schema], text: str, plan: str | None = None) -> pa.Schema:
        """The columns of a view that is maintained, by the binder's plan or another."""
        compiled = compile_views(tables, {_NAME: text}, None if plan is None else {_NAME: plan}, self._settings)
        return pa.schema([(one.name, one.type) for one in compiled.fields[_NAME]])

    def _compare(self, texts: Texts, imported: Mapping[str, str]) -> None:
        if not imported:
            return
        queries = {name: texts.queries[name] for name in imported}
        ours, theirs = (_Life(texts, queries, plans, self._settings) for plans in (None, imported))
        if (ours.raised or theirs.raised) and len(imported) > 1 and not texts.chained:
            names = list(imported)
            for half in (names[: len(names) // 2], names[len(names) // 2 :]):
                self._compare(texts, {name: imported[name] for name in half})
            return
        found = [
            f"{queries[name]}\n  the binder's plan: {ours.of(name)}\n  the imported one: {theirs.of(name)}"
            for name in queries
            if ours.of(name) != theirs.of(name)
        ]
        self.outcome.differences += found
        self.outcome.same_rows += len(imported) - len(found)
        self.outcome.rows += sum(
            rows.total() for after in ours.ticks if isinstance(after, dict) for rows in after.values()
        )


class _Life:
    """What became of views, tick by tick: their rows, or the code of what was raised."""

    def __init__(
        self, texts: Texts, queries: Mapping[str, str], plans: Mapping[str, str] | None, settings: SqlSettings
    ) -> None:
        self.ticks: list[dict[str, Counter[Row]] | str] = []
        try:
            views = Maintained(texts.sources, queries, plans, settings)
        except DataError as error:
            self.ticks.append(error.code)
            return
        tables = Tables(list(texts.sources))
        for tick in texts.ticks:
            possible, after = tables.after({name: tuple(changes) for name, changes in tick.items()})
            try:
                views.tick(possible)
            except DataError as error:
                views.discard()
                self.ticks.append(error.code)
            else:
                tables = after
                self.ticks.append({name: Counter(rows) for name, rows in views.views.items()})

    @property
    def raised(self) -> bool:
        """Whether a tick failed."""
        return any(isinstance(one, str) for one in self.ticks)

    def of(self, name: str) -> list[Counter[Row] | str]:
        """What became of a view."""
        return [one if isinstance(one, str) else one[name] for one in self.ticks]


def _placeless(node: Any) -> Any:
    """A plan without the places in the text that it came from."""
    known: dict[int, Any] = {}

    def without(part: Any) -> Any:
        if isinstance(part, tuple):
            return tuple(without(one) for one in part)
        if not is_dataclass(part) or isinstance(part, type):
            return part
        if id(part) not in known:
            parts = {one.name: getattr(part, one.name) for one in fields(part) if one.init}
            known[id(part)] = replace(
                part, **{name: None if name == "position" else without(value) for name, value in parts.items()}
            )
        return known[id(part)]

    return without(node)


def _refusal(error: Exception) -> QueryError:
    """What Spark says against a text, or what speaks against importing it."""
    known = translate(error)
    if isinstance(known, QueryError):
        return known
    if "INTERNAL_ERROR" in str(error):  # Spark's own words for what it should have rejected
        return QueryError(str(known))
    raise error


def _shown(schema: pa.Schema) -> str:
    return ", ".join(f"{one.name} {one.type}" for one in schema)
