"""Documents: the rows whose vectors are searched, read where they are kept.

Nothing of a row is copied: of each run of the store there is a profile of its vectors, made when it is first searched,
and forgotten with the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from weirflow.errors import DataError
from weirflow.ivm.kernel.expressions.compile import compile_expression, compile_expressions
from weirflow.ivm.kernel.vectors.bounds import Kind, Profile, joined, profile
from weirflow.ivm.kernel.vectors.vectors import Vectors
from weirflow.ivm.operators.nearest.takebacks import Takebacks
from weirflow.ivm.operators.truth import true_rows
from weirflow.ivm.zset.batch import Batch, take_columns
from weirflow.ivm.zset.rows import consolidate

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.ivm.kernel.runs.run import Run
    from weirflow.ivm.operators.arrange import Arrange
    from weirflow.ivm.zset.batch import Bools, Int64s, UInt64s
    from weirflow.sql.expr import Expr
    from weirflow.types import VectorMetric


_PREPARED, _LEAST_PREPARED = 8, 1024
"""For each row that changes, and at least, so many rows of merged runs are looked at ahead of a search."""

_MOST_AHEAD = 4096
"""So many rows may be new to profiles for all to be made ready ahead of a search: no tick waits for more."""


@dataclass(frozen=True)
class DocumentColumns:
    """What is read of the rows of a store: all over its columns, the key's first.

    Attributes:
        chosen: which rows are documents; None for all.
        vector: the column of their vectors.
        shown: what is listed of a document.
    """

    chosen: Expr | None
    vector: int
    shown: tuple[Expr, ...]


@dataclass(frozen=True, eq=False)
class Part:
    """Some of the documents.

    Attributes:
        columns: those of the store.
        weights: how often each row is there; positive where it is live.
        live: which rows are documents.
        shown: makes of columns what is listed.
        run: the run that these rows are, if they are one.
    """

    columns: tuple[pa.Array, ...]
    weights: Int64s
    live: Bools
    vectors: Vectors
    metric: VectorMetric
    shown: Callable[[Sequence[pa.Array], int], Sequence[pa.Array]]
    known: Profile | None = None
    run: Run | None = None
    _codes: Callable[[Batch], UInt64s] | None = None
    _searched: dict[int, Bools] = field(default_factory=dict, init=False)
    _unplain: dict[int, tuple[Int64s, Int64s, Int64s]] = field(default_factory=dict, init=False)

    @property
    def is_kept(self) -> bool:
        """Whether these are rows of the store."""
        return self.run is not None

    @cached_property
    def codes(self) -> UInt64s:
        """A code for each row, equal for identical rows."""
        if self.run is not None:
            return self.run.codes
        assert self._codes is not None, "rows that are not of a run are coded when they are asked for"
        return self._codes(Batch(self.columns, self.weights))

    @cached_property
    def sorted_codes(self) -> tuple[UInt64s, Int64s | None]:
        """The codes in ascending order, and whose they are; None where the rows are in that order."""
        if self.run is not None:
            return self.codes, None
        order = np.argsort(self.codes, kind="stable")
        return self.codes[order], order

    @cached_property
    def profile(self) -> Profile:
        """What is known of the vectors."""
        return profile(self.vectors, self.metric, self.vectors.values.itemsize) if self.known is None else self.known

    @property
    def dimensions(self) -> Iterable[int]:
        """Which were asked for."""
        return self._searched.keys()

    def searched(self, dimension: int) -> Bools:
        """Which live rows have plain vectors of this dimension."""
        if dimension not in self._searched:
            fits = self.vectors.lengths == dimension
            self._searched[dimension] = self.live & (self.profile.kinds == Kind.PLAIN) & fits
        return self._searched[dimension]

    def unplain(self, dimension: int) -> tuple[Int64s, Int64s, Int64s]:
        """Live rows of which there are no bounds: whose distance from a vector of this dimension is NULL, NaN, odd."""
        if dimension not in self._unplain:
            live = np.flatnonzero(self.live & ~self.searched(dimension))
            kinds, fits = self.profile.kinds[live], self.vectors.lengths[live] == dimension
            nulls = (kinds == Kind.NULL) | ~fits
            nans = (kinds == Kind.NAN) & ~nulls
            self._unplain[dimension] = live[nulls], live[nans], live[~nulls & ~nans]
        return self._unplain[dimension]

    def rows(self, at: Int64s) -> Batch:
        """What is listed of the rows at these places, which may be named several times."""
        different, places = np.unique(at, return_inverse=True)
        columns = self.shown(take_columns(self.columns, different), len(different))
        return Batch(take_columns(columns, places), self.weights[at])


@dataclass(frozen=True, eq=False)
class _RunProfile:
    """What is known of a run: its vectors, which of its rows are chosen, and the profile of its vectors."""

    vectors: Vectors
    chosen: Bools
    profile: Profile


@dataclass(frozen=True, eq=False)
class _BegunProfile:
    """The vectors of a run, and the profile of the first of them."""

    vectors: Vectors
    parts: list[Profile] = field(default_factory=list)


class Documents:
    """The documents of a store.

    Args:
        store: holds all rows, before the tick until the circuit commits.
        columns: what is read of them.
        metric: what profiles are for.
        dimension: which all vectors must have; None if it was not declared.
    """

    def __init__(
        self, store: Arrange, columns: DocumentColumns, metric: VectorMetric, dimension: int | None = None
    ) -> None:
        self.store = store
        self._columns = columns
        self._metric = metric
        self._dimension = dimension
        self._chosen = None if columns.chosen is None else compile_expression(columns.chosen)
        self._shown = compile_expressions(columns.shown)
        self._profiles: WeakKeyDictionary[Run, _RunProfile] = WeakKeyDictionary()
        self._begun: WeakKeyDictionary[Run, _BegunProfile] = WeakKeyDictionary()
        self._takebacks = Takebacks(store.types)
        self._nothing = Batch.empty(store.types)
        self._settled: tuple[tuple[Run, ...], list[Part]] | None = None

    @property
    def types(self) -> tuple[pa.DataType, ...]:
        """Of what is listed of a document."""
        return tuple([one.type for one in self._columns.shown])

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the numbers of vectors."""
        found: np.dtype[Any] = np.dtype(self.store.types[self._columns.vector].value_type.to_pandas_dtype())
        return found

    def changed(self, delta: Batch) -> Part:
        """The documents among changed rows; weights may be negative.

        Raises:
            DataError: a vector is not of the declared dimension.
        """
        chosen = delta.filter(self._mask(delta.columns, len(delta))) if len(delta) else delta
        if (chosen.weights < 0).any():
            chosen = consolidate(chosen)
        self._require_dimension(chosen)
        return self._part(chosen, np.ones(len(chosen), np.bool_))

    def parts(self, delta: Batch) -> list[Part]:
        """All documents after a change of the store."""
        runs = self.store.arrangement.runs
        if not len(delta) and self._settled is not None and _same(self._settled[0], runs):
            return self._settled[1]
        if len(delta) and delta.weights.min() < 0:
            delta = consolidate(delta)
        masks, doubtful = self._takebacks.among(runs)
        if len(delta) and runs and delta.weights.min() < 0:
            for run, at in self.store.arrangement.places_of(delta):
                masks[run] = masks[run] if run in masks else np.ones(len(run), np.bool_)
                masks[run][at] = False
            doubtful = consolidate(Batch.concat([doubtful, Batch(delta.columns, np.ones(len(delta), np.int64))]))
            net = self._net(doubtful, delta)
        else:
            net = Batch.concat([self._net(doubtful, None), delta]) if len(delta) else self._net(doubtful, None)
        found = [self._of_run(run, masks.get(run)) for run in runs]
        if len(net):
            found.append(self._live(net))
        if not len(delta):
            self._settled = (runs, found)
        return found

    def prepare(self, changed: int) -> None:
        """Find out ahead what a search wants to know of runs that were merged, in a tick that changes so many rows.

        The newest rows are left to the search: they are few, and merged anew in every tick.
        """
        runs, rows = self.store.arrangement.older_runs, max(_LEAST_PREPARED, _PREPARED * changed)
        for run in runs:
            if rows > 0 and run not in self._profiles:
                rows -= self._profile_more(run, rows)
        self._takebacks.prepare(runs, rows)

    def make_ready(self) -> None:
        """Between ticks: do what the next search would do first, unless that is much."""
        runs, before = self.store.arrangement.runs, self._settled
        if before is not None and _same(before[0], runs):
            return
        if sum(len(run) for run in runs if run not in self._profiles) > _MOST_AHEAD:
            return
        parts = self.parts(self._nothing)
        for dimension in {one for part in before[1] for one in part.dimensions} if before is not None else ():
            for part in parts:
                part.unplain(dimension)

    def _net(self, doubtful: Batch, delta: Batch | None) -> Batch:
        """The rows that are in doubt, as often as they are there after a change."""
        if not len(doubtful):
            return doubtful
        stored = Batch(doubtful.columns, self.store.arrangement.weights_of(doubtful))
        net = stored if delta is None else consolidate(Batch.concat([stored, delta]))
        return net.filter(net.weights > 0)

    def count(self) -> int:
        """How many documents there are before the tick."""
        return sum(
            int(run.values[self._profile_of(run).chosen, 0].sum()) for run in self.store.arrangement.runs if len(run)
        )

    def _of_run(self, run: Run, mask: Bools | None) -> Part:
        known = self._profile_of(run)
        live = known.chosen if mask is None else known.chosen & mask
        weights = run.values[:, 0]
        return Part(run.columns, weights, live, known.vectors, self._metric, self._shown, known.profile, run)

    def _profile_of(self, run: Run) -> _RunProfile:
        if run not in self._profiles:
            self._profile_more(run, len(run))
        return self._profiles[run]

    def _profile_more(self, run: Run, rows: int) -> int:
        """Make so many more rows of the profile of a run; returns how many."""
        begun = self._begun.pop(run, None) or _BegunProfile(Vectors.of(run.columns[self._columns.vector]))
        first = sum(len(part.norms) for part in begun.parts)
        last = min(first + rows, len(run))
        here = begun.vectors.take(slice(first, last))
        begun.parts.append(profile(here, self._metric, begun.vectors.values.itemsize))
        if last < len(run):
            self._begun[run] = begun
        else:
            chosen = self._mask(run.columns, len(run))
            self._profiles[run] = _RunProfile(begun.vectors, chosen, joined(begun.parts))
        return last - first

    def _live(self, rows: Batch) -> Part:
        return self._part(rows, self._mask(rows.columns, len(rows)))

    def _part(self, rows: Batch, live: Bools) -> Part:
        vectors = Vectors.of(rows.columns[self._columns.vector])
        codes = self.store.arrangement.codes_of
        return Part(rows.columns, rows.weights, live, vectors, self._metric, self._shown, _codes=codes)

    def _mask(self, columns: Sequence[pa.Array], length: int) -> Bools:
        if self._chosen is None:
            return np.ones(length, np.bool_)
        return true_rows(self._chosen(columns, length))

    def _require_dimension(self, rows: Batch) -> None:
        if self._dimension is not None and len(rows):
            require_dimension(rows.columns[self._columns.vector], self._dimension, "document")


def require_dimension(column: pa.Array, dimension: int, what: str) -> None:
    """Raise ``DataError`` for a vector of another dimension; NULL is none."""
    vectors = Vectors.of(column)
    wrong = np.flatnonzero(vectors.usable & (vectors.lengths != dimension))
    if len(wrong):
        raise DataError(
            f"The vector of a {what} has {int(vectors.lengths[wrong[0]])} numbers; the view was declared for "
            f"vectors of {dimension}.",
            hint="correct the row, or declare the view with another dimension",
        )


def _same(some: Sequence[Run], others: Sequence[Run]) -> bool:
    return len(some) == len(others) and all(one is other for one, other in zip(some, others, strict=True))
