"""Join is bilinear: the change of A join B is dA with old B, old A with dB, and dA with dB; weights multiply."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from typing_extensions import override

from weirflow.errors import DataError, ResultTooLarge
from weirflow.ivm.kernel.arrangement import Arrangement
from weirflow.ivm.kernel.bounds import require_memory, require_takeable, row_bytes
from weirflow.ivm.kernel.deadline import check
from weirflow.ivm.kernel.expressions.compile import Evaluator, compile_expression
from weirflow.ivm.kernel.frontier import Frontier, least
from weirflow.ivm.kernel.runs.search import TooManyPairs
from weirflow.ivm.operators.arrange import Arrange
from weirflow.ivm.operators.join import pairs
from weirflow.ivm.operators.operator import Operator
from weirflow.ivm.operators.truth import true_rows
from weirflow.ivm.zset.batch import Batch, magnitude
from weirflow.ivm.zset.buffers import bits
from weirflow.ivm.zset.rows import consolidate

if TYPE_CHECKING:
    from weirflow.ivm.kernel.state import ProbeResult
    from weirflow.ivm.zset.batch import Int64s
    from weirflow.sql.expr import Expr


_FEW_PAIRS = 1 << 12
_FAN_OUT = 4
"""More pairs than that for each row, and it is worth finding out which rows are equal."""
_MOST_WEIGHT = 1 << 62


class _Term(NamedTuple):
    """Rows of one side's delta, what they meet and which columns of that, and how the pairs are put together."""

    rows: Batch
    side: Arrangement
    columns: Sequence[int] | None
    joined: Callable[[Batch, ProbeResult], Batch]


