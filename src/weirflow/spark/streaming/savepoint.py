"""What a streaming query keeps as state, read from its analysed plan: operators with their keys, values and types."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from weirflow.errors import UnsupportedError

_IDS = re.compile(r"#\d+L?|-T\d+ms\b")
_TIME_CUT = "precisetimestampconversion"
_DEDUPLICATE = ("Deduplicate", "DeduplicateWithinWatermark")
_TRANSFORM = "TransformWithStateIn"
_BY_GROUP = ("TransformWithState", "FlatMapGroupsWithState", "FlatMapGroupsInPandasWithState")
_NAMED = ("AttributeReference", "Alias")


class StateColumn(msgspec.Struct, frozen=True):
    """A column of an operator's state.

    Attributes:
        name: that of a key, or the aggregate function as SQL has it.
        type: Spark's name for the type; of an aggregate those of its parts.
        made_by: for windows, how they lie in time.
    """

    name: str
    type: str
    made_by: str = ""


class StateOperator(msgspec.Struct, frozen=True):
    """An operator of a streaming query that keeps state.

    Attributes:
        name: the plan's name for it.
        keys: what its state is found by.
        values: what it keeps, as far as the plan tells.
    """

    name: str
    keys: list[StateColumn]
    values: list[StateColumn]


def state_operators(native: Any) -> list[StateOperator]:
    """The operators of a native streaming frame that keep state, from its result down to its sources; runs nothing.

    Raises:
        UnsupportedError: Spark is behind Spark Connect, which does not show plans with types.
    """
    if not hasattr(native, "_jdf"):
        raise UnsupportedError(
            "Savepoints of streaming queries need the plan with its types, which Spark Connect does not show.",
            hint="use an embedded, single-node or standalone Session",
        )
    return list(_operators(native._jdf.queryExecution().analyzed()))  # noqa: SLF001 - the only way


def _operators(node: Any) -> Iterator[StateOperator]:
    if not node.isStreaming():
        return
    name = node.nodeName()
    children = _items(node.children())
    if name == "Aggregate":
        yield StateOperator(name, _grouping(node), _aggregates(node))
    elif name in _DEDUPLICATE:
        yield StateOperator(name, _columns(node.keys()), [])
    elif name == "Distinct":
        yield StateOperator(name, _columns(node.output()), [])
    elif name == "Join" and all(child.isStreaming() for child in children):
        condition = node.condition()
        text = _plain(condition.get()) if condition.isDefined() else "no condition"
        sides = [column for child in children for column in _columns(child.output())]
        yield StateOperator(f"{node.joinType().sql()} JOIN", [StateColumn(text, "boolean")], sides)
    elif name.startswith(_TRANSFORM):
        yield StateOperator(name, _columns(children[0].output())[: node.groupingAttributesLen()], [])
    elif name in _BY_GROUP:
        yield StateOperator(name, _columns(node.groupingAttributes()), [])
    elif name == "GlobalLimit":
        yield StateOperator(name, [], [StateColumn("rows", "bigint")])
    for child in children:
        yield from _operators(child)


def _grouping(node: Any) -> list[StateColumn]:
    cuts: dict[str, str] = {}
    below = node.child()
    while below.nodeName() in ("Filter", "Project", "Expand"):
        if below.nodeName() == "Project":
            for made in _items(below.projectList()):
                text = _plain(made)
                if _TIME_CUT in text:
                    cuts.setdefault(made.name(), text)
        elif below.nodeName() == "Expand":
            for made in _items(below.output()):
                cuts.setdefault(made.name(), _plain(below.projections()))
        below = below.child()
    return [
        StateColumn(found.name, found.type, cuts.get(found.name, "")) for found in _columns(node.groupingExpressions())
    ]


def _aggregates(node: Any) -> list[StateColumn]:
    """Each function once, as Spark computes it, with the types of its buffer."""
    found: dict[str, StateColumn] = {}

    def collect(expression: Any) -> None:
        if expression.getClass().getSimpleName() == "AggregateExpression":
            buffer = _items(expression.aggregateFunction().aggBufferAttributes())
            text = _plain(expression)
            found.setdefault(text, StateColumn(text, ", ".join(one.dataType().catalogString() for one in buffer)))
            return
        for child in _items(expression.children()):
            collect(child)

    for expression in _items(node.aggregateExpressions()):
        collect(expression)
    return list(found.values())


def _columns(expressions: Any) -> list[StateColumn]:
    return [StateColumn(_name(one), one.dataType().catalogString()) for one in _items(expressions)]


def _name(expression: Any) -> str:
    named = expression.getClass().getSimpleName() in _NAMED
    return str(expression.name()) if named else _plain(expression)


def _plain(expression: Any) -> str:
    """An expression without the numbers that are others in each plan."""
    return _IDS.sub("", str(expression.toString()))


def _items(seq: Any) -> list[Any]:
    return [seq.apply(at) for at in range(seq.size())]
