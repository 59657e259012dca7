"""The nodes of plans and expressions as rows of a table, and rows as nodes: each kind and field has a name there."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

from weirflow.errors import SqlPosition
from weirflow.sql.expr import (
    AggregateCall,
    Call,
    Column,
    Exists,
    Expr,
    Frame,
    FrameUnit,
    InSubquery,
    Literal,
    OuterColumn,
    ScalarSubquery,
    SortKey,
    WindowCall,
    ZonedFrame,
)
from weirflow.sql.plan import (
    Aggregate,
    Distinct,
    Field,
    Filter,
    FirstRanked,
    Generate,
    Join,
    JoinKind,
    Nearest,
    Plan,
    Project,
    Recursive,
    Scan,
    SessionWindow,
    SetKind,
    SetOperation,
    TopK,
    Union,
    Values,
    VectorIndex,
    Window,
)
from weirflow.sql.stored.checks import exactly, not_stored, place_in, unreadable
from weirflow.sql.stored.constants import read_type, read_value, write_type, write_value
from weirflow.types import VectorIndexKind, VectorMetric

if TYPE_CHECKING:
    from enum import Enum

    import pyarrow as pa

    from weirflow.sql.tree import Tree


class TableWriter:
    """The tables of a text that is being made.

    Attributes:
        types, nodes: both as JSON, in the order of their numbers.
        places: the numbers of nodes by their identity; equal nodes have the same.
    """

    def __init__(self) -> None:
        self.types: dict[str, int] = {}
        self.nodes: dict[str, int] = {}
        self.places: dict[int, int] = {}
        self._known: dict[tuple[pa.DataType, str], int] = {}

    def add(self, node: Tree) -> None:
        """Write a node whose inner nodes are written."""
        name, parts = KINDS[type(node)]
        row = dump([name, *(part.write(getattr(node, field), self) for field, part in parts.items())])
        self.places[id(node)] = self.nodes.setdefault(row, len(self.nodes))

    def type(self, kind: pa.DataType) -> int:
        """The number of a type."""
        found = self._known.get((kind, str(kind)))
        if found is None:
            written = write_type(kind)
            if str(read_type(written)) != str(kind):
                raise not_stored(f"A value of type {kind}")
            found = self.types.setdefault(dump(written), len(self.types))
            self._known[kind, str(kind)] = found
        return found


def dump(data: Any) -> str:
    """JSON without a space."""
    return json.dumps(data, separators=(",", ":"), allow_nan=False)


class TableReader:
    """The tables of a text, as far as they have been read."""

    def __init__(self, kinds: list[pa.DataType]) -> None:
        self.types = kinds
        self.nodes: list[Any] = []

    def add(self, row: list[Any]) -> None:
        """Read the next node."""
        name, *values = row
        if name not in _BY_NAME:
            raise unreadable(f"this Weirflow does not know {name!r}, which is in it")
        kind, parts = _BY_NAME[name]
        pairs = zip(parts.items(), values, strict=True)
        self.nodes.append(kind(**{field: part.read(value, self) for (field, part), value in pairs}))

    def node(self, place: int, kinds: tuple[type[Any], ...]) -> Any:
        """The node of a number, which must be of one of these kinds."""
        return exactly(kinds, self.nodes[place_in(place)])


@dataclass(frozen=True)
class _Part:
    """How a field of a node is written as JSON and read again; reading raises for what is no such field."""

    write: Callable[[Any, TableWriter], Any]
    read: Callable[[Any, TableReader], Any]


def _plain(kind: type[Any]) -> _Part:
    return _Part(lambda value, _: value, lambda data, _: exactly(kind, data))


def _enum(kind: type[Enum]) -> _Part:
    return _Part(lambda value, _: value.value, lambda data, _: kind(data))


def _optional(part: _Part) -> _Part:
    return _Part(
        lambda value, writer: None if value is None else part.write(value, writer),
        lambda data, reader: None if data is None else part.read(data, reader),
    )


def _many(part: _Part) -> _Part:
    return _Part(
        lambda values, writer: [part.write(one, writer) for one in values],
        lambda data, reader: tuple(part.read(one, reader) for one in exactly(list, data)),
    )


def _several(kind: Callable[..., Any], /, **parts: _Part) -> _Part:
    """A value of these fields, written as a list of them."""
    return _Part(
        lambda value, writer: [part.write(getattr(value, name), writer) for name, part in parts.items()],
        lambda data, reader: kind(
            *(part.read(one, reader) for part, one in zip(parts.values(), exactly(list, data), strict=True))
        ),
    )


def _node(*kinds: type[Any]) -> _Part:
    return _Part(lambda value, writer: writer.places[id(value)], lambda data, reader: reader.node(data, kinds))


_TEXT, _INT, _BOOL = _plain(str), _plain(int), _plain(bool)
_TYPE = _Part(lambda kind, writer: writer.type(kind), lambda data, reader: reader.types[place_in(data)])
_VALUE = _Part(lambda value, _: write_value(value), lambda data, _: read_value(data))
POSITION = _optional(_several(SqlPosition, line=_INT, column=_INT, fragment=_TEXT))
_FIELDS = _many(_several(Field, name=_TEXT, type=_TYPE))
_FRAME_PARTS = 4
_PLAIN_FRAME = _several(Frame, unit=_enum(FrameUnit), start=_optional(_INT), end=_optional(_INT))
_ZONED_FRAME = _several(ZonedFrame, unit=_enum(FrameUnit), start=_optional(_INT), end=_optional(_INT), zone=_TEXT)
_FRAME = _Part(
    lambda frame, writer: (_ZONED_FRAME if isinstance(frame, ZonedFrame) else _PLAIN_FRAME).write(frame, writer),
    lambda data, reader: (_PLAIN_FRAME if len(data) < _FRAME_PARTS else _ZONED_FRAME).read(data, reader),
)
_PLAN, _EXPR = _node(*get_args(Plan)), _node(*get_args(Expr))
_EXPRS, _ORDER = _many(_EXPR), _many(_node(SortKey))
_PAIR = _Part(lambda pair, _: list(pair), lambda data, _: (exactly(str, data[0]), exactly(int, data[1])))
_INDEX = _several(VectorIndex, kind=_enum(VectorIndexKind), parameters=_many(_PAIR))

KINDS: Mapping[type[Any], tuple[str, Mapping[str, _Part]]] = {
    Scan: ("scan", {"name": _TEXT, "fields": _FIELDS, "position": POSITION}),
    Values: ("values", {"rows": _many(_EXPRS), "fields": _FIELDS}),
    Project: ("project", {"input": _PLAN, "expressions": _EXPRS, "fields": _FIELDS}),
    Filter: ("filter", {"input": _PLAN, "predicate": _EXPR}),
    Join: (
        "join",
        {
            "left": _PLAN,
            "right": _PLAN,
            "kind": _enum(JoinKind),
            "left_keys": _EXPRS,
            "right_keys": _EXPRS,
            "residual": _optional(_EXPR),
            "null_aware": _BOOL,
        },
    ),
    Aggregate: (
        "aggregate",
        {
            "input": _PLAN,
            "keys": _EXPRS,
            "calls": _many(_node(AggregateCall)),
            "fields": _FIELDS,
            "grouping_sets": _optional(_many(_many(_INT))),
        },
    ),
    Window: ("window", {"input": _PLAN, "calls": _many(_node(WindowCall)), "fields": _FIELDS}),
    FirstRanked: (
        "first ranked",
        {"input": _PLAN, "calls": _many(_node(WindowCall)), "fields": _FIELDS, "rank": _INT, "most": _INT},
    ),
    Distinct: ("distinct", {"input": _PLAN}),
    Union: ("union", {"inputs": _many(_PLAN), "fields": _FIELDS}),
    SetOperation: (
        "set operation",
        {"kind": _enum(SetKind), "all": _BOOL, "left": _PLAN, "right": _PLAN, "fields": _FIELDS},
    ),
    TopK: ("top", {"input": _PLAN, "order": _ORDER, "limit": _optional(_INT), "offset": _INT}),
    Generate: ("generate", {"input": _PLAN, "generator": _node(Call), "outer": _BOOL, "fields": _FIELDS}),
    SessionWindow: (
        "session window",
        {"input": _PLAN, "keys": _EXPRS, "time": _EXPR, "gap_us": _INT, "fields": _FIELDS},
    ),
    Recursive: ("recursive", {"name": _TEXT, "base": _PLAN, "step": _PLAN, "distinct": _BOOL, "fields": _FIELDS}),
    Nearest: (
        "nearest",
        {
            "left": _PLAN,
            "right": _PLAN,
            "query": _EXPR,
            "document": _EXPR,
            "metric": _enum(VectorMetric),
            "order": _ORDER,
            "limit": _INT,
            "nulls_first": _BOOL,
            "left_columns": _many(_INT),
            "right_columns": _many(_INT),
            "ranked": _BOOL,
            "dimension": _optional(_INT),
            "index": _optional(_INDEX),
        },
    ),
    Column: ("column", {"index": _INT, "name": _TEXT, "type": _TYPE}),
    OuterColumn: ("outer column", {"index": _INT, "name": _TEXT, "type": _TYPE, "depth": _INT}),
    Literal: ("literal", {"value": _VALUE, "type": _TYPE}),
    Call: ("call", {"function": _TEXT, "arguments": _EXPRS, "type": _TYPE, "position": POSITION}),
    ScalarSubquery: ("scalar subquery", {"plan": _PLAN, "type": _TYPE, "position": POSITION}),
    Exists: ("exists", {"plan": _PLAN, "type": _TYPE, "position": POSITION}),
    InSubquery: ("in", {"values": _EXPRS, "plan": _PLAN, "type": _TYPE, "position": POSITION}),
    SortKey: ("key", {"expr": _EXPR, "descending": _BOOL, "nulls_first": _BOOL}),
    AggregateCall: (
        "aggregate call",
        {
            "function": _TEXT,
            "arguments": _EXPRS,
            "type": _TYPE,
            "distinct": _BOOL,
            "filter": _optional(_EXPR),
            "order_by": _ORDER,
            "position": POSITION,
        },
    ),
    WindowCall: (
        "window call",
        {
            "function": _TEXT,
            "arguments": _EXPRS,
            "type": _TYPE,
            "partition_by": _EXPRS,
            "order_by": _ORDER,
            "frame": _optional(_FRAME),
            "ignore_nulls": _BOOL,
            "position": POSITION,
        },
    ),
}
_BY_NAME = {name: (kind, parts) for kind, (name, parts) in KINDS.items()}
