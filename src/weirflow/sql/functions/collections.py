"""Functions of arrays, maps and structs."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from weirflow.errors import ColumnNotFound, SqlPosition, SqlTypeError, did_you_mean
from weirflow.sql.expr import Call, Expr, Literal
from weirflow.sql.functions.rules import Arguments, FunctionSignature, Rule, check_count, same_as
from weirflow.sql.types import BOOLEAN, INT, NULL, STRING, array_of, is_array, is_integral, type_name
from weirflow.sql.typing.coercion import ANY, ARRAY, MAP, NESTED_ARRAY, cast, common_type, comparable, unify

Fold = Callable[[str], str]
"""What is equal for names that are the same."""


def struct_field(struct: Expr, name: str, position: SqlPosition | None, fold: Fold = str.casefold) -> Expr:
    """``struct.name``, or for an array of structs the array of that field; names are the same if folded they are."""
    if is_array(struct.type) and pa.types.is_struct(struct.type.value_type):
        index, kind = _find_field(struct.type.value_type, name, position, fold)
        return Call("get_array_struct_field", (struct, Literal(index, INT)), array_of(kind), position)
    if pa.types.is_map(struct.type):
        return map_value(struct, Literal(name, STRING), position)
    if not pa.types.is_struct(struct.type):
        raise SqlTypeError(
            f"{type_name(struct.type)} has no fields, so no {name!r} can be taken from it.", position=position
        )
    index, kind = _find_field(struct.type, name, position, fold)
    return Call("get_struct_field", (struct, Literal(index, INT)), kind, position)


def item(container: Expr, key: Expr, position: SqlPosition | None, fold: Fold = str.casefold) -> Expr:
    """``container[key]``: an array's item (from 0), a map's value, or a struct's field by its literal name."""
    if is_array(container.type):
        if not is_integral(key.type):
            raise SqlTypeError(f"An array is indexed by integers, not {type_name(key.type)}.", position=position)
        return Call("get_array_item", (container, key), container.type.value_type, position)
    if pa.types.is_map(container.type):
        return map_value(container, key, position)
    if isinstance(key, Literal) and key.type == STRING:
        return struct_field(container, key.value, position, fold)
    raise SqlTypeError(f"{type_name(container.type)} cannot be indexed.", position=position)


def map_value(mapping: Expr, key: Expr, position: SqlPosition | None) -> Expr:
    """``mapping[key]``: NULL when there is no such key."""
    _, typed = comparable(Literal(None, mapping.type.key_type), key, "map lookup", position)
    return Call("get_map_value", (mapping, cast(typed, mapping.type.key_type)), mapping.type.item_type, position)


def named_struct(names: tuple[str, ...], values: Arguments, position: SqlPosition | None = None) -> Expr:
    """A struct; its call has the arguments name, value, name, value, ..."""
    kind = pa.struct([pa.field(name, value.type) for name, value in zip(names, values, strict=True)])
    pairs = ((Literal(name, STRING), value) for name, value in zip(names, values, strict=True))
    return Call("named_struct", tuple(part for pair in pairs for part in pair), kind, position)


def _named_struct_call(given: Arguments, position: SqlPosition | None) -> Expr:
    names = given[::2]
    if not given or len(given) % 2 or not all(isinstance(name, Literal) and name.type == STRING for name in names):
        raise SqlTypeError("named_struct() takes pairs of a literal name and a value.", position=position)
    return named_struct(tuple(name.value for name in names if isinstance(name, Literal)), given[1::2], position)


def _array(given: Arguments, position: SqlPosition | None) -> Expr:
    items = unify(given, "array()", position)
    return Call("array", items, array_of(items[0].type if items else NULL), position)


def _map(given: Arguments, position: SqlPosition | None) -> Expr:
    if len(given) % 2 or not given:
        raise SqlTypeError("map() takes one or more pairs of a key and a value.", position=position)
    keys, values = unify(given[::2], "map() keys", position), unify(given[1::2], "map() values", position)
    if keys[0].type == NULL or pa.types.is_map(keys[0].type):
        raise SqlTypeError("A map's key can be neither NULL nor a map.", position=position)
    kind = pa.map_(keys[0].type, values[0].type)
    return Call("map", tuple(part for pair in zip(keys, values, strict=True) for part in pair), kind, position)


def _element_at(given: Arguments, position: SqlPosition | None) -> Expr:
    check_count("element_at", given, 2, 2, position)
    container, key = given
    if pa.types.is_map(container.type):
        return map_value(container, key, position)
    array, index = FunctionSignature("element_at", (ARRAY, INT), INT).arguments(given, position)
    return Call("element_at", (array, index), array.type.value_type, position)


def _array_contains(given: Arguments, position: SqlPosition | None) -> Expr:
    check_count("array_contains", given, 2, 2, position)
    array = FunctionSignature("array_contains", (ARRAY, ANY), BOOLEAN).arguments(given, position)[0]
    kind = common_type((array.type.value_type, given[1].type))
    if kind is None:
        raise SqlTypeError(f"{type_name(array.type)} cannot contain {type_name(given[1].type)}.", position=position)
    return Call("array_contains", (cast(array, array_of(kind)), cast(given[1], kind)), BOOLEAN, position)


def _find_field(struct: pa.DataType, name: str, position: SqlPosition | None, fold: Fold) -> tuple[int, pa.DataType]:
    found = [index for index, field in enumerate(struct) if fold(field.name) == fold(name)]
    if not found:
        names = [field.name for field in struct]
        raise ColumnNotFound(
            f"The struct has no field {name!r}.",
            hint=did_you_mean(name, names) or "its fields are " + ", ".join(names),
            position=position,
        )
    if len(found) > 1:
        raise ColumnNotFound(f"The struct has {len(found)} fields {name!r}.", position=position)
    return found[0], struct.field(found[0]).type


def _element(arguments: Arguments) -> pa.DataType:
    return arguments[0].type.value_type


COLLECTIONS: dict[str, Rule] = {
    "array": _array,
    "map": _map,
    "named_struct": _named_struct_call,
    "size": FunctionSignature("size", ((ARRAY, MAP),), INT),
    "array_size": FunctionSignature("array_size", (ARRAY,), INT),
    "element_at": _element_at,
    "array_contains": _array_contains,
    "array_min": FunctionSignature("array_min", (ARRAY,), _element),
    "array_max": FunctionSignature("array_max", (ARRAY,), _element),
    "array_distinct": FunctionSignature("array_distinct", (ARRAY,), same_as(0)),
    "sort_array": FunctionSignature("sort_array", (ARRAY, BOOLEAN), same_as(0), (Literal(value=True, type=BOOLEAN),)),
    "array_join": FunctionSignature("array_join", (array_of(STRING), STRING, STRING), STRING, optional=1),
    "slice": FunctionSignature("slice", (ARRAY, INT, INT), same_as(0)),
    "flatten": FunctionSignature("flatten", (NESTED_ARRAY,), _element),
    "reverse": FunctionSignature("reverse", ((STRING, ARRAY),), same_as(0)),
    "map_keys": FunctionSignature("map_keys", (MAP,), lambda arguments: array_of(arguments[0].type.key_type)),
    "map_values": FunctionSignature("map_values", (MAP,), lambda arguments: array_of(arguments[0].type.item_type)),
}
