"""Recursion is the sum of its levels: the base, then level after level what the step makes of the level before.

All levels share the operators of the step, whose rows carry their level. A change of what the step reads besides the
recursion is applied to all levels at once; then the changes of the levels themselves, one after the other, each
complete before the next. A tick costs what the levels that change weigh, however many others there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from typing_extensions import override

from weirflow.errors import DataError
from weirflow.ivm.circuit.first_level import LEVEL, FirstLevels, at_level
from weirflow.ivm.kernel.layered import LayeredSums
from weirflow.ivm.operators.layered import LayeredArrange, LayeredDistinct
from weirflow.ivm.operators.operator import Operator
from weirflow.ivm.zset.batch import Batch
from weirflow.ivm.zset.buffers import raw_values
from weirflow.ivm.zset.rows import consolidate

if TYPE_CHECKING:
    from weirflow.ivm.circuit.circuit import Circuit
    from weirflow.ivm.kernel.state import State

FOUND = "found"
"""The step's source for the rows found last, with their level as a last column."""
STEP = "step"
"""The step's view: what it makes of them, with the level of the row it was made of as a last column."""


@dataclass(frozen=True)
class RecursionLimits:
    """How far a recursion may go before it is taken for endless.

    Attributes:
        levels: how many levels may hold rows.
        rows: how many rows all levels together must stay below; None for any number.
    """

    levels: int
    rows: int | None


UNION_ALL = RecursionLimits(100, 1_000_000)
"""Spark's own: spark.sql.cteRecursionLevelLimit and spark.sql.cteRecursionRowLimit."""
UNION = RecursionLimits(10_000, None)
"""A row is found once, so cycles end by themselves: only a step that makes ever new values gets this far."""


class Recursion(Operator):
    """A recursive CTE. The first input is its base, the others are what its step reads.

    Args:
        name: of the CTE, for messages.
        types: of its columns.
        step: the circuit of the step, with ``FOUND`` and ``sources`` as its sources and ``STEP`` as its only view. All
            state in it is layered.
        sources: the step's other sources, in the order of the inputs.
        distinct: whether a row is found once (UNION), or at every level that makes it (UNION ALL).
    """

    consolidated = True

    def __init__(
        self, name: str, types: Sequence[pa.DataType], step: Circuit, sources: Sequence[str], *, distinct: bool
    ) -> None:
        super().__init__(types)
        self._name = name
        self._circuit = step
        self._sources = tuple(sources)
        self._first = FirstLevels(self.types) if distinct else None
        self._limits = UNION if distinct else UNION_ALL
        self._sizes = LayeredSums((LEVEL,), 1)
        operators = [node.operator for node in step.nodes]
        self._layered = [one for one in operators if isinstance(one, LayeredArrange | LayeredDistinct)]
        assert all(one in self._layered or not one.states for one in operators), "a step runs several times in a tick"

    @property
    def states(self) -> Sequence[State]:
        """How many rows each level has, or where each row is derived; then what the step's operators hold."""
        own = self._sizes if self._first is None else self._first.derived
        return (own, *(state for one in self._layered for state in one.states))

    def start(self) -> Batch:
        """Nothing: a step makes no rows of none."""
        self._circuit.start()
        return Batch.empty(self.types)

    @override
    def step(self, deltas: Sequence[Batch]) -> Batch:
        base, *others = deltas
        derived = {0: [base]} if len(base) else {}
        _spread(self._made(dict(zip(self._sources, others, strict=True))), derived)
        changes = [Batch.empty(self.types)]
        while (level := self._next_level(derived)) is not None:
            change = self._changed(level, derived.pop(level, []))
            if not len(change):
                continue
            changes.append(change)
            self._check(level, change)
            _spread(self._made({FOUND: at_level(change, level)}), derived)
        self._check_rows(self._limits.levels)
        self._stage(self._keep)
        return consolidate(Batch.concat(changes))

    @override
    def discard(self) -> None:
        super().discard()
        self._circuit.discard()
        for one in self._layered:
            one.layer.forget()
        self._sizes.forget()
        if self._first is not None:
            self._first.forget()

    def _keep(self) -> None:
        for one in self._layered:
            one.layer.keep()
        self._sizes.keep()
        if self._first is not None:
            self._first.keep()

    def _made(self, deltas: Mapping[str, Batch]) -> Batch:
        """What the step makes of these changes, which its further steps in this tick know of."""
        given = {name: delta for name, delta in deltas.items() if len(delta)}
        made = self._circuit.step(given)
        self._circuit.commit([])  # layers decide later whether it stays
        return made[STEP] if STEP in made else at_level(Batch.empty(self.types), 0)

    def _next_level(self, derived: Mapping[int, object]) -> int | None:
        """The first level that has something to look at."""
        return min((*derived, *(() if self._first is None else self._first.due)), default=None)

    def _changed(self, level: int, derived: Sequence[Batch]) -> Batch:
        """How a level changes, given how often more or less its rows are derived."""
        delta = consolidate(Batch.concat([Batch.empty(self.types), *derived]))
        return delta if self._first is None else self._first.change(level, delta)

    def _check(self, level: int, change: Batch) -> None:
        """Refuse a level, or more rows, beyond the limits."""
        if level >= self._limits.levels:
            raise DataError(
                f"The recursive CTE {self._name!r} still finds rows after {self._limits.levels:,} levels.",
                hint="look for a cycle in the data, or give the step a condition that ends it",
                condition="RECURSION_LEVEL_LIMIT_EXCEEDED",
            )
        if self._limits.rows is not None:
            self._sizes.add((pa.array([level], LEVEL),), change.weights.sum().reshape(1, 1))
            # Levels above may still shrink in this tick; those up to here are as they will be.
            self._check_rows(level + 1)

    def _check_rows(self, levels: int) -> None:
        """Refuse too many rows in the first levels."""
        if self._limits.rows is None:
            return
        if self._sizes.lookup((pa.array(np.arange(levels, dtype=np.int32)),)).sum() >= self._limits.rows:
            raise DataError(
                f"The recursive CTE {self._name!r} has reached {self._limits.rows:,} rows.",
                hint="look for a cycle in the data, or find each row once with UNION instead of UNION ALL",
                condition="RECURSION_ROW_LIMIT_EXCEEDED",
            )


def _spread(made: Batch, derived: dict[int, list[Batch]]) -> None:
    """Put what the step made of each level to what is derived at the next one."""
    rows = made.select(range(len(made.columns) - 1))
    levels = raw_values(made.columns[-1])
    order = np.argsort(levels, kind="stable")
    found, starts = np.unique(levels[order], return_index=True)
    for level, places in zip(found.tolist(), np.split(order, starts[1:]), strict=False):
        derived.setdefault(level + 1, []).append(rows.take(places))
