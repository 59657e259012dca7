"""What a node with state holds of an operator's state, and on which shard each row of it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import singledispatch
from typing import TYPE_CHECKING

from weirflow.ivm.operators.aggregate.operator import Aggregate
from weirflow.ivm.operators.arrange import Arrange
from weirflow.ivm.operators.clocked.operator import Clocked
from weirflow.ivm.operators.distinct import Distinct
from weirflow.ivm.operators.nearest.operator import Nearest
from weirflow.ivm.operators.session_window import SessionWindow
from weirflow.ivm.operators.set_operation import SetOperation
from weirflow.ivm.operators.topk import TopK
from weirflow.ivm.operators.window.operator import Window
from weirflow.ivm.sharded.plan.routes import ByColumns, Everywhere, Exchange, Partitioning, Single, ToKeys
from weirflow.sql.expr import Column, Expr

if TYPE_CHECKING:
    from weirflow.ivm.operators.operator import Operator
    from weirflow.ivm.sharded.plan.spread import Spread


class Share(Enum):
    """What a node of a circuit in shards holds of the state that an operator has in one process."""

    OWN = auto()
    """On all shards together, the same rows; where everything is everywhere, on each."""
    PARTS = auto()
    """What the operator would hold if there were no rows but those of the shard."""
    SUMS = auto()
    """What is made of the results of the parts."""
    FIRSTS = auto()
    """The first rows of each shard."""


@dataclass(frozen=True)
class Origin:
    """The number of an operator in its program, and what of its state is held."""

    number: int
    share: Share


def are_everywhere(spread: Spread, number: int) -> list[bool]:
    """For each state of a node, whether every shard has all of it."""
    node = spread.nodes[number]
    whole = isinstance(spread.partitionings[node.inputs[0]], Everywhere)
    if isinstance(node.operator, Clocked):
        return [whole, True]
    return [whole] * len(node.operator.states)


def where_held(spread: Spread, number: int) -> Sequence[Partitioning]:
    """For each state of a node whose group is ``movable``, where its rows are, over the state's own columns."""
    node = spread.nodes[number]
    states = len(node.operator.states)
    source = node.inputs[0]
    at, sender = spread.partitionings[source], spread.nodes[source].operator
    if isinstance(at, Single | Everywhere):
        # The clock is on every shard, wherever the rows are.
        return [at, Everywhere()] if isinstance(node.operator, Clocked) else [at] * states
    if isinstance(at, ByColumns):
        keys: tuple[Expr, ...] = tuple(Column(one, "", sender.types[one]) for one in at.columns)
    else:
        assert isinstance(sender, Exchange), "its rows may be anywhere"
        assert isinstance(sender.route, ToKeys)
        keys = sender.route.keys
    return _held(node.operator, keys)


@singledispatch
def _held(operator: Operator, keys: tuple[Expr, ...]) -> Sequence[Partitioning]:
    """Where the rows of an operator's states are whose input is spread by these expressions."""
    raise AssertionError(f"what {type(operator).__name__} holds by {keys} is not known here")


@_held.register(Arrange)
@_held.register(Distinct)
@_held.register(SetOperation)
@_held.register(TopK)
def _(operator: Operator, keys: tuple[Expr, ...]) -> Sequence[Partitioning]:
    """The rows as they come in."""
    return [ByColumns(_columns(keys))] * len(operator.states)


@_held.register(Aggregate)
def _(operator: Aggregate, keys: tuple[Expr, ...]) -> Sequence[Partitioning]:
    return _by_key(operator, operator.keys, keys)


@_held.register(SessionWindow)
def _(operator: SessionWindow, keys: tuple[Expr, ...]) -> Sequence[Partitioning]:
    return _by_key(operator, operator.keys, keys)


@_held.register(Window)
def _(operator: Window, keys: tuple[Expr, ...]) -> Sequence[Partitioning]:
    return _by_key(operator, operator.partition_by, keys)


@_held.register(Clocked)
def _(operator: Clocked, keys: tuple[Expr, ...]) -> Sequence[Partitioning]:
    """The rows behind the moment at which they are due, and the clock."""
    del operator
    return [ByColumns(tuple(1 + at for at in _columns(keys))), Everywhere()]


@_held.register(Nearest)
def _(operator: Nearest, keys: tuple[Expr, ...]) -> Sequence[Partitioning]:
    """The queries behind their numbers; what is listed for them is with them."""
    del operator
    return [ByColumns(tuple(1 + at for at in _columns(keys))), ByColumns((0,))]


def _by_key(operator: Operator, known: Sequence[Expr], keys: tuple[Expr, ...]) -> Sequence[Partitioning]:
    """The key's values come first in all states."""
    at = ByColumns(tuple(list(known).index(key) for key in keys))
    return [at] * len(operator.states)


def _columns(keys: tuple[Expr, ...]) -> tuple[int, ...]:
    found = tuple(key.index for key in keys if isinstance(key, Column))
    assert len(found) == len(keys), "rows that are kept as they come are spread by columns"
    return found
