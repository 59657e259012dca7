"""Arrangements against dictionaries: any sequence of operations, also when all keys have the same hash."""

from __future__ import annotations

from collections import Counter
from functools import cmp_to_key
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.rows import VALUES, batch, coarse_hash, colliding_hash, count_rows

from weirflow.ivm.kernel.additive import AdditiveArrangement
from weirflow.ivm.kernel.arrangement import Arrangement
from weirflow.ivm.kernel.ordered import OrderedArrangement
from weirflow.ivm.kernel.runs import spine, weights
from weirflow.ivm.kernel.runs.run import Run
from weirflow.ivm.kernel.sort_keys import SortColumn
from weirflow.ivm.zset.hashing import Equality, hash_rows
from weirflow.ivm.zset.rows import canonical_rows

if TYPE_CHECKING:
    from pathlib import Path

HASHES = {"hash_rows": hash_rows, "coarse": coarse_hash, "colliding": colliding_hash}
every_hash = pytest.mark.parametrize("row_hash", HASHES.values(), ids=HASHES)
checked = settings(deadline=None, suppress_health_check=list(HealthCheck))
TYPES = sorted(VALUES, key=str)
FLOATS = {pa.float32(): [0.0, -0.0], pa.float64(): [0.0, -0.0]}


@pytest.fixture(autouse=True)
def small_runs(monkeypatch):
    """Runs so small that a handful of rows goes through heads, levels and merges, and weights of 1 take no memory."""
    monkeypatch.setattr(spine, "HEAD_ROWS", 4)
    monkeypatch.setattr(weights, "MANY", 3)
    monkeypatch.setattr(weights, "FEW", 2)


def values_of(type_: pa.DataType) -> st.SearchStrategy[Any]:
    return st.sampled_from(VALUES[type_][:5] + FLOATS.get(type_, []) * 2)


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[pa.DataType], int, list[tuple[str, Any]]]:
    """Column types, a number of key columns, and operations."""
    types = draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=3))
    keys = draw(st.integers(0, len(types)))
    row = st.tuples(*map(values_of, types))
    change = st.tuples(row, st.integers(-2, 3))
    operation = st.one_of(
        st.tuples(st.just("insert"), st.lists(change, max_size=12)),
        st.tuples(st.just("retract"), st.integers(1, 20)),
        st.tuples(st.just("maintain"), st.integers(1, 30)),
        st.tuples(st.just("reload"), st.none()),
    )
    return types, keys, draw(st.lists(operation, max_size=12))


def reloaded(runs: tuple[Run, ...], folder: Path) -> list[Run]:
    """The runs saved and mapped back, each from a file of its own."""
    loaded = []
    for run in runs:
        path = folder / f"{len(list(folder.iterdir()))}.run"
        run.save(path)
        loaded.append(Run.load(path))
    return loaded


def row_batches(types: list[pa.DataType], operations: list[tuple[str, Any]]) -> Any:
    """The operations with rows as batches; a retraction takes back some of the rows inserted so far."""
    inserted: list[tuple[Any, int]] = []
    for operation, argument in operations:
        if operation == "insert":
            inserted += argument
            yield operation, batch(types, [row for row, _ in argument], [weight for _, weight in argument])
        elif operation == "retract":
            taken, inserted = inserted[:argument], inserted[argument:]
            yield "insert", batch(types, [row for row, _ in taken], [-weight for _, weight in taken])
        else:
            yield operation, argument


@every_hash
@checked
@given(history=histories())
def test_rows_by_key(history, row_hash, tmp_path_factory):
    types, keys, operations = history
    folder = tmp_path_factory.mktemp("runs")
    arrangement = Arrangement(types, keys, row_hash=row_hash)
    model: Counter[Any] = Counter()
    seen = [batch(types, [])]
    for operation, argument in row_batches(types, operations):
        if operation == "insert":
            arrangement.insert(argument)
            model.update(count_rows([argument]))
            seen.append(argument)
        elif operation == "maintain":
            assert arrangement.maintain(argument) >= 0
        else:
            arrangement = Arrangement(types, keys, runs=reloaded(arrangement.runs, folder), row_hash=row_hash)
        expected = {row: weight for row, weight in model.items() if weight}
        assert count_rows(arrangement.rows()) == expected
        assert sum(map(len, arrangement.rows())) == len(expected)
        _check_probe(arrangement, seen[-1], model)


