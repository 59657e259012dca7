"""CASE and COALESCE: only what is chosen is evaluated."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weirflow.errors import DataError
from weirflow.ivm.kernel.expressions.retype import retyped
from weirflow.ivm.kernel.expressions.rows import broadcast, evaluate_where, is_scalar, true_mask, valid_mask

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weirflow.ivm.kernel.expressions.rows import Node, Rows, Value
    from weirflow.ivm.kernel.expressions.signature import CallSignature, FormBuilder


def case(signature: CallSignature, nodes: list[Node]) -> Node:
    """The value behind the first condition that is true, else the default."""
    kind = signature.result
    conditions, default = nodes[0:-1:2], _typed(nodes[-1], kind)
    values = [_typed(node, kind) for node in nodes[1:-1:2]]
    constant = [value is not None for value in (*signature.constants[1:-1:2], signature.constants[-1])]

    def for_all_rows(rows: Rows) -> Value:
        tests = [condition(rows) for condition in conditions]
        result = default(rows)
        for test, value in zip(reversed(tests), reversed(values), strict=True):
            result = _if_else(test, value(rows), result)
        return result

    def for_chosen_rows(rows: Rows) -> Value:
        remaining = np.ones(rows.length, np.bool_)
        pieces: list[tuple[NDArray[np.bool_], Value]] = []
        for condition, value, known in zip(conditions, values, constant[:-1], strict=True):
            test = evaluate_where(condition, pa.bool_(), rows, remaining)
            chosen = true_mask(test, rows.length) & remaining
            remaining = remaining & ~chosen
            if chosen.any():
                pieces.append((chosen, value(rows) if known else evaluate_where(value, kind, rows, chosen)))
        result = default(rows) if constant[-1] else evaluate_where(default, kind, rows, remaining)
        for chosen, piece in reversed(pieces):
            result = pc.if_else(pa.array(chosen), piece, result)
        return result

    return _optimistic(for_all_rows, for_chosen_rows)


def coalesce(signature: CallSignature, nodes: list[Node]) -> Node:
    """The first argument that is not NULL."""
    kind = signature.result
    choices = [_typed(node, kind) for node in nodes]

    def for_all_rows(rows: Rows) -> Value:
        result = choices[0](rows)
        for choice in choices[1:]:
            if (result.null_count == 0) if not is_scalar(result) else result.is_valid:
                return result
            result = pc.coalesce(result, choice(rows))
        return result

    def for_chosen_rows(rows: Rows) -> Value:
        result = pa.nulls(rows.length, kind)
        for choice in choices:
            result = _placed(choice, kind, rows, ~valid_mask(result, rows.length), result)
        return result

    return _optimistic(for_all_rows, for_chosen_rows)


def _optimistic(for_all_rows: Node, for_chosen_rows: Node) -> Node:
    """Evaluate everything for all rows; once that has raised, only what is chosen.

    What is remembered decides how, never what: the second way is right for any rows. It keeps nested conditionals
    from being evaluated twice at every level.
    """
    careful = False

    def run(rows: Rows) -> Value:
        nonlocal careful
        if not careful:
            try:
                return for_all_rows(rows)
            except DataError:
                careful = True
        return for_chosen_rows(rows)

    return run


def _placed(node: Node, kind: pa.DataType, rows: Rows, chosen: NDArray[np.bool_], others: pa.Array) -> pa.Array:
    """The node's values at the chosen rows, the others' elsewhere."""
    if not chosen.any():
        return others
    return pc.if_else(pa.array(chosen), evaluate_where(node, kind, rows, chosen), others)


def _if_else(test: Value, value: Value, otherwise: Value) -> Value:
    if is_scalar(test):
        return value if test.as_py() is True else otherwise
    if test.null_count:
        test = test.fill_null(False)  # noqa: FBT003 - what NULL becomes
    return pc.if_else(test, value, otherwise)


def _typed(node: Node, kind: pa.DataType) -> Node:
    """Branches have one type, but for the nullability of what is nested in it."""

    def run(rows: Rows) -> Value:
        value = node(rows)
        if value.type == kind:
            return value
        if is_scalar(value):
            return retyped(broadcast(value, 1), kind)[0]
        return retyped(value, kind)

    return run


FORMS: dict[str, FormBuilder] = {"case": case, "coalesce": coalesce}
