"""Where rows are, and where they go: partitionings, and the exchange that changes them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from weirflow.ivm.kernel.expressions.compile import compile_expressions
from weirflow.ivm.operators.operator import Operator
from weirflow.ivm.sharded.plan.policies import SpreadPolicy, shard_of
from weirflow.ivm.zset.hashing import Equality, hash_rows
from weirflow.sql.expr import Column, Expr

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.ivm.kernel.frontier import Frontier
    from weirflow.ivm.zset.batch import Batch

FIRST = 0
"""The shard of everything that has to be in one place."""
_SHORT = 1 << 16


@dataclass(frozen=True)
class ByColumns:
    """Rows with equal values in these columns are on the same shard, which the hash of the values tells."""

    columns: tuple[int, ...]

    def __str__(self) -> str:
        return f"by columns {', '.join(map(str, self.columns))}"


@dataclass(frozen=True)
class Single:
    """All rows are on the first shard."""

    def __str__(self) -> str:
        return "on one shard"


@dataclass(frozen=True)
class Somewhere:
    """A row is retracted where it was inserted; equal rows may be on several shards."""

    def __str__(self) -> str:
        return "anywhere"


@dataclass(frozen=True)
class Everywhere:
    """Every shard has all rows."""

    def __str__(self) -> str:
        return "on every shard"


Partitioning = ByColumns | Single | Somewhere | Everywhere


def of_row(partitioning: Partitioning) -> bool:
    """Whether equal rows are on the same shard."""
    return isinstance(partitioning, ByColumns | Single)


@dataclass(frozen=True)
class ToKeys:
    """Rows go to the shard of the values of these expressions."""

    keys: tuple[Expr, ...]


@dataclass(frozen=True)
class ToOne:
    """Rows go to the first shard."""


@dataclass(frozen=True)
class ToAll:
    """Rows go to every shard."""


Route = ToKeys | ToOne | ToAll


def after(route: Route) -> Partitioning:
    """Where rows are that went this way."""
    if isinstance(route, ToOne):
        return Single()
    if isinstance(route, ToAll):
        return Everywhere()
    columns = tuple(key.index for key in route.keys if isinstance(key, Column))
    return ByColumns(columns) if len(columns) == len(route.keys) else Somewhere()


class Exchange(Operator):
    """The same rows, on the shards where ``route`` sends them. It ends a stage; the next one reads it."""

    def __init__(self, types: Sequence[pa.DataType], route: Route, policy: SpreadPolicy = shard_of) -> None:
        super().__init__(types)
        self.route = route
        self._policy = policy
        self._keys = compile_expressions(route.keys) if isinstance(route, ToKeys) else None

    def advance(self, inputs: Sequence[Frontier]) -> Frontier:
        """Time is the same on all shards."""
        return inputs[0]

    def step(self, deltas: Sequence[Batch]) -> Batch:
        """Pass the rows on; ``split`` says where each goes."""
        (delta,) = deltas
        return delta

    def split(self, rows: Batch, shards: int) -> dict[int, Batch]:
        """The rows of each shard that gets some."""
        if not len(rows):
            return {}
        if isinstance(self.route, ToOne) or shards == 1:
            return {FIRST: rows}
        if self._keys is None:
            return dict.fromkeys(range(shards), rows)
        return split_by(self._keys(rows.columns, len(rows)), rows, shards, self._policy)


def split_by(keys: Sequence[pa.Array], rows: Batch, shards: int, policy: SpreadPolicy = shard_of) -> dict[int, Batch]:
    """The rows of each shard that gets some, by the hash of their keys."""
    if shards == 1:
        return {FIRST: rows} if len(rows) else {}
    shard = policy(hash_rows(keys, len(rows), Equality.GROUPING), shards)
    # Of numbers of 16 bits it is a radix sort.
    order = np.argsort(shard.astype(np.uint16) if shards <= _SHORT else shard, kind="stable")
    ends = np.cumsum(np.bincount(shard, minlength=shards))
    edges = itertools.pairwise([0, *ends.tolist()])
    return {one: rows.take(order[start:end]) for one, (start, end) in enumerate(edges) if start < end}