class Join(Operator):
    """The inner join of two arranged inputs on their keys.

    One of the inputs holds no row with a NULL key, or ``null_keys`` says that both may. Output columns are chosen from
    the left's then the right's by index, and ``residual`` is a condition over the left's columns followed by the
    right's.

    Attributes:
        most: how many pairs ``step`` makes at once, where whoever runs it can do with ``slices``; None for all.
    """

    def __init__(
        self,
        left: Arrange,
        right: Arrange,
        left_columns: Sequence[int],
        right_columns: Sequence[int],
        residual: Expr | None,
        *,
        null_keys: bool = False,
    ) -> None:
        types = [left.types[index] for index in left_columns]
        super().__init__([*types, *(right.types[index] for index in right_columns)])
        self.left = left
        self.right = right
        self.left_columns = tuple(left_columns)
        self.right_columns = tuple(right_columns)
        self.most: int | None = None
        self._null_keys = null_keys
        self._residual: Evaluator | None = compile_expression(residual) if residual is not None else None

    def advance(self, inputs: Sequence[Frontier]) -> Frontier:
        """See ``Operator``: rows that meet have equal keys, so a key that has a bound on both sides keeps one."""
        keys = range(self.left.key_count)
        bounds = {column: bound for column, bound in least(inputs).items() if column in keys}
        columns = (*self.left_columns, *self.right_columns)
        return {at: bounds[column] for at, column in enumerate(columns) if column in bounds}

    @override
    def step(self, deltas: Sequence[Batch]) -> Batch:
        """See ``Operator``; ``TooManyPairs`` if it makes more than ``most`` at once."""
        deltas = self._that_meet(deltas)
        try:
            return self._change(*deltas)
        except DataError as error:
            if self._residual is None or isinstance(error, ResultTooLarge):
                raise
            return pairs.replaced((self.left, self.right), deltas, self._whole)

    def slices(self, deltas: Sequence[Batch], most: int) -> Iterator[Batch]:
        """What ``step`` returns, about so many pairs at a time; nobody has to hold all."""
        for term in self._terms(*self._that_meet(deltas)):
            rows = consolidate(term.rows)
            for part in pairs.met(rows, term.side, most=most, columns=term.columns):
                joined = term.joined(part.rows, part.matches)
                if len(joined):
                    yield joined

    def narrow_slices(self, deltas: Sequence[Batch], columns: Sequence[int], most: int) -> Iterator[Batch]:
        """``slices`` of some output columns, in ascending order, for a join without a residual condition.

        Of both sides, what changes and what it meets, rows become equal where they differ in other columns only.
        """
        split = len(self.left_columns)
        keys = self.left.key_count
        wanted = [self.left_columns[one] for one in columns if one < split]
        others = [self.right_columns[one - split] for one in columns if one >= split]
        left, right = _Narrowed(self.left, wanted), _Narrowed(self.right, others)
        changes = [side.rows(delta) for side, delta in zip((left, right), self._that_meet(deltas), strict=True)]
        for side, change in ((right, changes[0]), (left, changes[1])):
            if len(change):
                side.hold(consolidate(Batch(change.columns[:keys], np.ones(len(change), np.int64))))
        narrow = Join(left.arrange, right.arrange, left.places, right.places, None)
        yield from narrow.slices(changes, most)

    @property
    def has_residual(self) -> bool:
        """Whether there is a condition beside the keys."""
        return self._residual is not None

    def _that_meet(self, deltas: Sequence[Batch]) -> Sequence[Batch]:
        """The deltas without rows whose key has a NULL, where the other side does not see to it."""
        if not self._null_keys:
            return deltas
        return [_with_keys(delta, self.left.key_count) for delta in deltas]

    def _whole(self, left: Batch, right: Arrangement) -> Batch:
        parts = [self.nothing]
        self._join(_Term(left, right, self._met_columns(self.right_columns), self._joined), parts)
        return Batch.concat(parts)

    def _change(self, left: Batch, right: Batch) -> Batch:
        parts: list[Batch] = []
        undone = False
        for term in self._terms(left, right):
            undone |= self._join(term, parts)
        joined = Batch.concat(parts) if parts else self.nothing
        # A row that meets what the other side was, its retraction, and what it is now makes three where one is left.
        # Each join of joins would multiply them; that none returns more rows than it was given, or than there are, adds
        # up instead.
        return consolidate(joined) if undone and len(joined) > len(left) + len(right) else joined

    def _terms(self, left: Batch, right: Batch) -> Iterator[_Term]:
        lefts, rights = self._met_columns(self.left_columns), self._met_columns(self.right_columns)
        if len(left):
            yield _Term(left, self.right.arrangement, rights, self._joined)
        if len(right):
            yield _Term(right, self.left.arrangement, lefts, self._joined_reversed)
        if len(left) and len(right):
            new = Arrangement(self.right.types, self.right.key_count)
            new.insert(right)
            yield _Term(left, new, rights, self._joined)

    def _met_columns(self, chosen: Sequence[int]) -> Sequence[int] | None:
        """The columns of rows that are met which are looked at; None for all, which a condition may want."""
        return chosen if self._residual is None else None

    def _join(self, term: _Term, parts: list[Batch]) -> bool:
        """Append the pairs of a term; ``ResultTooLarge`` rather than run out of memory.

        Returns whether a row was met that takes back others of its side.
        """
        made, undone = 0, False
        for part in self._met(term):
            joined = term.joined(part.rows, part.matches)
            if not len(joined):
                continue
            undone = undone or bool(part.matches.batch.weights.min() < 0)
            parts.append(joined)
            made += len(joined)
            if len(part.rows) < len(term.rows):
                self._require_memory(made)  # once more, to put the slices together
        return undone

    def _met(self, term: _Term) -> Iterable[pairs.Slice]:
        """The rows with what they meet. Where that is much more than themselves, equal rows meet it once."""
        rows, side = term.rows, term.side
        check()
        few = max(_FEW_PAIRS, _FAN_OUT * len(rows))
        most = min(few, pairs.MOST_PAIRS) if len(rows) > 1 else None
        try:
            keys, layout = rows.columns[: side.key_count], rows.layout
            matches = side.probe(keys, count=len(rows), most=most, columns=term.columns, layout=layout)
        except TooManyPairs as found:
            rows = consolidate(rows) if found.pairs > few else rows
            return pairs.met(rows, side, self._expect, columns=term.columns)
        return [pairs.Slice(0, rows, matches)]

    def _expect(self, count: int) -> None:
        """There will be more pairs than fit a slice."""
        if self.most is not None and count > self.most:
            raise TooManyPairs(np.array([count]))
        if self._residual is None:
            self._require_memory(count)

    def _require_memory(self, count: int) -> None:
        require_memory(count * row_bytes(self.types), f"A join that makes {count:,} rows at once")

    def _joined(self, left: Batch, matches: ProbeResult) -> Batch:
        return self._combined(self._chosen(left, self.left_columns), matches.probe_index, matches.batch, None)

    def _joined_reversed(self, right: Batch, matches: ProbeResult) -> Batch:
        return self._combined(matches.batch, None, self._chosen(right, self.right_columns), matches.probe_index)

    def _chosen(self, rows: Batch, columns: Sequence[int]) -> Batch:
        return rows.select(columns) if self._residual is None else rows

    def _combined(self, left: Batch, left_at: Int64s | None, right: Batch, right_at: Int64s | None) -> Batch:
        """Pairs of rows side by side, of each side those at the given places or all in order.

        Only pairs that meet the residual condition are returned, with the chosen columns. Without a condition the
        sides have no others.
        """
        if left_at is not None:
            require_takeable(left.columns, left_at, "A join")
            left = left.take(left_at)
        if right_at is not None:
            require_takeable(right.columns, right_at, "A join")
            right = right.take(right_at)
        weights = _products(left.weights, right.weights)
        if self._residual is None:
            return Batch((*left.columns, *right.columns), weights)
        if len(weights):
            keep = np.flatnonzero(true_rows(self._residual((*left.columns, *right.columns), len(left))))
            left, right, weights = left.take(keep), right.take(keep), weights[keep]
        columns = left.select(self.left_columns).columns + right.select(self.right_columns).columns
        return Batch(columns, weights)


