"""The order of arrays and structs: part by part, NULL before everything else, and equal to itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from weirflow.ivm.kernel.expressions.strings.texts import one_by_one

if TYPE_CHECKING:
    from weirflow.ivm.kernel.expressions.signature import Kernel

    Key = Callable[[Any], Any]

_TESTS: dict[str, Callable[[Any, Any], bool]] = {
    "equal": lambda left, right: left == right,
    "not_equal": lambda left, right: left != right,
    "less": lambda left, right: left < right,
    "less_equal": lambda left, right: left <= right,
    "greater": lambda left, right: left > right,
    "greater_equal": lambda left, right: left >= right,
}


def comparer(function: str, left: pa.DataType, right: pa.DataType) -> Kernel | None:
    """A comparison of two arrays or structs; NULL if either is, whatever is inside."""
    key = sort_key(left)
    if key is None or not _alike(left, right):
        return None
    test = _TESTS[function]
    return one_by_one(lambda one, other: test(key(one), key(other)), pa.bool_())


def sort_key(kind: pa.DataType) -> Key | None:
    """A function from Python values, not None, to keys in Spark's order; None for types without one."""
    if pa.types.is_map(kind):
        return None
    if pa.types.is_list(kind):
        element = sort_key(kind.value_type)
        return None if element is None else lambda values: [_with_null(element, value) for value in values]
    if pa.types.is_struct(kind):
        return _struct_key(kind)
    if pa.types.is_floating(kind):
        return lambda value: (value != value, 0.0 if value != value else value)  # noqa: PLR0124 - NaN is greatest
    if pa.types.is_string(kind):
        return lambda value: value.encode()
    return lambda value: value


def _struct_key(kind: pa.DataType) -> Key | None:
    keys: list[tuple[str, Key]] = []
    for field in kind:
        key = sort_key(field.type)
        if key is None:
            return None
        keys.append((field.name, key))
    if len({name for name, _ in keys}) < len(keys):
        return None  # as a Python dict it would lose fields
    return lambda value: [_with_null(key, value[name]) for name, key in keys]


def _with_null(key: Key, value: Any) -> tuple[bool, Any]:
    return (False, None) if value is None else (True, key(value))


def _alike(left: pa.DataType, right: pa.DataType) -> bool:
    """Whether two types differ at most in the names of fields."""
    if pa.types.is_list(left) and pa.types.is_list(right):
        return _alike(left.value_type, right.value_type)
    if pa.types.is_struct(left) and pa.types.is_struct(right):
        same_names = [field.name for field in left] == [field.name for field in right]
        return same_names and all(_alike(one.type, other.type) for one, other in zip(left, right, strict=True))
    return bool(left == right)