def _check_probe(arrangement: Arrangement, asked: Any, model: Counter[Any]) -> None:
    key_columns = asked.columns[: arrangement.key_count]
    length = len(asked) if key_columns else 1
    probed = canonical_rows(key_columns, length, Equality.GROUPING)
    identical = canonical_rows(asked.columns, len(asked), Equality.IDENTITY)
    assert arrangement.weights_of(asked).tolist() == [model[row] for row in identical]
    for consolidated in (False, True):
        matches = arrangement.probe(key_columns, consolidated=consolidated)
        for index, key in enumerate(probed):
            found = matches.batch.filter(matches.probe_index == index)
            assert set(canonical_rows(found.columns[: arrangement.key_count], len(found), Equality.GROUPING)) <= {key}
            in_model = _of_key(model, arrangement, key)
            assert count_rows([found]) == in_model
            if consolidated:
                assert len(found) == len(in_model)


def _of_key(model: Counter[Any], arrangement: Arrangement, key: Any) -> dict[Any, int]:
    """The model's rows whose key, zeros made equal, is ``key``."""
    zero = np.float64(-0.0).view(np.int64).item(), np.float32(-0.0).view(np.int32).item()
    types = arrangement.types[: arrangement.key_count]

    def grouped(row: Any) -> Any:
        return tuple(
            0 if (type_ == pa.float64() and value == zero[0]) or (type_ == pa.float32() and value == zero[1]) else value
            for value, type_ in zip(row, types, strict=False)
        )

    return {row: weight for row, weight in model.items() if weight and grouped(row) == key}


@every_hash
@checked
@given(history=histories())
def test_accumulators_by_key(history, row_hash, tmp_path_factory):
    types, _, operations = history
    folder = tmp_path_factory.mktemp("runs")
    sums = AdditiveArrangement(types, 2, row_hash=row_hash)
    model: dict[Any, tuple[int, int]] = {}
    for operation, argument in row_batches(types, operations):
        if operation == "insert":
            values = np.stack([argument.weights, argument.weights * 7], axis=1)
            sums.add(argument.columns, values)
            for key, (one, other) in zip(
                canonical_rows(argument.columns, len(argument), Equality.GROUPING), values.tolist(), strict=True
            ):
                before = model.get(key, (0, 0))
                model[key] = (before[0] + one, before[1] + other)
            keys = canonical_rows(argument.columns, len(argument), Equality.GROUPING)
            assert sums.lookup(argument.columns).tolist() == [list(model[key]) for key in keys]
        elif operation == "maintain":
            sums.maintain(argument)
        else:
            sums = AdditiveArrangement(types, 2, runs=reloaded(sums.runs, folder), row_hash=row_hash)
        stored = [
            (key, tuple(row))
            for columns, values in sums.rows()
            for key, row in zip(canonical_rows(columns, len(values), Equality.GROUPING), values.tolist(), strict=True)
        ]
        assert len(dict(stored)) == len(stored)
        assert dict(stored) == {key: row for key, row in model.items() if any(row)}


ORDERABLE = [type_ for type_ in TYPES if not pa.types.is_nested(type_) and type_ != pa.month_day_nano_interval()]


