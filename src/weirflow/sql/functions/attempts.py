"""``try_add`` and its like: NULL where the function without ``try_`` raises, whatever the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weirflow.errors import NotIncremental, Reason
from weirflow.sql.expr import Call
from weirflow.sql.functions.collections import COLLECTIONS
from weirflow.sql.functions.modes import EvalMode, call_in
from weirflow.sql.functions.operators import OPERATORS
from weirflow.sql.functions.rules import check_count
from weirflow.sql.functions.times import parsed_in
from weirflow.sql.types import DATE, STRING, TIMESTAMP, is_numeric
from weirflow.sql.typing.coercion import cast

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.errors import SqlPosition
    from weirflow.sql.expr import Expr
    from weirflow.sql.functions.rules import Arguments, Rule


def _of_numbers(name: str, function: str) -> Rule:
    """An operator on two numbers; of anything else Spark tries the whole expression, its arguments included."""

    def rule(given: Arguments, position: SqlPosition | None) -> Expr:
        check_count(name, given, 2, 2, position)
        if not all(is_numeric(one.type) for one in given):
            raise _unproven(name, "of anything but numbers", position)
        made = call_in(EvalMode.TRY, OPERATORS[function](given, position))
        assert made is not None, "Spark has it"
        return made

    return rule


def _element_at(given: Arguments, position: SqlPosition | None) -> Expr:
    made = call_in(EvalMode.TRY, COLLECTIONS["element_at"](given, position))
    assert made is not None, "Spark has it"
    return made


def _parsed(name: str, kind: pa.DataType) -> Rule:
    """A cast, if there is no format."""

    def rule(given: Arguments, position: SqlPosition | None) -> Expr:
        check_count(name, given, 1, 2, position)
        if len(given) > 1:
            made = call_in(EvalMode.TRY, parsed_in(name, given, TIMESTAMP, position))
            assert made is not None, "Spark has it"
            return cast(made, kind, position)
        if given[0].type not in (STRING, DATE, TIMESTAMP):
            raise _unproven(name, "of anything but texts and times", position)
        return given[0] if given[0].type == kind else Call("try_cast", given, kind, position)

    return rule


def _unproven(name: str, how: str, position: SqlPosition | None) -> NotIncremental:
    return NotIncremental(
        f"{name}() {how} is not proven equal to Spark's.", reason=Reason.FUNCTION_NOT_PROVEN, position=position
    )


_OPERATORS = {
    "try_add": "add",
    "try_subtract": "subtract",
    "try_multiply": "multiply",
    "try_divide": "divide",
    "try_mod": "remainder",
}
ATTEMPTS: dict[str, Rule] = {
    **{name: _of_numbers(name, function) for name, function in _OPERATORS.items()},
    "try_element_at": _element_at,
    "try_to_date": _parsed("try_to_date", DATE),
    "try_to_timestamp": _parsed("try_to_timestamp", TIMESTAMP),
}
