"""Logic of three values: true, false and unknown (NULL)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weirflow.errors import DataError
from weirflow.ivm.kernel.expressions.rows import broadcast, evaluate_where, to_mask

if TYPE_CHECKING:
    from weirflow.ivm.kernel.expressions.rows import Node, Rows, Value
    from weirflow.ivm.kernel.expressions.signature import Builder, CallSignature, FormBuilder, Kernel


def conjunction(signature: CallSignature, nodes: list[Node]) -> Node | None:
    """``AND``: an argument is not evaluated for rows that an earlier one made false."""
    return _logic(signature, nodes, decisive=False)


def disjunction(signature: CallSignature, nodes: list[Node]) -> Node | None:
    """``OR``: an argument is not evaluated for rows that an earlier one made true."""
    return _logic(signature, nodes, decisive=True)


def _logic(signature: CallSignature, nodes: list[Node], *, decisive: bool) -> Node | None:
    if not set(signature.types) <= {pa.bool_(), pa.null()}:
        return None
    combine = pc.or_kleene if decisive else pc.and_kleene
    first, *others = [
        _as_boolean(node) if pa.types.is_null(kind) else node for node, kind in zip(nodes, signature.types, strict=True)
    ]

    def run(rows: Rows) -> Value:
        decided = first(rows)
        for node in others:
            try:
                value = node(rows)
            except DataError:
                open_rows = to_mask(broadcast(pc.coalesce(decided, not decisive), rows.length)) != decisive
                if open_rows.all():
                    raise
                value = evaluate_where(node, pa.bool_(), rows, np.asarray(open_rows))
            decided = combine(decided, value)
        return decided

    return run


def _as_boolean(node: Node) -> Node:
    def run(rows: Rows) -> Value:
        return node(rows).cast(pa.bool_())

    return run


def negation(signature: CallSignature) -> Kernel | None:
    """``NOT``; NULL stays NULL."""
    if pa.types.is_null(signature.types[0]):
        return lambda value: value.cast(pa.bool_())
    return pc.invert if signature.types[0] == pa.bool_() else None


FUNCTIONS: dict[str, Builder] = {"not": negation}
FORMS: dict[str, FormBuilder] = {"and": conjunction, "or": disjunction}
