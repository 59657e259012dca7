"""Functions that make arrays and maps of others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from weirflow.errors import NotIncremental, Reason, SqlPosition, SqlTypeError
from weirflow.sql.expr import Call, Expr, Literal
from weirflow.sql.functions.rules import Arguments, FunctionSignature, Rule, check_count, same_as
from weirflow.sql.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DAY_TIME_INTERVAL,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    YEAR_MONTH_INTERVAL,
    array_of,
    is_array,
    is_integral,
    nullable,
    type_name,
)
from weirflow.sql.typing.coercion import ANY, ARRAY, MAP, Family, cast, common_type

if TYPE_CHECKING:
    from collections.abc import Callable

_ENTRIES = Family(
    "array of pairs",
    lambda kind: is_array(kind) and pa.types.is_struct(kind.value_type) and kind.value_type.num_fields == 2,  # noqa: PLR2004
    NULL,
    casts=False,
)


def _with_element(name: str, result: Callable[[pa.DataType], pa.DataType], *between: pa.DataType) -> Rule:
    """A function of an array and, last, a value that becomes one of its elements or is compared with them."""

    def rule(given: Arguments, position: SqlPosition | None) -> Expr:
        check_count(name, given, 2 + len(between), 2 + len(between), position)
        parts = FunctionSignature(name, (ARRAY, *between, ANY), NULL).arguments(given, position)
        array, element = parts[0], parts[-1]
        kind = _met(name, array.type.value_type, element.type, position)
        typed = (_cast(array, array_of(kind)), *parts[1:-1], _cast(element, kind))
        return Call(name, typed, result(kind), position)

    return rule


def _of_arrays(name: str, result: Callable[[pa.DataType], pa.DataType]) -> Rule:
    """A function of two arrays of the same elements."""

    def rule(given: Arguments, position: SqlPosition | None) -> Expr:
        left, right = FunctionSignature(name, (ARRAY, ARRAY), NULL).arguments(given, position)
        kind = array_of(_met(name, left.type.value_type, right.type.value_type, position))
        return Call(name, (_cast(left, kind), _cast(right, kind)), result(kind), position)

    return rule


def _cast(expr: Expr, kind: pa.DataType) -> Expr:
    return expr if nullable(expr.type) == nullable(kind) else cast(expr, kind)


def _met(name: str, left: pa.DataType, right: pa.DataType, position: SqlPosition | None) -> pa.DataType:
    """The type of two that are the same, or integers; what Spark does with others is not proven."""
    if nullable(left) == nullable(right) or NULL in (left, right):
        return left if right == NULL else right
    kind = common_type((left, right)) if is_integral(left) and is_integral(right) else None
    if kind is None:
        raise NotIncremental(
            f"{name}() of {type_name(left)} and {type_name(right)} is not proven equal to Spark's.",
            reason=Reason.FUNCTION_NOT_PROVEN,
            hint="CAST one of them to the type of the other",
            position=position,
        )
    return kind


def _insert(given: Arguments, position: SqlPosition | None) -> Expr:
    return _with_element("array_insert", array_of, INT)(given, position)


def _sequence(given: Arguments, position: SqlPosition | None) -> Expr:
    """Integers of one type, or times of one type and an interval."""
    check_count("sequence", given, 2, 3, position)
    kinds = [one.type for one in given]
    fits = len(set(kinds)) == 1 and is_integral(kinds[0])
    if kinds[0] in (DATE, TIMESTAMP, TIMESTAMP_NTZ) and kinds[1] == kinds[0]:
        fits = len(given) == 2 or kinds[2] in (DAY_TIME_INTERVAL, YEAR_MONTH_INTERVAL)  # noqa: PLR2004 - no step
    if not fits:
        raise NotIncremental(
            f"sequence() of {', '.join(map(type_name, kinds))} is not proven equal to Spark's.",
            reason=Reason.FUNCTION_NOT_PROVEN,
            hint="CAST start, stop and step to one type of integers",
            position=position,
        )
    return Call("sequence", given, array_of(kinds[0]), position)


def _get(given: Arguments, position: SqlPosition | None) -> Expr:
    """``get(array, index)``: from 0, NULL beyond the array."""
    array, index = FunctionSignature("get", (ARRAY, INT), NULL).arguments(given, position)
    return Call("try_get_array_item", (array, index), array.type.value_type, position)


def _map_from_arrays(given: Arguments, position: SqlPosition | None) -> Expr:
    keys, items = FunctionSignature("map_from_arrays", (ARRAY, ARRAY), NULL).arguments(given, position)
    _require_key(keys.type.value_type, position)
    return Call("map_from_arrays", (keys, items), pa.map_(keys.type.value_type, items.type.value_type), position)


def _map_from_entries(given: Arguments, position: SqlPosition | None) -> Expr:
    (entries,) = FunctionSignature("map_from_entries", (_ENTRIES,), NULL).arguments(given, position)
    if entries.type == NULL:
        raise SqlTypeError("map_from_entries() takes an array of pairs.", position=position)
    key, item = (entries.type.value_type.field(at).type for at in (0, 1))
    _require_key(key, position)
    return Call("map_from_entries", (entries,), pa.map_(key, item), position)


def _require_key(kind: pa.DataType, position: SqlPosition | None) -> None:
    if kind == NULL or pa.types.is_map(kind):
        raise SqlTypeError("A map's key can be neither NULL nor a map.", position=position)


def _map_concat(given: Arguments, position: SqlPosition | None) -> Expr:
    if not given:
        return Call("map_concat", (), pa.map_(STRING, STRING), position)
    if any(not pa.types.is_map(one.type) for one in given) or len({nullable(one.type) for one in given}) > 1:
        raise NotIncremental(
            f"map_concat() of {', '.join(type_name(one.type) for one in given)} is not proven equal to Spark's.",
            reason=Reason.FUNCTION_NOT_PROVEN,
            hint="CAST them to one type",
            position=position,
        )
    return Call("map_concat", given, given[0].type, position)


def _map_entries(given: Arguments, position: SqlPosition | None) -> Expr:
    (entries,) = FunctionSignature("map_entries", (MAP,), NULL).arguments(given, position)
    pair = pa.struct([pa.field("key", entries.type.key_type), pa.field("value", entries.type.item_type)])
    return Call("map_entries", (entries,), array_of(pair), position)


def _map_contains_key(given: Arguments, position: SqlPosition | None) -> Expr:
    mapping, key = FunctionSignature("map_contains_key", (MAP, ANY), NULL).arguments(given, position)
    if key.type == NULL:
        raise SqlTypeError("map_contains_key() takes a key that is not NULL.", position=position)
    kind = _met("map_contains_key", mapping.type.key_type, key.type, position)
    if nullable(kind) != nullable(mapping.type.key_type):
        raise NotIncremental(
            "map_contains_key() of a wider key is not proven equal to Spark's.",
            reason=Reason.FUNCTION_NOT_PROVEN,
            position=position,
        )
    return Call("map_contains_key", (mapping, _cast(key, kind)), BOOLEAN, position)


def arrays_zip(names: tuple[str, ...], given: Arguments, position: SqlPosition | None = None) -> Expr:
    """``arrays_zip`` of arrays, whose elements become fields of these names."""
    arrays = FunctionSignature("arrays_zip", (ARRAY,), NULL, optional=1, repeats=True).arguments(given, position)
    pair = pa.struct([pa.field(name, one.type.value_type) for name, one in zip(names, arrays, strict=True)])
    return Call("arrays_zip", arrays, array_of(pair), position)


ARRAYS: dict[str, Rule] = {
    "array_append": _with_element("array_append", array_of),
    "array_prepend": _with_element("array_prepend", array_of),
    "array_remove": _with_element("array_remove", array_of),
    "array_position": _with_element("array_position", lambda _: BIGINT),
    "array_insert": _insert,
    "array_union": _of_arrays("array_union", lambda kind: kind),
    "array_intersect": _of_arrays("array_intersect", lambda kind: kind),
    "array_except": _of_arrays("array_except", lambda kind: kind),
    "arrays_overlap": _of_arrays("arrays_overlap", lambda _: BOOLEAN),
    "array_compact": FunctionSignature("array_compact", (ARRAY,), same_as(0)),
    "array_repeat": FunctionSignature("array_repeat", (ANY, INT), lambda given: array_of(given[0].type)),
    "array_sort": FunctionSignature("array_sort", (ARRAY,), same_as(0)),
    "sequence": _sequence,
    "get": _get,
    "map_from_arrays": _map_from_arrays,
    "map_from_entries": _map_from_entries,
    "map_concat": _map_concat,
    "map_entries": _map_entries,
    "map_contains_key": _map_contains_key,
    "str_to_map": FunctionSignature(
        "str_to_map", (STRING, STRING, STRING), pa.map_(STRING, STRING), (Literal(",", STRING), Literal(":", STRING))
    ),
}
