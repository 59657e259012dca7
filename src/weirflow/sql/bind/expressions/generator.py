"""Generators, the functions that make rows: ``explode``, ``posexplode``, ``inline``, ``stack``, and outer forms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from weirflow.errors import SqlPosition, SqlTypeError
from weirflow.sql.bind.constant import whole_number
from weirflow.sql.expr import Call, Expr
from weirflow.sql.functions.generators import stack
from weirflow.sql.functions.json import json_tuple
from weirflow.sql.functions.lookup import GENERATORS, unknown
from weirflow.sql.plan import Field
from weirflow.sql.types import INT, is_array, type_name

if TYPE_CHECKING:
    from weirflow.sql.bind.expressions.binder import ExpressionBinder


@dataclass(frozen=True)
class Generator:
    """A bound generator, the columns it makes, and whether it keeps rows for which it makes none."""

    call: Call
    fields: tuple[Field, ...]
    outer: bool


def is_generator(node: exp.Expr) -> bool:
    """Whether a syntax tree is a call of a generator."""
    return isinstance(node, exp.Anonymous) and node.name.casefold() in GENERATORS


def bind_generator(binder: ExpressionBinder, node: exp.Expr) -> Generator:
    """A generator call; ``SqlTypeError`` if its argument is nothing to make rows of."""
    position = binder.position(node)
    if not is_generator(node):
        raise unknown(node.name, position) if isinstance(node, exp.Anonymous) else binder.refused(node)
    if node.name.casefold() == "json_tuple":
        call = json_tuple(tuple(binder.bind(part) for part in node.expressions), position)
        return Generator(call, tuple(Field(one.name, one.type) for one in call.type), outer=False)
    written = node.name.casefold()
    if written == "stack":
        return _stack(binder, node)
    name = written.removesuffix("_outer")
    if len(node.expressions) != 1:
        raise SqlTypeError(f"{written}() takes one argument, not {len(node.expressions)}.", position=position)
    argument = binder.bind(node.expressions[0])
    fields = _inline_fields(argument, position) if name == "inline" else _exploded_fields(name, argument, position)
    kind = pa.struct([pa.field(field.name, field.type) for field in fields])
    return Generator(Call(name, (argument,), kind, position), fields, outer=written.endswith("_outer"))


def _stack(binder: ExpressionBinder, node: exp.Expr) -> Generator:
    count, *values = (binder.bind(part) for part in node.expressions) if node.expressions else (None,)
    rows = None if count is None else whole_number(count)
    call = stack(rows or 0, tuple(values), binder.position(node))
    return Generator(call, tuple(Field(one.name, one.type) for one in call.type), outer=False)


def _exploded_fields(name: str, argument: Expr, position: SqlPosition | None) -> tuple[Field, ...]:
    place = (Field("pos", INT),) if name == "posexplode" else ()
    if is_array(argument.type):
        return (*place, Field("col", argument.type.value_type))
    if pa.types.is_map(argument.type):
        return (*place, Field("key", argument.type.key_type), Field("value", argument.type.item_type))
    raise SqlTypeError(f"{name}() takes an array or a map, not {type_name(argument.type)}.", position=position)


def _inline_fields(argument: Expr, position: SqlPosition | None) -> tuple[Field, ...]:
    if is_array(argument.type) and pa.types.is_struct(argument.type.value_type):
        return tuple(Field(field.name, field.type) for field in argument.type.value_type)
    raise SqlTypeError(f"inline() takes an array of structs, not {type_name(argument.type)}.", position=position)