@every_hash
@checked
@given(data=st.data())
def test_first_rows_in_order(data, row_hash, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    types = [pa.int64(), *data.draw(st.lists(st.sampled_from(ORDERABLE), min_size=1, max_size=2))]
    indexes = data.draw(st.lists(st.integers(1, len(types) - 1), max_size=2))
    order = [SortColumn(index, data.draw(st.booleans()), data.draw(st.booleans())) for index in indexes]
    row = st.tuples(st.sampled_from([None, 1, 2]), *map(values_of, types[1:]))
    arrangement = OrderedArrangement(types, 1, order, row_hash=row_hash)
    model: dict[Any, int] = {}
    python_rows: dict[Any, Any] = {}
    for _ in range(data.draw(st.integers(1, 8))):
        changes = data.draw(st.lists(st.tuples(row, st.integers(1, 2)), max_size=12))
        drawn = batch(types, [row for row, _ in changes], [weight for _, weight in changes])
        delta = _with_retractions(data, drawn, model, types, python_rows)
        arrangement.insert(delta)
        for value, weight in count_rows([delta]).items():
            model[value] = model.get(value, 0) + weight
        if data.draw(st.booleans()):
            arrangement.maintain(data.draw(st.integers(1, 20)))
        if data.draw(st.booleans()):
            runs = reloaded(arrangement.runs, folder)
            arrangement = OrderedArrangement(types, 1, order, runs=runs, row_hash=row_hash)
        count = data.draw(st.sampled_from([1, 2, 5, 100]))
        matches = arrangement.first([pa.array([None, 1, 2, 3], pa.int64())], count)
        assert matches.probe_index.tolist() == sorted(matches.probe_index.tolist())
        for index, key in enumerate([None, 1, 2, 3]):
            found = matches.batch.filter(matches.probe_index == index)
            rows = canonical_rows(found.columns, len(found), Equality.IDENTITY)
            expanded = [row for row, weight in zip(rows, found.weights.tolist(), strict=True) for _ in range(weight)]
            group = [row for row, weight in model.items() for _ in range(weight) if row[0] == key]
            group.sort(key=cmp_to_key(lambda one, other: _compare(one, other, order, types, python_rows)))
            assert expanded == group[:count]
    assert count_rows(arrangement.rows()) == {row: weight for row, weight in model.items() if weight}


def _with_retractions(data: Any, drawn: Any, model: Any, types: Any, python_rows: Any) -> Any:
    """The drawn rows, and some that the model holds taken back."""
    values = list(zip(*(_sortable(column) for column in drawn.columns), strict=True))
    python_rows.update(zip(canonical_rows(drawn.columns, len(drawn), Equality.IDENTITY), values, strict=True))
    python_rows.update(
        {
            ("raw", key): row
            for key, row in zip(
                canonical_rows(drawn.columns, len(drawn), Equality.IDENTITY),
                zip(*(column.to_pylist() for column in drawn.columns), strict=True),
                strict=True,
            )
        }
    )
    held = [row for row, weight in model.items() if weight > 0]
    taken = data.draw(st.lists(st.sampled_from(held), unique=True)) if held else []
    back = batch(types, [python_rows["raw", row] for row in taken], [-model[row] for row in taken])
    return type(drawn).concat([drawn, back])


def _sortable(column: pa.Array) -> list[Any]:
    """Values that Python compares as Spark does: NaN greatest, strings by bytes, and -0.0 equal to 0.0."""
    if pa.types.is_floating(column.type):
        return [None if v is None else (1, 0.0) if v != v else (0, v) for v in column.to_pylist()]  # noqa: PLR0124
    if pa.types.is_string(column.type):
        return [None if v is None else v.encode() for v in column.to_pylist()]
    return list(column.to_pylist())


def _told_apart(value: Any) -> Any:
    """-0.0 before 0.0, where ties are broken."""
    return (*value, not np.signbit(value[1])) if isinstance(value, tuple) else value


def _compare(one: Any, other: Any, order: list[SortColumn], types: Any, python_rows: Any) -> int:
    left, right = python_rows[one], python_rows[other]
    for key in order:
        compared = _compare_values(left[key.index], right[key.index], key)
        if compared:
            return compared
    for index in range(len(types)):
        compared = _compare_values(_told_apart(left[index]), _told_apart(right[index]), SortColumn(index))
        if compared:
            return compared
    return 0


def _compare_values(left: Any, right: Any, key: SortColumn) -> int:
    if left is None or right is None:
        if left is None and right is None:
            return 0
        return -1 if (left is None) == key.nulls_first else 1
    return (int(left > right) - int(left < right)) * (-1 if key.descending else 1)
