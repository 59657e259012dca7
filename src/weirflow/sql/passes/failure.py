"""Which expressions can raise, and which can turn NULL into something else: what decides where a filter may go."""

from __future__ import annotations

from collections.abc import Container

from weirflow.sql.expr import Call, Column, Expr, Literal
from weirflow.sql.foreign import FOREIGN
from weirflow.sql.traverse import parts
from weirflow.sql.typing.casts import never_fails
from weirflow.stack import grows

_DIVISIONS = frozenset({"divide", "remainder", "pmod", "integral_divide"})
_CAN_FAIL_NAMES = """
element_at get_array_item to_date to_timestamp to_timestamp_ntz make_date date_trunc map utc_time local_cast local_trunc
"""
_COLLECTIONS_CAN_FAIL_NAMES = """
array_insert array_repeat array_sort map_concat map_from_arrays map_from_entries sequence slice str_to_map
transform_keys make_dt_interval make_timestamp next_day parse_timestamp timestamp_seconds
"""
_CAN_FAIL = frozenset([*_CAN_FAIL_NAMES.split(), *_COLLECTIONS_CAN_FAIL_NAMES.split()])
_NULL_IN_NULL_OUT_NAMES = """
add subtract multiply divide remainder negate equal not_equal less less_equal greater greater_equal
like ilike rlike cast not abs upper lower length substring date_add date_sub local_time utc_time
legacy_cast try_cast try_add try_subtract try_multiply try_divide try_remainder try_pmod try_integral_divide
wrapping_add wrapping_subtract wrapping_multiply wrapping_negate wrapping_abs wrapping_integral_divide
"""
_NULL_IN_NULL_OUT = frozenset(_NULL_IN_NULL_OUT_NAMES.split())


def can_fail(expr: Expr, *, foreign: bool = True) -> bool:
    """Whether evaluating ``expr`` may raise for some row, overflow apart.

    Without ``foreign``, whether it may where its foreign calls do not.
    A filter that can fail stays behind the filters and joins written before it, which may be there to guard it.
    """
    return any(isinstance(part, Call) and _call_can_fail(part, foreign=foreign) for part in parts(expr))


def _call_can_fail(call: Call, *, foreign: bool) -> bool:
    if call.function in _DIVISIONS:
        divisor = call.arguments[1]
        return not (isinstance(divisor, Literal) and divisor.value)
    if call.function == "cast":
        return not never_fails(call.arguments[0].type, call.type)
    if call.function == "try_element_at":  # there is no element 0
        return True
    return call.function in _CAN_FAIL or (foreign and call.function in FOREIGN)


@grows
def is_null_if(expr: Expr, indexes: Container[int]) -> bool:
    """Whether ``expr`` is NULL for sure when all columns of ``indexes`` are."""
    if isinstance(expr, Column):
        return expr.index in indexes
    if isinstance(expr, Literal):
        return expr.value is None
    return (
        isinstance(expr, Call)
        and expr.function in _NULL_IN_NULL_OUT
        and any(is_null_if(part, indexes) for part in expr.arguments)
    )


@grows
def rejects_nulls(predicate: Expr, indexes: Container[int]) -> bool:
    """Whether ``predicate`` cannot be true when all columns of ``indexes`` are NULL."""
    if isinstance(predicate, Call):
        if predicate.function == "and":
            return any(rejects_nulls(part, indexes) for part in predicate.arguments)
        if predicate.function == "or":
            return all(rejects_nulls(part, indexes) for part in predicate.arguments)
        if predicate.function == "is_not_null":
            return is_null_if(predicate.arguments[0], indexes)
        if predicate.function == "in":
            return is_null_if(predicate.arguments[0], indexes)
    return is_null_if(predicate, indexes)


def null_folded(expr: Expr) -> Expr:
    """``expr``, or NULL if it is a strict function of NULL."""
    if isinstance(expr, Call) and is_null_if(expr, ()):
        return Literal(None, expr.type)
    return expr
