"""When two expressions are one to Spark: commutative operators compare without regard to order."""

from __future__ import annotations

from dataclasses import replace

from weirflow.sql.expr import Call, Expr
from weirflow.stack import grows

_CHAINS = frozenset({"add", "multiply", "and", "or", "bitwise_and", "bitwise_or", "bitwise_xor"})
"""Of which also the operands of operands are in any order."""
_PAIRS = frozenset({"equal", "equal_null_safe"})
_LISTS = frozenset({"greatest", "least"})
_MIRRORED = {"greater": "less", "greater_equal": "less_equal"}


@grows
def canonical(expr: Expr) -> Expr:
    """The one that stands for all expressions that Spark takes for the same as ``expr``."""
    if not isinstance(expr, Call):
        return expr
    arguments = tuple(canonical(part) for part in expr.arguments)
    function = expr.function
    if function in _MIRRORED:
        function, arguments = _MIRRORED[function], arguments[::-1]
    elif function in _CHAINS:
        flat: list[Expr] = []
        for part in arguments:
            nested = isinstance(part, Call) and part.function == function and part.type == expr.type
            flat += part.arguments if nested and isinstance(part, Call) else (part,)
        arguments = tuple(sorted(flat, key=hash))
    elif function in _PAIRS or function in _LISTS:
        arguments = tuple(sorted(arguments, key=hash))
    elif function == "in":
        arguments = (arguments[0], *sorted(arguments[1:], key=hash))
    return replace(expr, function=function, arguments=arguments)
