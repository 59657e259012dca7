"""Window functions that are not aggregates: ranking and offset functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weirflow.sql.expr import Literal
from weirflow.sql.functions.rules import Arguments, FunctionSignature, check_count, same_as
from weirflow.sql.types import DOUBLE, INT
from weirflow.sql.typing.coercion import ANY, cast

if TYPE_CHECKING:
    from weirflow.errors import SqlPosition

_ONE = Literal(1, INT)

RANKING: dict[str, FunctionSignature] = {
    **{name: FunctionSignature(name, (), INT) for name in ("row_number", "rank", "dense_rank")},
    **{name: FunctionSignature(name, (), DOUBLE) for name in ("percent_rank", "cume_dist")},
    "ntile": FunctionSignature("ntile", (INT,), INT, (_ONE,)),
}
"""They need an ORDER BY and have no frame."""

OFFSET = frozenset({"lag", "lead"})
"""They need an ORDER BY and have no frame; arguments are value, offset, default."""

FRAMED: dict[str, FunctionSignature] = {"nth_value": FunctionSignature("nth_value", (ANY, INT), same_as(0))}
"""They look into the frame, as aggregates do."""


def offset_arguments(name: str, given: Arguments, position: SqlPosition | None) -> Arguments:
    """``lag`` and ``lead`` with all three arguments; the default in the value's type."""
    check_count(name, given, 1, 3, position)
    default = given[2] if len(given) > 2 else Literal(None, given[0].type)  # noqa: PLR2004 - value, offset, default
    signature = FunctionSignature(name, (ANY, INT, ANY), same_as(0), (_ONE, default))
    value, offset, default = signature.arguments((*given[:2],), position)
    return value, offset, cast(default, value.type, position)
