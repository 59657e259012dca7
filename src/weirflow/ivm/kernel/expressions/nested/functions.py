"""Functions of arrays, maps and structs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weirflow.ivm.kernel.bounds import require_result
from weirflow.ivm.kernel.expressions.comparison import comparer
from weirflow.ivm.kernel.expressions.failures import failure
from weirflow.ivm.kernel.expressions.nested import order as nested_order
from weirflow.ivm.kernel.expressions.nested.lists import entries_of, lengths, list_from, list_offsets, map_from
from weirflow.ivm.kernel.expressions.retype import retyped
from weirflow.ivm.kernel.expressions.rows import (
    first_row,
    like_nulls,
    nulls_of,
    numbers,
    on_arrays,
    true_mask,
    valid_mask,
)
from weirflow.ivm.kernel.expressions.strings.texts import (
    growing,
    joined,
    list_bytes,
    most_bytes,
    one_by_one,
    require_joinable,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weirflow.errors import SqlPosition
    from weirflow.ivm.kernel.expressions.signature import Builder, CallSignature, Kernel

_INT, _BOOLEAN = pa.int32(), pa.bool_()


def get_struct_field(signature: CallSignature) -> Kernel | None:
    """A field, by its constant number (from 0) or name; NULL if the struct is."""
    constant = signature.constants[1]
    if not pa.types.is_struct(signature.types[0]) or constant is None:
        return None
    path = [constant.as_py()]
    return lambda structs, _: pc.struct_field(structs, path)


def get_array_struct_field(signature: CallSignature) -> Kernel | None:
    """One field of every struct in an array."""
    constant, kind = signature.constants[1], signature.types[0]
    if constant is None or not (pa.types.is_list(kind) and pa.types.is_struct(kind.value_type)):
        return None
    path = [constant.as_py()]

    def run(arrays: pa.Array) -> pa.Array:
        values = retyped(pc.struct_field(arrays.flatten(), path), signature.result.value_type)
        return list_from(list_offsets(arrays), values, signature.result, arrays)

    alone = on_arrays(run)
    return lambda arrays, _: alone(arrays)


def get_array_item(signature: CallSignature) -> Kernel | None:
    """``array[index]``, from 0; an error beyond the array, or NULL if the function's name says so."""
    if not (pa.types.is_list(signature.types[0]) and pa.types.is_integer(signature.types[1])):
        return None
    position, tolerant = signature.position, signature.function == "try_get_array_item"

    def run(arrays: pa.Array, indexes: pa.Array) -> pa.Array:
        # As in Spark, an index is 32 bits wide, also if it is a BIGINT.
        places, sizes = numbers(indexes).astype(np.int32).astype(np.int64), lengths(arrays)
        beyond = (places < 0) | (places >= sizes)
        row = first_row(beyond, arrays, indexes)
        if row is not None and tolerant:
            return _taken_within(arrays, places, beyond, indexes)
        if row is not None:
            raise _out_of_bounds("INVALID_ARRAY_INDEX", int(places[row]), int(sizes[row]), position)
        return _taken(arrays, places, nulls_of(arrays, indexes))

    return on_arrays(run)


def element_at(signature: CallSignature) -> Kernel | None:
    """``element_at(array, index)``: from 1, or from the end if negative; of a map, as ``map[key]``.

    There is no element 0, whichever of its two names the function has.
    """
    if pa.types.is_map(signature.types[0]):
        return get_map_value(signature)
    if not pa.types.is_list(signature.types[0]) or signature.types[1] != _INT:
        return None
    position, tolerant = signature.position, signature.function == "try_element_at"

    def run(arrays: pa.Array, indexes: pa.Array) -> pa.Array:
        wanted, sizes = numbers(indexes).astype(np.int64), lengths(arrays)
        places = np.where(wanted > 0, wanted - 1, sizes + wanted)
        beyond = np.abs(wanted) > sizes
        row = first_row((wanted == 0) if tolerant else beyond | (wanted == 0), arrays, indexes)
        if row is None and beyond.any():
            return _taken_within(arrays, places, beyond, indexes)
        if row is not None:
            if beyond[row]:
                condition = "INVALID_ARRAY_INDEX_IN_ELEMENT_AT"
                raise _out_of_bounds(condition, int(wanted[row]), int(sizes[row]), position)
            raise failure("INVALID_INDEX_OF_ZERO", "The index 0 is invalid: the first element has index 1.", position)
        return _taken(arrays, places, nulls_of(arrays, indexes))

    return on_arrays(run)


