"""``*``, ``t.*``, ``struct.*`` and ``* EXCEPT (...)``."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeGuard

import pyarrow as pa
from sqlglot import exp

from weirflow.errors import AmbiguousColumn, ColumnNotFound, SqlTypeError, TableNotFound, did_you_mean
from weirflow.sql.bind.scope import Name
from weirflow.sql.functions.collections import struct_field

if TYPE_CHECKING:
    from weirflow.sql.bind.expressions.binder import ExpressionBinder


def is_star(node: exp.Expr) -> TypeGuard[exp.Star | exp.Column]:
    """Whether a SELECT item is a star of some kind."""
    return isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star))


def is_all(keys: list[exp.Expr]) -> bool:
    """Whether the keys of GROUP BY or ORDER BY are the word ALL, which may also be a column's name."""
    key = keys[0].this if len(keys) == 1 and isinstance(keys[0], exp.Ordered) else keys[0]
    return len(keys) == 1 and isinstance(key, exp.Column) and len(key.parts) == 1 and key.name.upper() == "ALL"


def expand_star(binder: ExpressionBinder, node: exp.Star | exp.Column) -> tuple[Name, ...]:
    """The names that a star stands for, in order."""
    star = node if isinstance(node, exp.Star) else node.this
    relation = ".".join(_path(node)) or None
    listed = binder.scope.star(relation)
    if listed is None:
        listed = _struct_star(binder, node)
    if not listed:
        raise SqlTypeError("* stands for no columns here: there is no FROM.", position=binder.position(node))
    left_out: list[Name] = []
    for part in star.args.get("except_") or ():
        left_out += _left_out(binder, part, listed, left_out)
    return tuple(name for name in listed if not any(name is other for other in left_out))


def _left_out(binder: ExpressionBinder, part: exp.Expr, listed: tuple[Name, ...], before: list[Name]) -> list[Name]:
    """The one column that an item of EXCEPT names."""
    fold = binder.scope.fold
    path = [fold(one.name) for one in part.parts] if isinstance(part, exp.Column) else [fold(part.name)]
    found = [name for name in listed if path in ([fold(name.name)], [fold(name.relation or ""), fold(name.name)])]
    text, position = ".".join(path), binder.position(part)
    if not found:
        hint = did_you_mean(text, [one.name for one in listed])
        raise ColumnNotFound(f"EXCEPT ({text}): no such column.", hint=hint, position=position)
    if len(found) > 1:
        raise AmbiguousColumn(f"EXCEPT ({text}) could be any of {len(found)} columns.", position=position)
    if any(found[0] is other for other in before):
        raise SqlTypeError(f"EXCEPT names {text!r} twice.", position=position)
    return found


def _path(node: exp.Star | exp.Column) -> tuple[str, ...]:
    return () if isinstance(node, exp.Star) else tuple(part.name for part in node.parts[:-1])


def _struct_star(binder: ExpressionBinder, node: exp.Star | exp.Column) -> tuple[Name, ...]:
    path = _path(node)
    position = binder.position(node)
    struct = binder.scope.find(path, position)
    if struct is None or not pa.types.is_struct(struct.type):
        relations = [name.relation for name in binder.scope.names if name.relation]
        raise TableNotFound(
            f"There is no {'.'.join(path)!r} in FROM.",
            hint=did_you_mean(".".join(path), relations) or "in FROM are " + ", ".join(dict.fromkeys(relations)),
            position=position,
        )
    return tuple(
        Name(field.name, struct_field(struct, field.name, position, binder.scope.fold)) for field in struct.type
    )
