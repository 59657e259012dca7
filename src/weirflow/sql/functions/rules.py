"""How a function's arguments become a typed call: count them, cast them as Spark would, name the result's type."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from weirflow.errors import SqlPosition, SqlTypeError
from weirflow.sql.expr import Call, Expr
from weirflow.sql.types import NULL, STRING, type_name
from weirflow.sql.typing.coercion import Expected, expected_name, implicit, unify

if TYPE_CHECKING:
    import pyarrow as pa

Arguments = tuple[Expr, ...]
Rule = Callable[[Arguments, "SqlPosition | None"], Expr]
ResultType: TypeAlias = "pa.DataType | Callable[[Arguments], pa.DataType]"


@dataclass(frozen=True)
class FunctionSignature:
    """A function of fixed parameters.

    The last ``len(defaults)`` parameters may be left out and are then filled in; the last ``optional`` ones may be
    left out altogether; with ``repeats`` the last one may occur any number of times.
    """

    name: str
    parameters: tuple[Expected, ...]
    result: ResultType
    defaults: tuple[Expr, ...] = ()
    optional: int = 0
    repeats: bool = False

    def arguments(self, given: Arguments, position: SqlPosition | None) -> Arguments:
        """The arguments in the parameters' types; ``SqlTypeError`` if they do not fit."""
        least = len(self.parameters) - max(self.optional, len(self.defaults))
        most = None if self.repeats else len(self.parameters)
        check_count(self.name, given, least, most, position)
        missing = len(self.parameters) - len(given)
        filled = given + (self.defaults[len(self.defaults) - missing :] if missing > 0 and self.defaults else ())
        return tuple(
            _fit(self.name, index, expr, self.parameters[min(index, len(self.parameters) - 1)], position)
            for index, expr in enumerate(filled)
        )

    def __call__(self, given: Arguments, position: SqlPosition | None) -> Expr:
        """The typed call."""
        arguments = self.arguments(given, position)
        return Call(self.name, arguments, result_type(self.result, arguments), position)


def result_type(result: ResultType, arguments: Arguments) -> pa.DataType:
    """The type a rule gives for these arguments."""
    return result(arguments) if callable(result) else result


def same_as(index: int) -> Callable[[Arguments], pa.DataType]:
    """The result has the type of the argument at ``index``."""
    return lambda arguments: arguments[index].type


def alike(name: str, least: int = 2, *, mixes_strings: bool = True) -> Rule:
    """A function of any number of arguments that first meet in one common type.

    With ``mixes_strings`` that type may be another than string although one of them is a string.
    """

    def rule(given: Arguments, position: SqlPosition | None) -> Expr:
        check_count(name, given, least, None, position)
        kinds = [expr.type for expr in given if expr.type != NULL]
        if not mixes_strings and STRING in kinds and any(kind != STRING for kind in kinds):
            raise SqlTypeError(f"{name}() does not mix strings with other types.", position=position)
        arguments = unify(given, f"{name}()", position)
        return Call(name, arguments, arguments[0].type, position)

    return rule


def check_count(name: str, given: Arguments, least: int, most: int | None, position: SqlPosition | None) -> None:
    """``SqlTypeError`` unless there are ``least`` to ``most`` arguments."""
    if len(given) >= least and (most is None or len(given) <= most):
        return
    wanted = str(least) if most == least else f"at least {least}" if most is None else f"{least} to {most}"
    raise SqlTypeError(f"{name}() takes {wanted} arguments, not {len(given)}.", position=position)


def _fit(name: str, index: int, expr: Expr, expected: Expected, position: SqlPosition | None) -> Expr:
    fitted = implicit(expr, expected, position)
    if fitted is None:
        raise SqlTypeError(
            f"{name}() takes {expected_name(expected)} as argument {index + 1}, not {type_name(expr.type)}.",
            hint=f"CAST it to {expected_name(expected)} if that is meant",
            position=position,
        )
    return fitted
