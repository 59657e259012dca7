"""What each operator asks of where its input rows are, and where its output rows are then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import TYPE_CHECKING

from weirflow.ivm.circuit.recursion import Recursion
from weirflow.ivm.operators.aggregate.operator import Aggregate
from weirflow.ivm.operators.arrange import Arrange, Meeting
from weirflow.ivm.operators.clocked.operator import Clocked
from weirflow.ivm.operators.consolidate import Consolidate
from weirflow.ivm.operators.constant import Constant
from weirflow.ivm.operators.distinct import Distinct
from weirflow.ivm.operators.generate import Generate
from weirflow.ivm.operators.join.match import Match
from weirflow.ivm.operators.join.operator import Join
from weirflow.ivm.operators.map import Filter, Normalize, Project
from weirflow.ivm.operators.nearest.operator import Nearest
from weirflow.ivm.operators.negate import Negate
from weirflow.ivm.operators.session_window import SessionWindow
from weirflow.ivm.operators.set_operation import SetOperation
from weirflow.ivm.operators.topk import TopK
from weirflow.ivm.operators.union import Union
from weirflow.ivm.operators.window.operator import Window
from weirflow.ivm.sharded.plan.routes import (
    ByColumns,
    Everywhere,
    Partitioning,
    Route,
    Single,
    Somewhere,
    ToAll,
    ToKeys,
    ToOne,
    of_row,
)
from weirflow.sql.expr import Column, Expr

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.ivm.operators.operator import Operator


@dataclass(frozen=True)
class OperatorPlacement:
    """Where the rows of each input have to go first, None where they are right, and where the output is."""

    routes: tuple[Route | None, ...]
    output: Partitioning


@singledispatch
def place(operator: Operator, given: Sequence[Partitioning]) -> OperatorPlacement:
    """The placement of an operator whose inputs are partitioned as ``given``.

    It depends on nothing else, so that it stays as it is when others come to read the operator. If all inputs are
    everywhere, each shard does the work for itself.
    """
    raise AssertionError(f"{type(operator).__name__} of {len(given)} inputs is not known here")


@place.register(Filter)
@place.register(Normalize)
@place.register(Negate)
@place.register(Generate)
def _(operator: Operator, given: Sequence[Partitioning]) -> OperatorPlacement:
    """Row by row, the input's columns in their places."""
    del operator
    return OperatorPlacement((None,), given[0])


@place.register(Clocked)
def _(operator: Clocked, given: Sequence[Partitioning]) -> OperatorPlacement:
    """Row by row; every shard has the clock."""
    if operator.projections is None:
        return OperatorPlacement((None, None), given[0])
    return OperatorPlacement((None, None), _moved(given[0], [_column(one) for one in operator.projections]))


@place.register(Project)
def _(operator: Project, given: Sequence[Partitioning]) -> OperatorPlacement:
    return OperatorPlacement((None,), _moved(given[0], [_column(one) for one in operator.expressions]))


@place.register(Union)
def _(operator: Union, given: Sequence[Partitioning]) -> OperatorPlacement:
    if len(set(given)) == 1:
        return OperatorPlacement((None,) * len(given), given[0])
    whole = _all_columns(operator.types)
    routes = [_to(whole, operator.types) if isinstance(one, Everywhere) else None for one in given]
    return OperatorPlacement(tuple(routes), Somewhere())


@place.register(Constant)
def _(operator: Constant, given: Sequence[Partitioning]) -> OperatorPlacement:
    del operator, given
    return OperatorPlacement((), Single())


@place.register(Arrange)
def _(operator: Arrange, given: Sequence[Partitioning]) -> OperatorPlacement:
    """Both sides of a join have their keys first, and must be partitioned alike, or one of them is everywhere."""
    if operator.meeting is Meeting.IN_PLACE:
        return OperatorPlacement((None,), given[0])
    if operator.meeting is Meeting.WHOLE:
        return OperatorPlacement((None if isinstance(given[0], Everywhere) else ToAll(),), Everywhere())
    if not operator.key_count:
        return _whole_rows(operator.types, given)
    wanted = ByColumns(tuple(range(operator.key_count)))
    return OperatorPlacement((None if given[0] == wanted else _to(wanted, operator.types),), wanted)


@place.register(Join)
def _(operator: Join, given: Sequence[Partitioning]) -> OperatorPlacement:
    """Rows that meet are on the same shard: that of the left ones, or of the right ones if the left are everywhere."""
    keys = operator.left.key_count
    left, right = operator.left_columns, operator.right_columns
    # A key may be read from either side: they are equal.
    if isinstance(given[0], Everywhere):
        shown = _moved(given[1], [*(column if column < keys else None for column in left), *right])
    else:
        shown = _moved(given[0], [*left, *(column if column < keys else None for column in right)])
    return OperatorPlacement((None, None), shown)


