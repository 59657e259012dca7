"""Predicates as lists of conjuncts, and the equalities among them that can be join keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import reduce
from typing import Any

import pyarrow as pa

from weirflow.sql.clock.reading import is_clock
from weirflow.sql.expr import Call, Exists, Expr, InSubquery, Literal, OuterColumn, ScalarSubquery
from weirflow.sql.traverse import columns, parts
from weirflow.sql.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DAY_TIME_INTERVAL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    is_decimal,
    is_numeric,
)
from weirflow.stack import grows


def conjuncts(predicate: Expr | None) -> list[Expr]:
    """The parts that must all be true."""
    return [] if predicate is None else _operands(predicate, "and")


def divided(predicates: Iterable[Expr], test: Callable[[Expr], bool]) -> tuple[list[Expr], list[Expr]]:
    """Those that pass the test, and the others, in their order."""
    passed: list[Expr] = []
    others: list[Expr] = []
    for one in predicates:
        (passed if test(one) else others).append(one)
    return passed, others


def conjunction(predicates: Iterable[Expr]) -> Expr | None:
    """The predicate that is true when all are; None for none."""
    listed = list(predicates)
    return reduce(lambda left, right: Call("and", (left, right), BOOLEAN), listed) if listed else None


def split_condition(predicate: Expr | None, width: int) -> tuple[list[tuple[Expr, Expr]], list[Expr]]:
    """Pairs of equal keys, one of the first ``width`` columns and one of the others, and the remaining conjuncts.

    Both keys are expressions over the joined columns. ``<=>`` counts as an equality: NULLs are compared as a pair of
    keys, whether it is NULL and what else it is.
    """
    keys: list[tuple[Expr, Expr]] = []
    rest: list[Expr] = []
    for part in conjuncts(predicate):
        pair = _sides(part, width)
        if pair is None:
            rest.append(part)
        elif isinstance(part, Call) and part.function == "equal_null_safe":
            keys.extend(_null_safe(*pair))
        else:
            keys.append(pair)
    return keys, rest


def _sides(part: Expr, width: int) -> tuple[Expr, Expr] | None:
    if not isinstance(part, Call) or part.function not in ("equal", "equal_null_safe"):
        return None
    if part.function == "equal_null_safe" and _placeholder(part.arguments[0].type) is None:
        return None
    one, other = part.arguments
    for first, second in ((one, other), (other, one)):
        if _within(first, 0, width) and _within(second, width, None):
            return first, second
    return None


def _within(expr: Expr, low: int, high: int | None) -> bool:
    read = columns(expr)
    apart = OuterColumn | ScalarSubquery | Exists | InSubquery
    plain = not any(isinstance(part, apart) or is_clock(part) for part in parts(expr))
    return bool(read) and plain and all(low <= index and (high is None or index < high) for index in read)


def _null_safe(left: Expr, right: Expr) -> list[tuple[Expr, Expr]]:
    filler = Literal(_placeholder(left.type), left.type)
    is_null = tuple(Call("is_null", (side,), BOOLEAN) for side in (left, right))
    filled = tuple(Call("coalesce", (side, filler), side.type) for side in (left, right))
    return [(is_null[0], is_null[1]), (filled[0], filled[1])]


def _placeholder(kind: pa.DataType) -> Any:
    """Any value of the type, or None where there is none to name."""
    if is_decimal(kind):
        return Decimal(0).scaleb(-kind.scale)
    if is_numeric(kind):
        return 0.0 if pa.types.is_floating(kind) else 0
    simple = {
        BOOLEAN: False,
        STRING: "",
        BINARY: b"",
        DATE: date(1970, 1, 1),
        TIMESTAMP: datetime(1970, 1, 1, tzinfo=UTC),
        TIMESTAMP_NTZ: datetime(1970, 1, 1),  # noqa: DTZ001 - a timestamp without a zone
        DAY_TIME_INTERVAL: timedelta(0),
    }
    return simple.get(kind)


def factored(predicate: Expr) -> Expr:
    """``(a AND b) OR (a AND c)`` as ``a AND (b OR c)``, so that what all alternatives need stands by itself."""
    alternatives = [conjuncts(part) for part in _operands(predicate, "or")]
    if len(alternatives) == 1:
        return predicate
    shared = set(alternatives[0]).intersection(*alternatives[1:])
    if not shared:
        return predicate
    common = [part for part in alternatives[0] if part in shared]
    rest = [[part for part in one if part not in shared] for one in alternatives]
    if not all(rest):
        return conjunction(common) or predicate
    choices = [conjunction(one) for one in rest]
    choice = reduce(lambda left, right: Call("or", (left, right), BOOLEAN), [one for one in choices if one is not None])
    return conjunction([*common, choice]) or predicate


@grows
def negations_inward(expr: Expr) -> Expr:
    """NOT moved below AND, OR and NOT, everywhere in ``expr``."""
    if not isinstance(expr, Call):
        return expr
    if expr.function != "not":
        return replace(expr, arguments=tuple(negations_inward(part) for part in expr.arguments))
    inner = expr.arguments[0]
    if isinstance(inner, Call) and inner.function == "not":
        return negations_inward(inner.arguments[0])
    if isinstance(inner, Call) and inner.function in ("and", "or"):
        other = "or" if inner.function == "and" else "and"
        negated = tuple(negations_inward(Call("not", (part,), BOOLEAN, expr.position)) for part in inner.arguments)
        return Call(other, negated, BOOLEAN, inner.position)
    return replace(expr, arguments=(negations_inward(inner),))


def _operands(predicate: Expr, operator: str) -> list[Expr]:
    """What a chain of one operator combines, left to right."""
    found: list[Expr] = []
    ahead = [predicate]
    while ahead:
        part = ahead.pop()
        if isinstance(part, Call) and part.function == operator:
            ahead += reversed(part.arguments)
        else:
            found.append(part)
    return found
