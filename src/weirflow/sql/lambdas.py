"""Functions as arguments: ``x -> x + 1`` as a call of its variables and its body.

A variable is a call too, of its number: how many variables the lambdas around it have. So passes, storage and printing
take lambdas as they are, and lambdas that differ only in the names of variables are the same. An expression that is
put in the place of a column inside of a lambda has no variables but its own, so that equal numbers do no harm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from weirflow.sql.expr import Call, Expr, Literal
from weirflow.sql.types import INT

if TYPE_CHECKING:
    import pyarrow as pa

LAMBDA: Final = "lambda"
VARIABLE: Final = "variable"


class LambdaParts(NamedTuple):
    """A lambda's variables and its body."""

    variables: tuple[Call, ...]
    body: Expr


def variable(number: int, kind: pa.DataType) -> Call:
    """The variable of a number."""
    return Call(VARIABLE, (Literal(number, INT),), kind)


def lambda_call(variables: tuple[Call, ...], body: Expr) -> Call:
    """A lambda, as an argument of a higher-order function."""
    return Call(LAMBDA, (*variables, body), body.type)


def is_lambda(expr: Expr) -> bool:
    """Whether an expression is a lambda."""
    return isinstance(expr, Call) and expr.function == LAMBDA


def is_variable(expr: Expr) -> bool:
    """Whether an expression is a lambda's variable."""
    return isinstance(expr, Call) and expr.function == VARIABLE


def lambda_parts(expr: Expr) -> LambdaParts:
    """The parts of a lambda."""
    assert isinstance(expr, Call), "it is a lambda"
    *variables, body = expr.arguments
    return LambdaParts(tuple(one for one in variables if isinstance(one, Call)), body)


def number_of(expr: Expr) -> int:
    """The number of a variable."""
    assert isinstance(expr, Call), "it is a variable"
    number = expr.arguments[0]
    assert isinstance(number, Literal), "it is constant"
    return int(number.value)
