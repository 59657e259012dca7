"""``*``, ``t.*``, ``struct.*`` and ``* EXCEPT (...)``."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeGuard

import pyarrow as pa
from sqlglot import exp

from weirflow.errors import ColumnNotFound, SqlTypeError, TableNotFound, did_you_mean
from weirflow.sql.bind.scope import Name
from weirflow.sql.functions.collections import struct_field

if TYPE_CHECKING:
    from weirflow.sql.bind.expressions.binder import ExpressionBinder


def is_star(node: exp.Expr) -> TypeGuard[exp.Star | exp.Column]:
    """Whether a SELECT item is a star of some kind."""
    return isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star))


def expand_star(binder: ExpressionBinder, node: exp.Star | exp.Column) -> tuple[Name, ...]:
    """The names that a star stands for, in order."""
    star = node if isinstance(node, exp.Star) else node.this
    if star.args.get("replace") or star.args.get("rename"):
        raise binder.refused(star)
    relation = ".".join(_path(node)) or None
    listed = binder.scope.star(relation)
    if listed is None:
        listed = _struct_star(binder, node)
    if not listed:
        raise SqlTypeError("* stands for no columns here: there is no FROM.", position=binder.position(node))
    left_out = [part.name.casefold() for part in star.args.get("except_") or ()]
    for name in left_out:
        if name not in {one.name.casefold() for one in listed}:
            hint = did_you_mean(name, [one.name for one in listed])
            raise ColumnNotFound(f"EXCEPT ({name}): no such column.", hint=hint, position=binder.position(node))
    return tuple(name for name in listed if name.name.casefold() not in left_out)


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
    return tuple(Name(field.name, struct_field(struct, field.name, position)) for field in struct.type)