def _taken_within(
    arrays: pa.Array, places: NDArray[np.int64], beyond: NDArray[np.bool_], indexes: pa.Array
) -> pa.Array:
    """The elements at these places, and NULL where they are beyond the array."""
    inside = pa.array(np.where(beyond, 0, places), mask=beyond)
    return _taken(arrays, places, nulls_of(arrays, indexes, inside))


def _out_of_bounds(condition: str, index: int, size: int, position: SqlPosition | None) -> Exception:
    return failure(condition, f"The index {index} is out of bounds. The array has {size} elements.", position)


def _taken(arrays: pa.Array, places: NDArray[np.int64], validity: pa.Buffer | None) -> pa.Array:
    """The element at its place in each array; NULL where the validity bitmap says so."""
    wanted = np.ascontiguousarray(list_offsets(arrays)[:-1] + places, np.int64)
    indexes = pa.Array.from_buffers(pa.int64(), len(arrays), [validity, pa.py_buffer(wanted)])
    return arrays.flatten().take(indexes)


def get_map_value(signature: CallSignature) -> Kernel | None:
    """``map[key]``: NULL if there is no such key."""
    kind = signature.types[0]
    if not pa.types.is_map(kind):
        return None
    equal = comparer("equal", kind.key_type, signature.types[1])
    if equal is None:
        return None

    def run(maps: pa.Array, keys: pa.Array) -> pa.Array:
        entries = entries_of(maps)
        owners = np.repeat(np.arange(len(maps)), np.diff(entries.offsets))
        hits = true_mask(equal(entries.keys, keys.take(pa.array(owners))), len(owners))
        wanted = np.full(len(maps), -1)
        wanted[owners[hits][::-1]] = np.flatnonzero(hits)[::-1]  # the first one is written last
        return entries.items.take(pa.array(wanted, mask=wanted < 0))

    return on_arrays(run)


def size(signature: CallSignature) -> Kernel | None:
    """How many elements or entries; NULL for NULL."""
    if not (pa.types.is_list(signature.types[0]) or pa.types.is_map(signature.types[0])):
        return None
    return on_arrays(lambda arrays: like_nulls(lengths(arrays), _INT, arrays))


def array_contains(signature: CallSignature) -> Kernel | None:
    """Whether an element is equal; NULL if none is and one is NULL."""
    kind = signature.types[0]
    if not pa.types.is_list(kind):
        return None
    equal = comparer("equal", kind.value_type, signature.types[1])
    if equal is None:
        return None

    def run(arrays: pa.Array, values: pa.Array) -> pa.Array:
        elements, offsets = arrays.flatten(), list_offsets(arrays)
        owners = np.repeat(np.arange(len(arrays)), np.diff(offsets))
        hits = true_mask(equal(elements, values.take(pa.array(owners))), len(owners))
        found, unknown = np.zeros(len(arrays), np.bool_), np.zeros(len(arrays), np.bool_)
        found[owners[hits]] = True
        unknown[owners[~valid_mask(elements, len(elements))]] = True
        known = valid_mask(arrays, len(arrays)) & valid_mask(values, len(values)) & (found | ~unknown)
        return pa.array(found, mask=~known)

    return on_arrays(run)


def named_struct(signature: CallSignature) -> Kernel:
    """A struct of the given values; never NULL itself."""
    kind = signature.result

    def run(*parts: pa.Array) -> pa.Array:
        fields = [retyped(part, field.type) for part, field in zip(parts[1::2], kind, strict=True)]
        return pa.Array.from_buffers(kind, len(parts[0]), [None], children=fields)

    return on_arrays(run)


def array(signature: CallSignature) -> Kernel:
    """An array of the given values; never NULL itself."""
    kind = signature.result
    if not signature.types:
        return lambda: pa.scalar([], kind)

    def run(*parts: pa.Array) -> pa.Array:
        count, rows = len(parts), len(parts[0])
        require_joinable(parts, signature)
        offsets = np.arange(rows + 1, dtype=np.int32) * count
        return list_from(offsets, _interleaved([retyped(part, kind.value_type) for part in parts]), kind)

    return on_arrays(run)


def _interleaved(parts: list[pa.Array]) -> pa.Array:
    """The first row of every part, then the second, and so on."""
    rows = len(parts[0])
    order = np.arange(rows * len(parts)).reshape(len(parts), rows).T.ravel()
    return pa.concat_arrays(parts).take(pa.array(order))