class _Narrowed:
    """One side of a join with its keys and the wanted columns alone."""

    def __init__(self, whole: Arrange, wanted: Sequence[int]) -> None:
        self._whole = whole
        keys = whole.key_count
        self._layout = [*range(keys), *(one for one in wanted if one >= keys)]
        self.places = [self._layout.index(one) for one in wanted]
        self.arrange = Arrange([whole.types[one] for one in self._layout], keys)

    def rows(self, batch: Batch) -> Batch:
        """Rows of the side, narrowed; equal ones are one."""
        return consolidate(batch.select(self._layout))

    def hold(self, keys: Batch) -> None:
        """Arrange what the side holds of these keys, each of which is there once."""
        found = self._whole.arrangement.probe(keys.columns, count=len(keys)).batch
        self.arrange.arrangement.insert(self.rows(found))


def _with_keys(rows: Batch, key_count: int) -> Batch:
    """The rows without NULL in any of their first columns."""
    nullable = [column for column in rows.columns[:key_count] if column.null_count]
    if not nullable:
        return rows
    kept = np.ones(len(rows), np.bool_)
    for column in nullable:
        kept &= bits(column.is_valid())
    return rows.filter(kept)


def _products(left: Int64s, right: Int64s) -> Int64s:
    """The weights of pairs. They never wrap: ``DataError`` if one may not fit."""
    if not len(left):
        return left
    if magnitude(left[:, None]) * magnitude(right[:, None]) > _MOST_WEIGHT:
        raise DataError(
            "A join makes more equal rows than a 64-bit integer can count.",
            hint="look for a join condition that is missing, or rows that were inserted again and again",
        )
    return left * right
