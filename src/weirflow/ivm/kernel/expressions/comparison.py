"""Comparisons in Spark's order: NaN equals NaN and is the greatest, -0.0 equals 0.0, texts compare byte by byte."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weirflow.errors import DataError
from weirflow.ivm.kernel.expressions.nested import order as nested_order
from weirflow.ivm.kernel.expressions.rows import broadcast, evaluate_where, is_scalar, to_mask, valid_mask

if TYPE_CHECKING:
    from weirflow.ivm.kernel.expressions.rows import Node, Rows, Value
    from weirflow.ivm.kernel.expressions.signature import Builder, CallSignature, FormBuilder, Kernel

_PLAIN = {
    "equal": pc.equal,
    "not_equal": pc.not_equal,
    "less": pc.less,
    "less_equal": pc.less_equal,
    "greater": pc.greater,
    "greater_equal": pc.greater_equal,
}


def compare(signature: CallSignature) -> Kernel | None:
    """``=  <>  <  <=  >  >=`` on two values of one type; NULL if either is."""
    left, right = signature.types
    return comparer(signature.function, left, right, signature.constants[1])


def comparer(function: str, left: pa.DataType, right: pa.DataType, constant: pa.Scalar | None = None) -> Kernel | None:
    """The kernel of a comparison; ``constant`` is the right side's value if it is one."""
    if pa.types.is_null(left) or pa.types.is_null(right):
        return _unknown
    if pa.types.is_nested(left):
        return nested_order.comparer(function, left, right)
    if left != right:
        return None
    if not pa.types.is_floating(left):
        return _PLAIN[function]  # type: ignore[no-any-return]  # pyarrow ships no types
    if constant is not None and constant.is_valid and not np.isnan(constant.as_py()):
        return _FLOATING_CONSTANT[function]
    return _FLOATING[function]


def _unknown(left: Value, right: Value) -> Value:
    for value in (left, right):
        if not is_scalar(value):
            return pa.nulls(len(value), pa.bool_())
    return pa.scalar(None, pa.bool_())


def _equal(left: Value, right: Value) -> Value:
    return pc.or_(pc.equal(left, right), pc.and_(pc.is_nan(left), pc.is_nan(right)))


def _less(left: Value, right: Value) -> Value:
    # Not (left >= right) is true wherever a side is NaN; that is wrong only if the left side is.
    return pc.and_not(pc.invert(pc.greater_equal(left, right)), pc.is_nan(left))


def _less_equal(left: Value, right: Value) -> Value:
    return pc.or_(pc.less_equal(left, right), pc.is_nan(right))


_FLOATING: dict[str, Kernel] = {
    "equal": _equal,
    "not_equal": lambda left, right: pc.invert(_equal(left, right)),
    "less": _less,
    "less_equal": _less_equal,
    "greater": lambda left, right: _less(right, left),
    "greater_equal": lambda left, right: _less_equal(right, left),
}
# Against a constant that is not NaN, a NaN on the left is greater, and IEEE 754 is right about everything else.
_FLOATING_CONSTANT: dict[str, Kernel] = {
    "equal": pc.equal,
    "not_equal": pc.not_equal,
    "less": pc.less,
    "less_equal": pc.less_equal,
    "greater": lambda left, right: pc.invert(pc.less_equal(left, right)),
    "greater_equal": lambda left, right: pc.invert(pc.less(left, right)),
}


def equal_null_safe(signature: CallSignature) -> Kernel | None:
    """``<=>``: NULL equals NULL, and the answer is never NULL."""
    equal = comparer("equal", *signature.types)
    if equal is None:
        return None

    def same(left: Value, right: Value) -> Value:
        both_null = pc.and_(pc.is_null(left), pc.is_null(right))
        return pc.or_(pc.coalesce(equal(left, right), False), both_null)

    return same


def contained(signature: CallSignature, nodes: list[Node]) -> Node | None:
    """``value IN (item, ...)``; NULL if no item is equal and one of them is NULL."""
    kind, items = signature.types[0], signature.constants[1:]
    if any(each not in (kind, pa.null()) for each in signature.types[1:]):
        return None
    if all(item is not None for item in items) and not pa.types.is_nested(kind) and not pa.types.is_null(kind):
        return _in_constants(kind, nodes[0], [item for item in items if item is not None])
    kernels = [comparer("equal", kind, each) for each in signature.types[1:]]
    if any(kernel is None for kernel in kernels):
        return None
    tests = list(zip(nodes[1:], signature.types[1:], [kernel for kernel in kernels if kernel], strict=True))
    value_node = nodes[0]

    def run(rows: Rows) -> Value:
        value = value_node(rows)
        found: Value = pa.scalar(False)  # noqa: FBT003 - a boolean value
        if is_scalar(value):
            value = broadcast(value, rows.length)
        for item, item_type, equal in tests:
            found = pc.or_kleene(found, equal(value, _item(item, item_type, rows, value, found)))
        # A NULL value is NULL whatever the items are.
        return found if value.null_count == 0 else pc.if_else(value.is_valid(), found, None)

    return run


def _item(node: Node, kind: pa.DataType, rows: Rows, value: pa.Array, found: Value) -> Value:
    try:
        return node(rows)
    except DataError:
        undecided = valid_mask(value, rows.length)
        undecided &= ~to_mask(broadcast(pc.coalesce(found, False), rows.length))
        return evaluate_where(node, kind, rows, undecided)


def _in_constants(kind: pa.DataType, value_node: Node, items: list[pa.Scalar]) -> Node:
    known = [item.as_py() for item in items if item.is_valid]
    has_null = len(known) < len(items)
    floating = pa.types.is_floating(kind)
    if floating:
        known = [item + 0.0 for item in known]  # -0.0 becomes 0.0
    value_set = pa.array(known, kind)

    def run(rows: Rows) -> Value:
        value = value_node(rows)
        if floating:
            value = pc.add(value, pa.scalar(0.0, kind))
        found = pc.is_in(value, value_set=value_set)
        if has_null:
            return pc.if_else(found, found, None)
        if is_scalar(value):
            return found if value.is_valid else pa.scalar(None, pa.bool_())
        return found if value.null_count == 0 else pc.if_else(value.is_valid(), found, None)

    return run


def is_null(signature: CallSignature) -> Kernel:  # noqa: ARG001 - the same for every type
    """``IS NULL``; NaN is not."""
    return pc.is_null  # type: ignore[no-any-return]  # pyarrow ships no types


def is_not_null(signature: CallSignature) -> Kernel:  # noqa: ARG001 - the same for every type
    """``IS NOT NULL``."""
    return pc.is_valid  # type: ignore[no-any-return]  # pyarrow ships no types


def is_nan(signature: CallSignature) -> Kernel | None:
    """``isnan``: false for NULL."""
    if not pa.types.is_floating(signature.types[0]):
        return None
    return lambda value: pc.coalesce(pc.is_nan(value), False)


FUNCTIONS: dict[str, Builder] = {
    **dict.fromkeys(_PLAIN, compare),
    "equal_null_safe": equal_null_safe,
    "is_null": is_null,
    "is_not_null": is_not_null,
    "is_nan": is_nan,
}
FORMS: dict[str, FormBuilder] = {"in": contained}
