"""Runs a case in a flow of a Session, under the case's settings, beside Spark: after every tick the two are equal."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from support.generator.oracle import Oracle, frame_of
from support.generator.replay import Mismatch, replay
from support.generator.shrink import reads
from support.maintained import comparable

from weirflow.errors import NotIncremental, QueryError
from weirflow.ivm.zset.delta import DeltaBatch

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from support.generator.case import Case, View
    from support.generator.values import Row

    from weirflow import Session


class FlowViews:
    """Sources and views of a flow, as the views of a case."""

    def __init__(self, flow: Any, case: Case) -> None:
        self._flow = flow
        self._case = case

    @property
    def views(self) -> Mapping[str, Counter[Row]]:
        """Their rows."""
        return {view.name: _rows(self._flow.snapshot(view.name)) for view in self._case.views}

    @property
    def schemas(self) -> Mapping[str, pa.Schema]:
        """Their columns."""
        return {view.name: self._flow.schema(view.name) for view in self._case.views}

    def tick(self, changes: Mapping[str, Sequence[tuple[Row, int]]]) -> object:
        """Apply weighted rows to sources."""
        deltas = {name: _delta(self._case.sources[name], rows) for name, rows in changes.items() if rows}
        return self._flow.tick(deltas) if deltas else None

    def discard(self) -> None:
        """Forget a tick that has raised."""
        self._flow.discard()


class SessionOracle(Oracle):
    """Checks cases in flows of a Session.

    Attributes:
        kept: how many views were maintained by deltas: of SQL or of frames, under which settings.
        recomputed: how many views Spark recomputed, by reason.
        refused: how many frames have no incremental form, by reason: they are left out.
        rejected: how many views Spark rejects.
    """

    def __init__(self, session: Session) -> None:
        super().__init__(session.spark)
        self._session = session
        self.kept: Counter[tuple[str, str]] = Counter()
        self.recomputed: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.rejected: Counter[str] = Counter()

    def __str__(self) -> str:
        kept = ", ".join(f"{count} {form} in {settings}" for (form, settings), count in sorted(self.kept.items()))
        return (
            f"{self.tally}; {self.kept.total()} views by deltas ({kept}); {self.recomputed.total()} recomputed "
            f"{dict(self.recomputed.most_common())}; {self.refused.total()} frames refused "
            f"{dict(self.refused.most_common())}; {self.rejected.total()} rejected by Spark {dict(self.rejected)}"
        )

    def check(self, case: Case) -> Mismatch | None:
        """The first mismatch after any tick, or at a tick that fails in one only."""
        with self._settings(case), self._session.flow("campaign") as flow:
            opened = _Opening(self, flow, case)
            for ticked in replay(case, self.tally, opened):
                found = self._not_raised(opened.case, ticked) or self._difference(opened.case, ticked)
                if found is not None:
                    return found
        return None

    @contextmanager
    def _settings(self, case: Case) -> Iterator[None]:
        conf = self._spark.conf
        before = {name: conf.get(name) for name in case.settings}
        for name, value in case.settings.items():
            conf.set(name, value)
        try:
            yield
        finally:
            for name, value in before.items():
                conf.set(name, value)


class _Opening:
    """Registers the views of a case, but those that cannot be; ``case`` has those that are there."""

    def __init__(self, oracle: SessionOracle, flow: Any, case: Case) -> None:
        self._oracle = oracle
        self._flow = flow
        self.case = replace(case, views=())

    def __call__(self, case: Case) -> FlowViews:
        for name, schema in case.sources.items():
            self._flow.register_source(name, schema)
        gone: list[str] = []
        for view in case.views:
            before = self.case
            if any(reads(view, name) for name in gone):
                gone.append(view.name)
                continue
            self.case = replace(before, views=(*before.views, view))
            if not self._register(view):
                self.case = before
                gone.append(view.name)
        return FlowViews(self._flow, self.case)

    def _register(self, view: View) -> bool:
        oracle, flow = self._oracle, self._flow
        try:
            flow.register_view(view.name, frame_of(view, flow.table) if view.calls else view.text.spark)
        except NotIncremental as error:
            oracle.refused[f"{error.reason}: {error.message}"] += 1
            return False
        except QueryError as error:
            oracle.rejected[error.message.partition(".")[0]] += 1
            return False
        why = flow.explain(view.name).partition("why: ")[2].partition("\n")[0]
        if why:
            oracle.recomputed[why] += 1
        else:
            form = "frames" if view.calls else "texts"
            oracle.kept[form, "/".join(self.case.settings.values())] += 1
        return True


def _rows(table: pa.Table) -> Counter[Row]:
    columns = ([comparable(value) for value in column.to_pylist()] for column in table.columns)
    return Counter(zip(*columns, strict=True))


def _delta(schema: pa.Schema, rows: Sequence[tuple[Row, int]]) -> DeltaBatch:
    columns = [pa.array([row[at] for row, _ in rows], kind) for at, kind in enumerate(schema.types)]
    weights = pa.array([weight for _, weight in rows], pa.int64())
    return DeltaBatch.from_weighted(pa.table([*columns, weights], names=[*schema.names, "_weight"]))