@place.register(Nearest)
def _(operator: Nearest, given: Sequence[Partitioning]) -> OperatorPlacement:
    """Where all documents are everywhere, queries stay where they are."""
    return OperatorPlacement((None, None), _moved(given[0], operator.spec.left_columns))


@place.register(Match)
def _(operator: Match, given: Sequence[Partitioning]) -> OperatorPlacement:
    del operator
    return OperatorPlacement((None, None), given[0])


@place.register(Aggregate)
def _(operator: Aggregate, given: Sequence[Partitioning]) -> OperatorPlacement:
    route = _together(operator.keys, given[0])
    if route is None:
        return OperatorPlacement((None,), _moved(given[0], [_column(key) for key in operator.keys]))
    keyed = isinstance(route, ToKeys)
    return OperatorPlacement((route,), ByColumns(tuple(range(len(operator.keys)))) if keyed else Single())


@place.register(Window)
def _(operator: Window, given: Sequence[Partitioning]) -> OperatorPlacement:
    return _kept_columns(operator.partition_by, given)


@place.register(SessionWindow)
def _(operator: SessionWindow, given: Sequence[Partitioning]) -> OperatorPlacement:
    return _kept_columns(operator.keys, given)


@place.register(Distinct)
@place.register(Consolidate)
def _(operator: Operator, given: Sequence[Partitioning]) -> OperatorPlacement:
    return _whole_rows(operator.types, given)


@place.register(SetOperation)
def _(operator: SetOperation, given: Sequence[Partitioning]) -> OperatorPlacement:
    if len(set(given)) == 1 and (of_row(given[0]) or isinstance(given[0], Everywhere)):
        return OperatorPlacement((None, None), given[0])
    whole = _all_columns(operator.types)
    return OperatorPlacement(tuple(None if one == whole else _to(whole, operator.types) for one in given), whole)


@place.register(TopK)
@place.register(Recursion)
def _(operator: Operator, given: Sequence[Partitioning]) -> OperatorPlacement:
    """One place for all. ``spread`` puts the first rows of each shard before a TopK."""
    del operator
    if all(isinstance(one, Everywhere) for one in given):
        return OperatorPlacement((None,) * len(given), Everywhere())
    return OperatorPlacement(tuple(None if isinstance(one, Single) else ToOne() for one in given), Single())


def whole_rows(types: Sequence[pa.DataType], given: Partitioning) -> tuple[Route | None, Partitioning]:
    """How rows get to where equal ones are on the same shard, or all on each, and how they are partitioned then."""
    if of_row(given) or isinstance(given, Everywhere):
        return None, given
    whole = _all_columns(types)
    return _to(whole, types), whole


def _whole_rows(types: Sequence[pa.DataType], given: Sequence[Partitioning]) -> OperatorPlacement:
    route, output = whole_rows(types, given[0])
    return OperatorPlacement((route,), output)


def _kept_columns(keys: Sequence[Expr], given: Sequence[Partitioning]) -> OperatorPlacement:
    """Rows of equal keys together, by an operator that keeps the input's columns in their places."""
    route = _together(keys, given[0])
    if route is None:
        return OperatorPlacement((None,), given[0])
    if isinstance(route, ToOne):
        return OperatorPlacement((route,), Single())
    columns = [_column(key) for key in keys]
    known = tuple(column for column in columns if column is not None)
    return OperatorPlacement((route,), ByColumns(known) if len(known) == len(columns) else Somewhere())


def _together(keys: Sequence[Expr], given: Partitioning) -> Route | None:
    """How rows of equal keys come to be on the same shard; None if they are."""
    if isinstance(given, Single | Everywhere):
        return None
    if not keys:
        return ToOne()
    plain = {_column(key) for key in keys}
    return None if isinstance(given, ByColumns) and plain >= set(given.columns) else ToKeys(tuple(keys))


def _moved(given: Partitioning, columns: Sequence[int | None]) -> Partitioning:
    """The same partitioning where column ``columns[i]`` is now column i; None for what is none of the old ones."""
    if not isinstance(given, ByColumns):
        return given
    at = {column: place for place, column in reversed(list(enumerate(columns))) if column is not None}
    if any(column not in at for column in given.columns):
        return Somewhere()
    return ByColumns(tuple(at[column] for column in given.columns))


def _column(expression: Expr) -> int | None:
    return expression.index if isinstance(expression, Column) else None


def _all_columns(types: Sequence[pa.DataType]) -> ByColumns:
    return ByColumns(tuple(range(len(types))))


def _to(wanted: ByColumns, types: Sequence[pa.DataType]) -> ToKeys:
    return ToKeys(tuple(Column(index, "", types[index]) for index in wanted.columns))
