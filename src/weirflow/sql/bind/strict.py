"""Nothing in a syntax tree is passed over: what a binder does not read, it refuses.

sqlglot keeps optional parts of a clause in a node's arguments, and a new release may add some. Each binder lists the
parts it reads, so that one it has never heard of is an error, not a wrong answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weirflow.sql.refusal import NotIncremental, Reason

if TYPE_CHECKING:
    from sqlglot import exp

    from weirflow.sql.bind.context import BindContext

_PLAIN = frozenset({"this", "expression", "expressions"})


def check_parts(node: exp.Expr, read: frozenset[str], context: BindContext) -> None:
    """``NotIncremental`` if ``node`` has a part besides its operands and those named in ``read``."""
    for part, value in node.args.items():
        if value and part not in read and part not in _PLAIN:
            name = part.strip("_").upper().replace("_", " ")
            raise NotIncremental(
                f"{name} of {node.key.upper()} is not supported in an incremental view.",
                reason=Reason.OPERATOR_NOT_INCREMENTALIZABLE,
                hint="leave it out, or run the query on Spark",
                position=context.position(value if hasattr(value, "walk") else node),
            )
