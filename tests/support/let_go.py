"""Tables as sources that let go of rows: those that are never taken back carry a time, which goes on."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from weirflow import DeltaBatch, Lateness
from weirflow.ivm.kernel.runs.spine import SpineState

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pytest

    Row = tuple[Any, ...]
    Changes = Sequence[tuple[Row, int]]

TIME = "seen_at"
LATENESS = Lateness(TIME, "1 hour", keep=False)
_BEGIN = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def timed_schema(schema: pa.Schema) -> pa.Schema:
    """The columns of a table, and the time."""
    return schema.append(pa.field(TIME, pa.timestamp("us", "UTC")))


def timed_ticks(
    schemas: Mapping[str, pa.Schema], ticks: Sequence[Mapping[str, Changes]]
) -> list[dict[str, list[tuple[Row, int]]]]:
    """The same changes: a row has the time of its tick if it is never taken back, and none otherwise.

    A day passes between two ticks, so that a row with a time is too old to change in the next one but one.
    """
    found: list[dict[str, list[tuple[Row, int]]]] = []
    there: dict[tuple[str, str], list[tuple[list[tuple[Row, int]], int]]] = {}
    for number, tick in enumerate(ticks):
        now = _BEGIN + dt.timedelta(days=number)
        found.append({name: [] for name in tick if name in schemas})
        for name, rows in found[-1].items():
            for row, weight in sorted(tick[name], key=lambda change: change[1] < 0):
                known = there.setdefault((name, repr(row)), [])
                for _ in range(abs(weight)):
                    if weight > 0:
                        known.append((rows, len(rows)))
                        rows.append(((*row, now), 1))
                    else:
                        where, at = known.pop()
                        where[at] = ((*row, None), 1)
                        rows.append(((*row, None), -1))
    return found


def delta(schema: pa.Schema, changes: Changes) -> DeltaBatch:
    """Weighted rows of a timed source."""
    wider = timed_schema(schema)
    columns = [pa.array([row[at] for row, _ in changes], field.type) for at, field in enumerate(wider)]
    weights = pa.array([weight for _, weight in changes], pa.int64())
    return DeltaBatch.from_weighted(pa.table(columns, schema=wider).append_column("_weight", weights), schema=wider)


def let_go_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """State that is too old to change goes as soon as it may, however little there is."""
    monkeypatch.setattr("weirflow.ivm.kernel.runs.spine.LEAST_TO_RELEASE", 0)
    monkeypatch.setattr("weirflow.ivm.flow.state._ROWS_BEFORE_RELEASE", 0)
    # How many rows were left does not put off the next time.
    monkeypatch.setattr(SpineState, "released", property(lambda _: 0, lambda *_: None), raising=False)
