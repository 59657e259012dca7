"""Calls that an engine evaluates: the different rows of their arguments go there, what it makes of them comes back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from weirflow.errors import DataError, EngineMissing
from weirflow.ivm.kernel.expressions.python_calls import found_function, python_node, unlike
from weirflow.ivm.kernel.expressions.retype import retyped
from weirflow.ivm.kernel.expressions.rows import Rows, broadcast
from weirflow.ivm.zset.rows import group_rows
from weirflow.sql.foreign import column_name, filled, placeholder

if TYPE_CHECKING:
    from weirflow.ivm.kernel.expressions.rows import Node, Value
    from weirflow.ivm.zset.batch import Int64s
    from weirflow.sql.registered import UserFunction


@runtime_checkable
class EvaluatingEngine(Protocol):
    """An engine that also evaluates expressions which have no counterpart here."""

    def evaluate(self, expressions: Sequence[str], settings: Mapping[str, str], rows: pa.Table) -> pa.Table:
        """One column for each expression over these rows, in their order.

        Called by ticks, whose deadline it has, and when a view is filled, from any thread. Equal rows must give equal
        values, whenever they are asked for.

        Args:
            expressions: Spark SQL over the columns of the rows.
            settings: Spark's settings that it is read with.
            rows: at least one.

        Raises:
            DataError: an expression fails for a row.
        """


@runtime_checkable
class CallingEngine(Protocol):
    """An engine that knows functions of users."""

    def function(self, name: str, version: str | None) -> UserFunction | None:
        """The function that views call by this name, in a version or (None) in the last; None if there is none.

        Called when a view is compiled.
        """


_engine: ContextVar[object] = ContextVar("engine", default=None)


@contextmanager
def evaluated_by(engine: object) -> Iterator[None]:
    """Expressions that are compiled in this block have their foreign calls evaluated by an engine, as far as it can."""
    token = _engine.set(engine)
    try:
        yield
    finally:
        _engine.reset(token)


@dataclass(frozen=True)
class CompiledForeign:
    """A foreign call over compiled arguments."""

    slot: int
    text: str
    settings: str
    arguments: tuple[Node, ...]
    type: pa.DataType

    def values(self, rows: Rows) -> list[pa.Array]:
        """Its arguments for these rows."""
        return [broadcast(node(rows), rows.length) for node in self.arguments]


class ForeignCalls:
    """The foreign calls of expressions that are compiled together; those of the same rows are evaluated at once."""

    def __init__(self) -> None:
        engine = _engine.get()
        self._engine = engine if isinstance(engine, EvaluatingEngine) else None
        self._find = engine.function if isinstance(engine, CallingEngine) else _nothing
        self._together: dict[str, list[CompiledForeign]] = {}
        self._is_careful = False

    def node(self, call: CompiledForeign, *, is_inner: bool) -> Node:
        """A call as a node; one that is ``is_inner`` needs no other foreign call first."""
        if is_inner:
            self._together.setdefault(call.settings, []).append(call)
        if not call.arguments:
            return self._constant(call)

        def run(rows: Rows) -> Value:
            found = rows.cache.get(call.slot)
            if found is None:
                (found,) = self._evaluated([call], [call.values(rows)], rows.length)
                rows.cache[call.slot] = found
            return found

        return run

    def python(self, call: CompiledForeign) -> Node:
        """A call of a user's function as a node; ``FunctionMissing`` if it is not there."""
        name, function = found_function(call.settings, self._find)

        def by_engine(rows: Rows) -> Value:
            if self._engine is None:
                raise unlike(name, call.type)
            return self._evaluated([call], [call.values(rows)], rows.length)[0]

        return python_node(name, function, call.arguments, call.type, by_engine)

    def prepare(self, rows: Rows) -> None:
        """Evaluate several calls for all rows at once; what fails is left to whoever asks, for the rows that do."""
        if self._is_careful:
            return
        for calls in self._together.values():
            if len(calls) < 2:  # noqa: PLR2004 - one is evaluated when it is asked for
                continue
            try:
                values = [call.values(rows) for call in calls]
                found = self._evaluated(calls, values, rows.length)
            except DataError:
                self._is_careful = True
                return
            rows.cache.update({call.slot: value for call, value in zip(calls, found, strict=True)})

    def _constant(self, call: CompiledForeign) -> Node:
        known: list[pa.Scalar] = []

        def run(_: Rows) -> Value:
            if not known:
                (value,) = self._evaluated([call], [[]], 1)
                known.append(value[0])
            return known[0]

        return run

    def _evaluated(
        self, calls: Sequence[CompiledForeign], values: Sequence[Sequence[pa.Array]], length: int
    ) -> list[pa.Array]:
        if self._engine is None:
            raise EngineMissing(
                f"Spark evaluates {filled(calls[0].text, lambda _: '…')} for a view, and this flow has no Session.",
                hint="open the flow with session.flow(name)",
            )
        columns: list[pa.Array] = []
        texts = []
        for call, arguments in zip(calls, values, strict=True):
            places = [_place(columns, argument) for argument in arguments]
            texts.append(filled(call.text, lambda number, places=places: placeholder(places[number])))  # type: ignore[misc]
        distinct, back = _distinct(columns, length)
        names = [column_name(at) for at in range(len(distinct))]
        table = pa.Table.from_arrays(distinct, names=names)
        found = self._engine.evaluate(texts, json.loads(calls[0].settings), table)
        return [retyped(_whole(found.column(at)), call.type).take(pa.array(back)) for at, call in enumerate(calls)]


def _nothing(_: str, __: str | None) -> None:
    """Finds no function."""


def _place(columns: list[pa.Array], wanted: pa.Array) -> int:
    for at, one in enumerate(columns):
        if one is wanted:
            return at
    columns.append(wanted)
    return len(columns) - 1


def _distinct(columns: list[pa.Array], length: int) -> tuple[list[pa.Array], Int64s]:
    """The different rows, and for each row where it is among them. One row without meaning if there are no columns."""
    if not columns:
        return [pa.nulls(1, pa.int32())], np.zeros(length, np.int64)
    order, starts, _ = group_rows(columns, length)
    if len(starts) == length:
        return columns, np.arange(length)
    back = np.empty(length, np.int64)
    back[order] = np.repeat(np.arange(len(starts)), np.diff(starts, append=length))
    first = pa.array(order[starts])
    return [column.take(first) for column in columns], back


def _whole(column: pa.ChunkedArray) -> pa.Array:
    found = column.combine_chunks()
    return found if isinstance(found, pa.Array) else pa.concat_arrays(found.chunks)
