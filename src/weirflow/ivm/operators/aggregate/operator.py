"""Aggregate keeps one row for each group of equal keys; a delta replaces the rows of the groups it touches."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from typing_extensions import override

from weirflow.errors import DataError
from weirflow.ivm import compiled
from weirflow.ivm.kernel.additive import AdditiveArrangement
from weirflow.ivm.kernel.expressions.monotone import advanced, monotone
from weirflow.ivm.operators.aggregate.dispatch import make_call
from weirflow.ivm.operators.aggregate.functions import CallTotals, LinearCall, TotalsSlot, TouchedCall
from weirflow.ivm.operators.aggregate.fused import FusedCalls, Replaced, ReplaceJob, replace_groups
from weirflow.ivm.operators.aggregate.groups import GroupedInput, Groups
from weirflow.ivm.operators.aggregate.recompute import RecomputeCall
from weirflow.ivm.operators.aggregate.totals.doubles import Escapes
from weirflow.ivm.operators.aggregate.totals.escapes import EscapeTable
from weirflow.ivm.operators.operator import Operator
from weirflow.ivm.zset.batch import Batch, concat_columns, magnitude, take_array, take_columns
from weirflow.ivm.zset.hashing import Equality
from weirflow.ivm.zset.rows import equal_rows_at

if TYPE_CHECKING:
    from weirflow.ivm.kernel.frontier import Frontier
    from weirflow.ivm.kernel.state import State
    from weirflow.sql.expr import AggregateCall, Expr

_BLOCK = 1 << 14
"""More rows than that are added up a block at a time."""

TOTALS = -1
"""Takes the place of a slot's number in parts that hold totals; others hold an amount that has escaped from a slot."""
_MOST_ROWS = 1 << 29
"""A sum of so many rows has room in its integers, whatever the rows are."""
_LIMIT = 1 << 62


def _at(column: pa.Array, groups: np.ndarray) -> pa.Array:
    """The values of some groups, in ascending order."""
    return column if len(groups) == len(column) else take_array(column, groups)


def _require_room(greatest: int) -> None:
    """``DataError`` if what rows add to a group may not fit the lower half of 64 bits."""
    if greatest >= _LIMIT:
        raise DataError(
            "A sum does not fit its 64-bit accumulator any more.",
            hint="make groups smaller, or sum smaller values; or look for a join condition that is missing",
        )


