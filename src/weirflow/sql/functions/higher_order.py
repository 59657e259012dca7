"""Functions of functions: which variables their lambdas have, and what they give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from weirflow.errors import NotIncremental, Reason, SqlPosition, SqlTypeError
from weirflow.sql.expr import Call, Expr, Literal
from weirflow.sql.functions.conditionals import case
from weirflow.sql.functions.operators import OPERATORS
from weirflow.sql.lambdas import LambdaParts, is_lambda, lambda_parts
from weirflow.sql.types import BOOLEAN, INT, array_of, is_array, nullable, type_name

if TYPE_CHECKING:
    Types = tuple[pa.DataType, ...]

ALIASES = {"reduce": "aggregate"}


@dataclass(frozen=True)
class HigherOrder:
    """A function whose first arguments are values and whose last ones are lambdas.

    Attributes:
        values: whether each value must be an array or a map.
        lambdas: for each lambda, from the types of the values to those of its variables, of which the last may be
            left out as far as ``optional`` says.
        result: from the types of the values and of the lambdas' bodies to that of the call; None if they do not fit.
        least: how many lambdas there are at least.
    """

    values: tuple[Callable[[pa.DataType], bool], ...]
    lambdas: tuple[Callable[[Types], Types], ...]
    result: Callable[[Types, Types], pa.DataType | None]
    optional: int = 0
    least: int = 1

    def variables(self, place: int, values: Types, count: int) -> Types | None:
        """The types of the variables of a lambda that is written with so many; None if there are others."""
        if place >= len(self.lambdas):
            return None
        kinds = self.lambdas[place](values)
        return kinds[:count] if len(kinds) - self.optional <= count <= len(kinds) else None


def canonical(name: str) -> str:
    """The name of a function that has several."""
    folded = name.casefold()
    return ALIASES.get(folded, folded)


def call(name: str, arguments: tuple[Expr, ...], position: SqlPosition | None = None) -> Expr:
    """The typed call of values and lambdas; ``SqlTypeError`` or ``NotIncremental`` if they do not fit."""
    function = HIGHER_ORDER[name]
    values = tuple(one.type for one in arguments if not is_lambda(one))
    bodies = tuple(lambda_parts(one).body.type for one in arguments if is_lambda(one))
    if not function.least <= len(bodies) <= len(function.lambdas):
        raise SqlTypeError(f"{name}() takes {function.least} lambdas, not {len(bodies)}.", position=position)
    kind = function.result(values, bodies)
    if kind is None:
        raise NotIncremental(
            f"{name}() with a function that gives {', '.join(map(type_name, bodies))} is not proven equal to Spark's.",
            reason=Reason.FUNCTION_NOT_PROVEN,
            hint="CAST what the function gives",
            position=position,
        )
    return Call(name, arguments, kind, position)


def sorts_as_usual(function: Expr) -> bool:
    """Whether a lambda compares as ``array_sort`` does by itself: ascending, NULLs last."""
    parts = lambda_parts(function)
    return parts.body == _usual_order(parts)


def _usual_order(parts: LambdaParts) -> Expr:
    left, right = parts.variables
    first, second = (OPERATORS["is_null"]((one,), None) for one in (left, right))
    return _either(
        OPERATORS["and"]((first, second), None),
        0,
        _either(
            first,
            1,
            _either(
                second,
                -1,
                _either(
                    OPERATORS["less"]((left, right), None),
                    -1,
                    _either(OPERATORS["greater"]((left, right), None), 1, Literal(0, INT)),
                ),
            ),
        ),
    )


def _either(condition: Expr, value: int, otherwise: Expr) -> Expr:
    return case(((condition, Literal(value, INT)),), otherwise, None)


def _is_map(kind: pa.DataType) -> bool:
    return bool(pa.types.is_map(kind))


def _same_keys(values: Types, bodies: Types) -> pa.DataType | None:
    alike = nullable(values[0].key_type) == nullable(values[1].key_type)
    return pa.map_(values[0].key_type, bodies[0]) if alike else None


def _accumulated(values: Types, bodies: Types) -> pa.DataType | None:
    if nullable(bodies[0]) != nullable(values[1]):
        return None
    return bodies[-1] if len(bodies) > 1 else values[1]


def _if_boolean(kind: Callable[[Types], pa.DataType]) -> Callable[[Types, Types], pa.DataType | None]:
    return lambda values, bodies: kind(values) if bodies[0] == BOOLEAN else None


def _keyed(values: Types, bodies: Types) -> pa.DataType | None:
    return None if bodies[0] == pa.null() or _is_map(bodies[0]) else pa.map_(bodies[0], values[0].item_type)


def _entry(values: Types) -> Types:
    return values[0].key_type, values[0].item_type


def _element(values: Types) -> Types:
    return (values[0].value_type,)


def _element_and_place(values: Types) -> Types:
    return values[0].value_type, INT


HIGHER_ORDER: dict[str, HigherOrder] = {
    "transform": HigherOrder((is_array,), (_element_and_place,), lambda _, bodies: array_of(bodies[0]), optional=1),
    "filter": HigherOrder((is_array,), (_element_and_place,), _if_boolean(lambda values: values[0]), optional=1),
    "exists": HigherOrder((is_array,), (_element,), _if_boolean(lambda _: BOOLEAN)),
    "forall": HigherOrder((is_array,), (_element,), _if_boolean(lambda _: BOOLEAN)),
    "aggregate": HigherOrder(
        (is_array, lambda _: True),
        (lambda values: (values[1], values[0].value_type), lambda values: (values[1],)),
        _accumulated,
    ),
    "zip_with": HigherOrder(
        (is_array, is_array),
        (lambda values: (values[0].value_type, values[1].value_type),),
        lambda _, bodies: array_of(bodies[0]),
    ),
    "array_sort": HigherOrder(
        (is_array,),
        (lambda values: (values[0].value_type, values[0].value_type),),
        lambda values, bodies: values[0] if bodies[0] == INT else None,
    ),
    "map_filter": HigherOrder((_is_map,), (_entry,), _if_boolean(lambda values: values[0])),
    "transform_keys": HigherOrder((_is_map,), (_entry,), _keyed),
    "transform_values": HigherOrder(
        (_is_map,), (_entry,), lambda values, bodies: pa.map_(values[0].key_type, bodies[0])
    ),
    "map_zip_with": HigherOrder(
        (_is_map, _is_map),
        (lambda values: (values[0].key_type, values[0].item_type, values[1].item_type),),
        _same_keys,
    ),
}
