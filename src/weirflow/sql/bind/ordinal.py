"""Whole numbers in the text that count something else than values: LIMIT, and the places of output columns."""

from __future__ import annotations

from sqlglot import exp

_MOST = 2**31 - 1


def ordinal(node: exp.Expr) -> int | None:
    """The number that ``node`` is if it is written as one of type INT, in parentheses or not; otherwise None."""
    inner = node.unnest()
    negative = isinstance(inner, exp.Neg)
    digits = inner.this if negative else inner
    if not isinstance(digits, exp.Literal) or digits.is_string or not digits.name.isdecimal():
        return None
    number = -int(digits.name) if negative else int(digits.name)
    return number if -_MOST <= number <= _MOST else None