class Aggregate(Operator):
    """GROUP BY ``keys`` with aggregate ``calls``. Without keys there is one group, and it is never gone."""

    consolidated = True

    def __init__(self, keys: Sequence[Expr], calls: Sequence[AggregateCall]) -> None:
        super().__init__([*(key.type for key in keys), *(call.type for call in calls)])
        self.keys = tuple(keys)
        self.calls = tuple(calls)
        self._key_count = len(keys)
        expressions = list(keys)
        self._calls = [make_call(call, self.types[: self._key_count], expressions) for call in calls]
        self._input = GroupedInput(keys, expressions[self._key_count :])
        self._monotone_keys = [monotone(key) for key in keys]
        self._touched = [call for call in self._calls if isinstance(call, TouchedCall)]
        # Calls that add up the same numbers, as SUM and AVG of one column do, share a slot of the totals.
        self._slots: dict[Hashable, TotalsSlot] = {}
        width = 1
        for call in self._calls:
            if isinstance(call, LinearCall) and call.summand not in self._slots:
                self._slots[call.summand] = TotalsSlot(len(self._slots), call, slice(width, width + call.width))
                width += call.width
        # The totals of linear calls come first: what a delta adds to them does not depend on what they were.
        self._linear_width = width
        self._touched_at: list[slice] = []
        for touched in self._touched:
            self._touched_at.append(slice(width, width + touched.width))
            width += touched.width
        self._totals = AdditiveArrangement(self.types[: self._key_count], width)
        fused = FusedCalls.of(self._calls, self._slots.values(), self._key_count)
        # What another engine evaluates is evaluated once, though it turns out that it is not for the kernel.
        self._fused = None if self._input.is_together else fused
        self._escapes = EscapeTable(self.types[: self._key_count])
        summed = [state for slot in self._slots.values() for state in slot.call.states]
        kept = [state for call in self._touched for state in call.states]
        self._states = (self._totals, self._escapes.state, *summed, *kept)

    @property
    def linear_width(self) -> int:
        """How many integers the totals of linear calls have, with the number of rows before them."""
        return self._linear_width

    def slot(self, call: int) -> TotalsSlot:
        """Where the totals of a call are, which is linear."""
        found = self._calls[call]
        assert isinstance(found, LinearCall)
        return self._slots[found.summand]

    @property
    def is_fused(self) -> bool:
        """Whether a compiled kernel replaces its groups, as a rule."""
        return self._fused is not None

    @property
    def recomputes(self) -> bool:
        """Whether a call reads all rows of the groups that a delta touches."""
        return any(isinstance(call, RecomputeCall) for call in self._touched)

    @property
    def states(self) -> Sequence[State]:
        """Totals, the side table of far doubles, and what single calls keep."""
        return self._states

    def start(self) -> Batch:
        """Nothing, or without keys the one row over nothing."""
        if self._key_count:
            return self.nothing
        nothing = np.zeros((1, self._totals.width), np.int64)
        columns = self._columns((), nothing, None, [call.of_nothing() for call in self._touched])
        return Batch(columns, np.ones(1, np.int64))

    def advance(self, inputs: Sequence[Frontier]) -> Frontier:
        """See ``Operator``: groups whose key lies below a bound stay as they are."""
        frontier = advanced(self._monotone_keys, inputs[0])
        for column, bound in frontier.items():
            for state in self.states:
                state.release(column, bound)
        return frontier

    @override
    def evaluate(self, rows: Batch) -> None:
        self._input.evaluate(rows)

    @override
    def discard(self) -> None:
        super().discard()
        self._escapes.forget()

    @override
    def step(self, deltas: Sequence[Batch]) -> Batch:
        (delta,) = deltas
        if not len(delta):
            return self.nothing
        if (replaced := self._replaced_at_once(delta)) is not None:
            return replaced
        groups, evaluated, partial = self._grouped(delta)
        return self._advanced(groups, partial, evaluated, delta.weights)

    def job(self, delta: Batch, *, updates: bool = False) -> ReplaceJob | None:
        """What ``step`` would do, for a compiled kernel that does it for several operators; None if it is not for that.

        ``finish`` is to be called when it is done, in the same tick. May raise as ``step`` does. ``updates`` is for
        states that nobody writes down after each tick: small ones are replaced, though few of their rows change.
        """
        if self._fused is None or compiled.kernels is None or len(delta) > _BLOCK or self._escapes.state.row_count:
            return None
        groups, arguments = self._input.laid_out(delta)
        return self._fused.job(groups, arguments, delta.weights, self._totals, updates=updates)

    def finish(self, job: ReplaceJob, made: Replaced) -> Batch:
        """What ``step`` returns, of a job that was done."""
        if made.is_updated and job.updates is not None:
            old, new = job.updates
            self._stage(lambda: self._totals.update(old, new, made.greatest))
        else:
            groups, added = job.groups, job.added
            assert groups.codes is not None
            codes = groups.codes
            self._stage(lambda: self._totals.add_groups(groups.keys, added, codes, groups.layout, made.greatest))
        return job.rows(made.told) if made.told else self.nothing

    def _replaced_at_once(self, delta: Batch) -> Batch | None:
        """What ``step`` gives, by one compiled kernel; None if it is not for that one."""
        job = self.job(delta)
        if job is None:
            return None
        (made,) = replace_groups([job])
        return None if made.told < 0 else self.finish(job, made)

    def adopt_parts(self, parts: Aggregate) -> None:
        """Between ticks: be the operator that has seen all rows which the parts of it have seen, each some of them.

        Args:
            parts: what the states of all parts together were adopted by. Its calls are those whose results are added up
                to the results of these; its keys are the same, or where there are none one that never changes.
        """
        more = len(parts.keys) - self._key_count
        for touched, part in zip(self._touched, parts._touched, strict=True):
            for state, held in zip(touched.states, part.states, strict=True):
                state.adopt_without(held.runs, more)
        self._totals.adopt(())
        for keys, held_totals in parts._totals.rows():
            own = keys[more:]
            totals = np.zeros((len(held_totals), self._totals.width), np.int64)
            totals[:, 0] = held_totals[:, 0]
            for number, call in enumerate(self._calls):
                if isinstance(call, LinearCall):
                    totals[:, self.slot(number).columns] = call.of_parts(held_totals[:, parts.slot(number).columns])
            for touched, columns in zip(self._touched, self._touched_at, strict=True):
                totals[:, columns] = touched.totals_of(own, len(totals))
            self._totals.add(own, totals)

    def step_parts(self, parts: Batch) -> Batch:
        """As ``step``, of a delta of which a ``PartialAggregate`` of the same keys and calls has made these parts."""
        if not len(parts):
            return self.nothing
        groups, evaluated, partial = self._of_parts(parts)
        return self._advanced(groups, partial, evaluated, parts.weights)

    def _of_parts(self, parts: Batch) -> tuple[Groups, Sequence[pa.Array], np.ndarray]:
        """As ``_grouped``, of parts."""
        groups = Groups(parts.columns[: self._key_count], len(parts))
        call, slot, *columns = (column.to_numpy() for column in parts.columns[self._key_count :])
        integers = np.column_stack(columns) * parts.weights[:, None]
        for number in np.unique(call[call != TOTALS]).tolist():
            rows = np.flatnonzero(call == number)
            self._escape(groups, number, Escapes(rows, slot[rows], integers[rows, 0]))
        integers[call != TOTALS] = 0
        totals = groups.sums(integers)
        _require_room(magnitude(totals))
        return groups, (), totals

    def _advanced(
        self, groups: Groups, partial: np.ndarray, evaluated: Sequence[pa.Array], weights: np.ndarray
    ) -> Batch:
        """The change of the groups' rows, of which the delta adds ``partial`` to the linear totals."""
        old = self._totals.lookup(groups.keys, groups.codes, groups.layout)
        new = old.copy()
        new[:, : self._linear_width] += partial
        if np.any(new[:, 0] < 0):
            raise DataError(
                "A retraction removes a row that does not exist.",
                hint="send a retraction only for a row that was inserted, with equal values in every column",
            )
        touched = []
        for call, columns in zip(self._touched, self._touched_at, strict=True):
            done = call.step(evaluated, weights, groups, CallTotals(old[:, columns], new[:, 0]), self._stage)
            new[:, columns] = done.totals
            touched.append((done.before, done.after))
        self._stage(lambda: self._add(groups, new - old))
        return self._replaced(groups, (old, new), (self._alive(old), self._alive(new)), touched)

    def _add(self, groups: Groups, change: np.ndarray) -> None:
        if groups.codes is None:
            self._totals.add(groups.keys, change)
        else:
            self._totals.add_groups(groups.keys, change, groups.codes, groups.layout)

    def _grouped(self, delta: Batch) -> tuple[Groups, Sequence[pa.Array], np.ndarray]:
        """The groups that a delta touches, its keys and arguments, and what it adds to the groups' linear totals."""
        groups, evaluated = self._input.of(delta)
        return groups, evaluated, self._partial_totals(evaluated, delta.weights, groups)

    def _partial_totals(self, evaluated: Sequence[pa.Array], weights: np.ndarray, groups: Groups) -> np.ndarray:
        """What the delta adds to the linear totals of the groups it touches."""
        if self._linear_width > 1 and len(weights) * magnitude(weights[:, None]) > _MOST_ROWS:
            return self._partial_totals_of_heavy_rows(evaluated, weights, groups)
        if len(weights) > _BLOCK:
            return self._partial_totals_in_blocks(evaluated, weights, groups)
        rows = np.empty((len(weights), self._linear_width), np.int64)
        rows[:, 0] = weights
        for slot in self._slots.values():
            self._encode(slot, evaluated, weights, rows[:, slot.columns], groups, None)
        return groups.sums(rows)

    def _partial_totals_of_heavy_rows(
        self, evaluated: Sequence[pa.Array], weights: np.ndarray, groups: Groups
    ) -> np.ndarray:
        """The same for rows that count so often that integers might wrap; ``DataError`` if they would."""
        rows = np.empty((len(weights), self._linear_width), np.int64)
        rows[:, 0] = weights
        greatest, once = magnitude(weights[:, None]), np.ones(len(weights), np.int64)
        for slot in self._slots.values():
            own = rows[:, slot.columns]
            if slot.call.distinct:
                self._encode(slot, evaluated, weights, own, groups, None)
                continue
            escaped = slot.call.encode(evaluated, once, own, self._stage)
            _require_room(magnitude(own) * greatest)
            own *= weights[:, None]
            if escaped is not None:
                _require_room(magnitude(escaped.amounts[:, None]) * greatest)
                self._escape(groups, slot.number, escaped._replace(amounts=escaped.amounts * weights[escaped.rows]))
        totals = groups.sums(rows)
        _require_room(magnitude(totals))
        return totals

    def _partial_totals_in_blocks(
        self, evaluated: Sequence[pa.Array], weights: np.ndarray, groups: Groups
    ) -> np.ndarray:
        """The same for a large delta, a block of rows in group order at a time: a block stays in the cache."""
        totals = np.zeros((groups.count, self._linear_width), np.int64)
        plain = [slot for slot in self._slots.values() if not slot.call.distinct]
        for slot in self._slots.values():
            if slot.call.distinct:  # which of several equal rows counts is a matter of the whole delta
                rows = np.empty((len(weights), slot.call.width), np.int64)
                self._encode(slot, evaluated, weights, rows, groups, None)
                totals[:, slot.columns] = groups.sums(rows)
        used = sorted({index for slot in plain for index in slot.call.inputs})
        for block, at, starts in groups.blocks(_BLOCK):
            rows = np.empty((len(block), self._linear_width), np.int64)
            rows[:, 0] = weights[block]
            taken = dict(zip(used, take_columns([evaluated[index] for index in used], block), strict=True))
            for slot in plain:
                self._encode(slot, taken, weights[block], rows[:, slot.columns], groups, block)
            for columns in (slice(0, 1), *(slot.columns for slot in plain)):
                totals[at : at + len(starts), columns] += np.add.reduceat(rows[:, columns], starts, axis=0)
        return totals

    def _encode(  # noqa: PLR0917 - private, called from the two above
        self,
        slot: TotalsSlot,
        evaluated: Mapping[int, pa.Array] | Sequence[pa.Array],
        weights: np.ndarray,
        rows: np.ndarray,
        groups: Groups,
        block: np.ndarray | None,
    ) -> None:
        """Write what rows of the delta, those of ``block`` or all, add to a slot."""
        escaped = slot.call.encode(evaluated, weights, rows, self._stage)
        if escaped is not None:
            if block is not None:
                escaped = escaped._replace(rows=block[escaped.rows])
            self._escape(groups, slot.number, escaped)

    def _escape(self, groups: Groups, number: int, escaped: Escapes) -> None:
        """Take in what a slot of the totals cannot hold."""
        self._escapes.stage(groups, number, escaped, self._stage)

    def _alive(self, totals: np.ndarray) -> np.ndarray:
        return totals[:, 0] > 0 if self._key_count else np.ones(len(totals), np.bool_)

    def _replaced(
        self,
        groups: Groups,
        totals: tuple[np.ndarray, np.ndarray],
        alive: tuple[np.ndarray, np.ndarray],
        touched: Sequence[tuple[pa.Array, pa.Array]],
    ) -> Batch:
        """The old rows of the touched groups taken back, the new ones given, where they differ."""
        before, after = (mask.nonzero()[0] for mask in alive)
        stays = alive[0] & alive[1]
        if len(before) == len(after) == groups.count:
            keys, stacked = concat_columns([groups.keys, groups.keys]), np.concatenate(totals)
        else:
            keys = take_columns(groups.keys, np.concatenate([before, after]))
            stacked = np.concatenate([totals[0][before], totals[1][after]])
        escaped = self._escapes.read(groups, before, after)
        others = [pa.concat_arrays([_at(old, before), _at(new, after)]) for old, new in touched]
        weights = np.ones(len(stacked), np.int64)
        weights[: len(before)] = -1
        rows = Batch(self._columns(keys, stacked, escaped, others), weights)
        # Where a group's old row and new row are, of the groups that have both.
        old, new = stays[before].nonzero()[0], len(before) + stays[after].nonzero()[0]
        values = rows.columns[self._key_count :]
        same = equal_rows_at(values, old, values, new, Equality.IDENTITY)
        if not same.any():
            return rows
        changed = np.ones(len(weights), np.bool_)
        changed[old[same]] = changed[new[same]] = False
        return rows.filter(changed)

    def _columns(
        self,
        keys: Sequence[pa.Array],
        totals: np.ndarray,
        escaped: dict[int, dict[int, list[tuple[int, int]]]] | None,
        touched: Sequence[pa.Array],
    ) -> tuple[pa.Array, ...]:
        columns = list(keys)
        others = iter(touched)
        read = {
            summand: slot.call.read(totals[:, slot.columns], (escaped or {}).get(slot.number, {}))
            for summand, slot in self._slots.items()
        }
        for call in self._calls:
            if isinstance(call, LinearCall):
                columns.append(call.result(totals[:, self._slots[call.summand].columns], read[call.summand]))
            else:
                columns.append(next(others))
        return tuple(columns)
