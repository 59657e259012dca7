"""Binding of higher-order functions, whose last arguments are lambdas."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from weirflow.errors import SqlPosition, SqlTypeError
from weirflow.sql.functions.higher_order import HIGHER_ORDER, call, canonical
from weirflow.sql.lambdas import lambda_call, variable
from weirflow.sql.types import type_name

if TYPE_CHECKING:
    from weirflow.sql.bind.expressions.binder import ExpressionBinder
    from weirflow.sql.expr import Expr


def is_higher_order(name: str, arguments: list[exp.Expr]) -> bool:
    """Whether a call is one of a higher-order function; some have forms without a lambda."""
    return canonical(name) in HIGHER_ORDER and any(isinstance(one, exp.Lambda) for one in arguments)


def bind_higher_order(
    binder: ExpressionBinder, written: str, arguments: list[exp.Expr], position: SqlPosition | None
) -> Expr:
    """A call of values and lambdas."""
    name = canonical(written)
    function = HIGHER_ORDER[name]
    trees, functions = arguments[: len(function.values)], arguments[len(function.values) :]
    values = tuple(binder.bind(tree) for tree in trees if not isinstance(tree, exp.Lambda))
    if len(values) < len(function.values) or not all(isinstance(one, exp.Lambda) for one in functions):
        raise SqlTypeError(f"{written}() takes {len(function.values)} values, then a function.", position=position)
    for place, (value, fits) in enumerate(zip(values, function.values, strict=True), start=1):
        if not fits(value.type):
            raise SqlTypeError(
                f"{written}() does not take {type_name(value.type)} as argument {place}.", position=position
            )
    kinds = tuple(one.type for one in values)
    lambdas = []
    for place, tree in enumerate(functions):
        names = [one.name for one in tree.expressions]
        types = function.variables(place, kinds, len(names))
        if types is None or len({binder.scope.fold(one) for one in names}) < len(names):
            raise SqlTypeError(
                f"The function of {written}() has other variables than ({', '.join(names)}).", position=position
            )
        bound = tuple(variable(number, kind) for number, kind in enumerate(types, start=len(binder.variables)))
        inside = replace(binder, variables=(*binder.variables, *zip(names, bound, strict=True)))
        lambdas.append(lambda_call(bound, inside.bind(tree.this)))
    return call(name, (*values, *lambdas), position)
