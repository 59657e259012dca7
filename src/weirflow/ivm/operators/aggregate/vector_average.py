"""VECTOR_AVG: the mean of vectors, element by element, each exact and rounded once, as AVG of doubles is.

For each group and each place in its vectors there are totals, as of an AVG. A delta costs the numbers of the vectors
that it brings and those of the groups it touches, however many vectors these have.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from typing_extensions import override

from weirflow.errors import DataError, SqlPosition
from weirflow.ivm.kernel.additive import AdditiveArrangement
from weirflow.ivm.kernel.deadline import check
from weirflow.ivm.operators.aggregate.functions import ColumnChange, LinearCall, TouchedCall, added
from weirflow.ivm.operators.aggregate.totals.doubles import DoubleAverage, Escapes
from weirflow.ivm.operators.aggregate.totals.escapes import EscapeTable
from weirflow.ivm.operators.truth import true_rows
from weirflow.ivm.zset.batch import take_columns
from weirflow.ivm.zset.buffers import validity, value_offsets
from weirflow.ivm.zset.rows import expand_ranges
from weirflow.rows.arrays import from_numpy

if TYPE_CHECKING:
    from weirflow.ivm.kernel.state import State
    from weirflow.ivm.operators.aggregate.functions import CallTotals, Stage
    from weirflow.ivm.operators.aggregate.groups import Groups
    from weirflow.ivm.operators.aggregate.totals.linear import Escaped
    from weirflow.sql.expr import AggregateCall, Expr

_AT_ONCE = 1 << 16
"""So many numbers are split into integers at once."""
_CALL = 0
"""The number in the side table of escaped numbers, of which each call has its own."""


@dataclass(frozen=True)
class _Places:
    """Elements of groups: the keys, with the place in the vector, for ``EscapeTable`` the groups of its own.

    Attributes:
        starts: which of them is the first of each group.
        counts: how many each group has.
    """

    keys: tuple[pa.Array, ...]
    starts: np.ndarray
    counts: np.ndarray
    numbers: np.ndarray

    @property
    def count(self) -> int:
        """How many there are."""
        return int(self.counts.sum())

    @classmethod
    def of(cls, groups: Groups, counts: np.ndarray) -> _Places:
        """The first elements, so many of each group."""
        starts = np.cumsum(counts) - counts
        group = np.repeat(np.arange(groups.count), counts)
        place = (np.arange(len(group)) - starts[group]).astype(np.int32)
        return cls((*take_columns(groups.keys, group), pa.array(place)), starts, counts, np.empty(0, np.int64))


class VectorAverage(TouchedCall):
    """``vector_avg(column)`` of ARRAY<DOUBLE>; vectors that are NULL are left out, and so are elements."""

    width = 3  # how many vectors there are, the sum of their dimensions, and that of the squares of these

    def __init__(self, call: AggregateCall, key_types: Sequence[pa.DataType], expressions: list[Expr]) -> None:
        self._average = DoubleAverage(call)
        self._type = call.type
        self._position: SqlPosition | None = call.position
        self._key_count = len(key_types)
        (self._argument,) = added(expressions, call.arguments)
        self._filter = added(expressions, [call.filter])[0] if call.filter is not None else None
        element_key = (*key_types, pa.int32())
        self._totals = AdditiveArrangement(element_key, self._average.width)
        self._escapes = EscapeTable(element_key)
        seen = AdditiveArrangement((*key_types, call.arguments[0].type), 1) if call.distinct else None
        self._seen = seen
        self._states = (self._totals, self._escapes.state, *([] if seen is None else [seen]))

    @property
    def states(self) -> Sequence[State]:
        """The totals of each element, what has escaped from them, and for DISTINCT the vectors seen."""
        return self._states

    @override
    def of_nothing(self) -> pa.Array:
        return pa.nulls(1, self._type)

    @override
    def step(
        self, evaluated: Sequence[pa.Array], weights: np.ndarray, groups: Groups, totals: CallTotals, stage: Stage
    ) -> ColumnChange:
        self._escapes.forget()
        column = evaluated[self._argument]
        counted = self._counted(evaluated, column, weights, stage)
        offsets = value_offsets(column)
        lengths = np.diff(offsets)
        added_up = groups.sums(np.stack([counted, counted * lengths, counted * lengths * lengths], axis=1))
        own = totals.own + added_up
        before, after = self._dimensions(totals.own), self._dimensions(own)
        rows = groups.order[counted[groups.order] != 0]  # in the order of their groups
        most = np.maximum(before, after)
        np.maximum.at(most, groups.numbers[rows], lengths[rows])
        places = _Places.of(groups, most)
        old = self._totals.lookup(places.keys) if places.count else np.zeros((0, self._average.width), np.int64)
        change = np.zeros_like(old)
        for escapes in self._added(column.values, offsets, rows, counted, groups, places, change):
            self._escapes.stage(replace(places, numbers=escapes.rows), _CALL, _counted_from_0(escapes), stage)
        kept = np.flatnonzero(change.any(axis=1))
        if len(kept):
            keys = take_columns(places.keys, kept)
            stage(lambda: self._totals.add(keys, change[kept]))
        found = self._read(places, old, old + change)
        return ColumnChange(
            self._column(places, before, totals.own, found.slice(0, len(old))),
            self._column(places, after, own, found.slice(len(old))),
            own,
        )

    def _counted(
        self, evaluated: Sequence[pa.Array], column: pa.Array, weights: np.ndarray, stage: Stage
    ) -> np.ndarray:
        """How often each row of the delta counts; those without a vector do not."""
        counts = None if self._filter is None else true_rows(evaluated[self._filter])
        valid = validity(column)
        if valid is not None:
            counts = valid if counts is None else counts & valid
        if self._seen is not None:
            values = (*evaluated[: self._key_count], column)
            return LinearCall.first_and_last(self._seen, values, weights, counts, stage)
        return weights if counts is None else weights * counts

    def _dimensions(self, totals: np.ndarray) -> np.ndarray:
        """Of the vectors of each group, 0 where there are none.

        Raises:
            DataError: a group has vectors of several.
        """
        count, lengths, squares = totals.T
        found: np.ndarray = lengths // np.maximum(count, 1)
        mixed = (found * count != lengths) | (found * lengths != squares)  # that is, they vary
        if mixed.any():
            raise DataError(
                "vector_avg() takes vectors of one dimension; a group has several.",
                hint="leave out those of another with WHERE size(v) = ..., or group by size(v)",
                position=self._position,
            )
        return found

    def _added(  # noqa: PLR0917 - private, called once
        self,
        values: pa.Array,
        offsets: np.ndarray,
        rows: np.ndarray,
        weights: np.ndarray,
        groups: Groups,
        places: _Places,
        into: np.ndarray,
    ) -> Iterator[Escapes]:
        """Add the numbers of rows to the totals of their places; gives what does not fit these, by place."""
        lengths = offsets[rows + 1] - offsets[rows]
        for dimension in np.unique(lengths[lengths > 0]).tolist():
            mine = rows[lengths == dimension]
            many = max(1, _AT_ONCE // dimension)
            for first in range(0, len(mine), many):
                check()
                block = mine[first : first + many]
                at = expand_ranges(offsets[block], np.full(len(block), dimension))
                numbers = values.take(from_numpy(at))
                counted = np.repeat(weights[block], dimension)
                valid = validity(numbers)
                if valid is not None:
                    counted *= valid
                encoded = np.empty((len(at), self._average.width), np.int64)
                group = groups.numbers[block]
                if not self._average.encode([numbers], counted, encoded):
                    place = np.repeat(places.starts[group], dimension) + np.tile(np.arange(dimension), len(block))
                    escaped = self._average.escapes([numbers], counted)
                    yield escaped._replace(rows=place[escaped.rows])
                starts = np.flatnonzero(np.diff(group, prepend=-1))
                by_row = encoded.reshape(len(block), dimension * self._average.width)
                summed = np.add.reduceat(by_row, starts, axis=0).reshape(-1, self._average.width)
                into[expand_ranges(places.starts[group[starts]], np.full(len(starts), dimension))] += summed

    def _read(self, places: _Places, old: np.ndarray, new: np.ndarray) -> pa.Array:
        """The means of all places before, then those after."""
        totals = np.concatenate([old, new])
        every = np.arange(len(old))
        escaped: Escaped = (self._escapes.read(places, every, every) or {}).get(_CALL, {})
        return self._average.decode(totals, self._average.read(totals, escaped))

    def _column(self, places: _Places, dimensions: np.ndarray, totals: np.ndarray, means: pa.Array) -> pa.Array:
        """A vector for each group, of the first of its places; NULL where it has none."""
        elements = means.take(from_numpy(expand_ranges(places.starts, dimensions)))
        offsets = np.concatenate([[0], np.cumsum(dimensions)]).astype(np.int32)
        return pa.ListArray.from_arrays(pa.array(offsets), elements, type=self._type, mask=pa.array(totals[:, 0] == 0))


def _counted_from_0(escapes: Escapes) -> Escapes:
    return escapes._replace(rows=np.arange(len(escapes.rows)))
