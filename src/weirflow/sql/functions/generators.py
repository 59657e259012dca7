"""Generators that are others in other words."""

from __future__ import annotations

import pyarrow as pa

from weirflow.errors import SqlPosition, SqlTypeError
from weirflow.sql.expr import Call, Expr, Literal
from weirflow.sql.functions.collections import named_struct
from weirflow.sql.types import NULL, array_of, type_name
from weirflow.sql.typing.coercion import cast


def stack(rows: int, values: tuple[Expr, ...], position: SqlPosition | None = None) -> Call:
    """``stack(rows, values...)`` as ``inline`` of as many structs; what the last row lacks is NULL."""
    if rows < 1 or not values:
        raise SqlTypeError("stack() takes a number of rows, which is at least 1, and values.", position=position)
    width = -(-len(values) // rows)
    kinds = [_column_type(values[at::width], at, position) for at in range(width)]
    names = tuple(f"col{at}" for at in range(width))
    structs = []
    for start in range(0, rows * width, width):
        row = values[start : start + width]
        whole = (*row, *(Literal(None, NULL) for _ in range(width - len(row))))
        structs.append(named_struct(names, tuple(cast(one, kind) for one, kind in zip(whole, kinds, strict=True))))
    made = pa.struct([pa.field(name, kind) for name, kind in zip(names, kinds, strict=True)])
    return Call("inline", (Call("array", tuple(structs), array_of(structs[0].type), position),), made, position)


def _column_type(values: tuple[Expr, ...], at: int, position: SqlPosition | None) -> pa.DataType:
    kinds = list(dict.fromkeys(one.type for one in values if one.type != NULL)) or [NULL]
    if len(kinds) > 1:
        names = " and ".join(type_name(kind) for kind in kinds)
        raise SqlTypeError(f"Column {at} of stack() is both {names}.", position=position)
    return kinds[0]
