"""``na.drop`` of a frame, whose condition Spark has no SQL for: how many of some columns hold a value."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import pyarrow as pa

from weirflow.sql.expr import Call, Expr
from weirflow.sql.types import BOOLEAN


def at_least(count: int, values: Sequence[Expr]) -> Expr | None:
    """Whether so many of the values are there, all or any of them; None for a number between. NaN is not there."""
    there = [_is_there(value) for value in values]
    if not there or count not in (1, len(there)):
        return None
    name = "and" if count == len(there) else "or"
    return reduce(lambda left, right: Call(name, (left, right), BOOLEAN), there)


def _is_there(value: Expr) -> Expr:
    found = Call("is_not_null", (value,), BOOLEAN)
    if not pa.types.is_floating(value.type):
        return found
    return Call("and", (found, Call("not", (Call("is_nan", (value,), BOOLEAN),), BOOLEAN)), BOOLEAN)