def map_of(signature: CallSignature) -> Kernel | None:
    """``map(key, value, ...)``; an error for a NULL key or two that are equal."""
    kind, position = signature.result, signature.position
    keys_equal = comparer("equal", kind.key_type, kind.key_type)
    if keys_equal is None:
        return None

    def run(*parts: pa.Array) -> pa.Array:
        keys = [retyped(part, kind.key_type) for part in parts[::2]]
        items = [retyped(part, kind.item_type) for part in parts[1::2]]
        if any(key.null_count for key in keys):
            raise failure("NULL_MAP_KEY", "A map's key cannot be NULL.", position)
        for index, key in enumerate(keys):
            for earlier in keys[:index]:
                if true_mask(keys_equal(earlier, key), len(key)).any():
                    raise failure("DUPLICATED_MAP_KEY", "A map has the same key twice.", position)
        offsets = np.arange(len(keys[0]) + 1, dtype=np.int32) * len(keys)
        return map_from(offsets, _interleaved(keys), _interleaved(items), kind)

    return on_arrays(run)


def map_part(signature: CallSignature) -> Kernel | None:
    """``map_keys`` and ``map_values``, in the map's order."""
    if not pa.types.is_map(signature.types[0]):
        return None
    kind, keys = signature.result, signature.function == "map_keys"

    def run(maps: pa.Array) -> pa.Array:
        entries = entries_of(maps)
        values = retyped(entries.keys if keys else entries.items, kind.value_type)
        return list_from(entries.offsets, values, kind, maps)

    return on_arrays(run)


def concat(signature: CallSignature) -> Kernel:
    """Arrays laid end to end; NULL if one is."""

    def run(*arrays: list[Any]) -> list[Any]:
        return [value for part in arrays for value in part]

    return growing(run, signature, size=list_bytes)


def reverse(signature: CallSignature) -> Kernel:
    """The elements in reverse order."""
    return one_by_one(lambda values: values[::-1], signature.result)


def extreme(signature: CallSignature) -> Kernel | None:
    """``array_min`` and ``array_max`` of what is not NULL; NULL if there is none."""
    kind = signature.types[0]
    key = nested_order.sort_key(kind.value_type) if pa.types.is_list(kind) else None
    if key is None:
        return None
    pick = min if signature.function == "array_min" else max

    def run(values: list[Any]) -> Any:
        return pick((value for value in values if value is not None), key=key, default=None)

    return one_by_one(run, signature.result)


def sort_array(signature: CallSignature) -> Kernel | None:
    """Ascending with NULLs first, or descending with NULLs last."""
    kind, ascending = signature.types[0], signature.constants[1]
    key = nested_order.sort_key(kind.value_type) if pa.types.is_list(kind) else None
    if key is None or ascending is None or not ascending.is_valid or pa.types.is_floating(kind.value_type):
        return None
    upwards = ascending.as_py()

    def run(values: list[Any]) -> list[Any]:
        known = sorted((value for value in values if value is not None), key=key, reverse=not upwards)
        nothing = [None] * (len(values) - len(known))
        return nothing + known if upwards else known + nothing

    alone = one_by_one(run, signature.result)
    return lambda arrays, _: alone(arrays)


def flatten(signature: CallSignature) -> Kernel | None:
    """An array of arrays as one; NULL if one of them is."""
    kind = signature.types[0]
    if not (pa.types.is_list(kind) and pa.types.is_list(kind.value_type)):
        return None
    return one_by_one(
        lambda parts: None if None in parts else [value for part in parts for value in part], signature.result
    )


def array_join(signature: CallSignature) -> Kernel | None:
    """``array_join(array, delimiter[, for NULLs])``: NULLs are left out unless there is a text for them."""

    def run(values: list[str | None], delimiter: str, nothing: str | None = None) -> str:
        if nothing is not None:
            require_result(most_bytes(nothing) * len(values), signature.function, signature.position)
        filled = [nothing if value is None else value for value in values]
        return joined(delimiter, [value for value in filled if value is not None], signature)

    kind = signature.types[0]
    return growing(run, signature) if pa.types.is_list(kind) and kind.value_type == pa.string() else None


FUNCTIONS: dict[str, Builder] = {
    "get_struct_field": get_struct_field,
    "get_array_struct_field": get_array_struct_field,
    **dict.fromkeys(("get_array_item", "try_get_array_item"), get_array_item),
    **dict.fromkeys(("element_at", "try_element_at"), element_at),
    "get_map_value": get_map_value,
    "size": size,
    "array_size": size,
    "array_contains": array_contains,
    "named_struct": named_struct,
    "array": array,
    "map": map_of,
    "map_keys": map_part,
    "map_values": map_part,
    "array_min": extreme,
    "array_max": extreme,
    "sort_array": sort_array,
    "flatten": flatten,
    "array_join": array_join,
}
