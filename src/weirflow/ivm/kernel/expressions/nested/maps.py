"""Maps made of arrays, entries, texts and other maps."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weirflow.errors import DataError
from weirflow.ivm.kernel.expressions.comparison import comparer
from weirflow.ivm.kernel.expressions.failures import failure
from weirflow.ivm.kernel.expressions.nested.lists import entries_of, lengths, list_from
from weirflow.ivm.kernel.expressions.nested.selection import codes_of, known, owners_of
from weirflow.ivm.kernel.expressions.retype import retyped
from weirflow.ivm.kernel.expressions.rows import nulls_of, on_arrays, true_mask, valid_mask
from weirflow.ivm.kernel.expressions.strings.texts import constants, first_only, growing, list_bytes
from weirflow.ivm.zset.hashing import Equality, has_floats
from weirflow.sql.types import is_orderable

if TYPE_CHECKING:
    from weirflow.errors import SqlPosition
    from weirflow.ivm.kernel.expressions.nested.selection import Places
    from weirflow.ivm.kernel.expressions.signature import Builder, CallSignature, Kernel

_PLAIN_DELIMITER = re.compile(r"[^\\\[\](){}.*+?^$|]+")


def map_from_arrays(signature: CallSignature) -> Kernel | None:
    """``map_from_arrays(keys, values)``, which must be equally long."""
    kind, position = signature.result, signature.position
    if not all(pa.types.is_list(one) for one in signature.types) or not is_orderable(kind.key_type):
        return None

    def run(keys: pa.Array, items: pa.Array) -> pa.Array:
        valid, sizes = known(keys, items), [lengths(one) for one in (keys, items)]
        if ((sizes[0] != sizes[1]) & valid).any():
            raise DataError(
                "The key array and value array of a map must have the same length.",
                position=position,
                condition="_LEGACY_ERROR_TEMP_2128",
            )
        parts = [one.flatten().filter(pa.array(valid[owners_of(one)])) for one in (keys, items)]
        owners = owners_of(keys)
        require_keys(parts[0], owners[valid[owners]], position)
        return maps_of(np.where(valid, sizes[0], 0), parts[0], parts[1], kind, keys, items)

    return on_arrays(run)


def map_from_entries(signature: CallSignature) -> Kernel | None:
    """``map_from_entries(array of structs)``: NULL if one of them is."""
    source, kind, position = signature.types[0], signature.result, signature.position
    if not (pa.types.is_list(source) and pa.types.is_struct(source.value_type)) or not is_plain_key(kind.key_type):
        return None

    def run(arrays: pa.Array) -> pa.Array:
        structs, owners = arrays.flatten(), owners_of(arrays)
        valid = valid_mask(arrays, len(arrays)).copy()
        valid[owners[~valid_mask(structs, len(structs))]] = False
        wanted = valid[owners]
        structs, owners = structs.filter(pa.array(wanted)), owners[wanted]
        keys, items = (pc.struct_field(structs, [at]) for at in (0, 1))
        require_keys(keys, owners, position)
        return maps_of(np.where(valid, lengths(arrays), 0), keys, items, kind, pa.array(valid, mask=~valid))

    return on_arrays(run)


def map_concat(signature: CallSignature) -> Kernel | None:
    """The entries of several maps, which have no key in common; NULL if one of them is."""
    kind, position = signature.result, signature.position
    if not signature.types:
        return lambda: pa.scalar([], kind)
    if not is_plain_key(kind.key_type):
        return None

    def run(*maps: pa.Array) -> pa.Array:
        valid, parts = known(*maps), [entries_of(one) for one in maps]
        owners = np.concatenate([np.repeat(np.arange(len(valid)), np.diff(one.offsets)) for one in parts])
        keys = pa.concat_arrays([retyped(one.keys, kind.key_type) for one in parts])
        items = pa.concat_arrays([retyped(one.items, kind.item_type) for one in parts])
        places = np.flatnonzero(valid[owners])
        places = places[np.argsort(owners[places], kind="stable")]
        owners, chosen = owners[places], pa.array(places)
        keys, items = keys.take(chosen), items.take(chosen)
        require_keys(keys, owners, position)
        return maps_of(np.bincount(owners, minlength=len(valid)), keys, items, kind, *maps)

    return on_arrays(run)


def map_entries(signature: CallSignature) -> Kernel | None:
    """An array of structs, in the map's order."""
    kind = signature.result
    if not pa.types.is_map(signature.types[0]):
        return None

    def run(maps: pa.Array) -> pa.Array:
        entries = entries_of(maps)
        fields = [retyped(part, field.type) for part, field in zip(entries[1:], kind.value_type, strict=True)]
        structs = pa.Array.from_buffers(kind.value_type, len(fields[0]), [None], children=fields)
        return list_from(entries.offsets, structs, kind, maps)

    return on_arrays(run)


def map_contains_key(signature: CallSignature) -> Kernel | None:
    """Whether there is an entry of a key."""
    kind = signature.types[0]
    equal = comparer("equal", kind.key_type, signature.types[1]) if pa.types.is_map(kind) else None
    if equal is None:
        return None

    def run(maps: pa.Array, keys: pa.Array) -> pa.Array:
        entries = entries_of(maps)
        owners = np.repeat(np.arange(len(maps)), np.diff(entries.offsets))
        hits = true_mask(equal(entries.keys, keys.take(pa.array(owners))), len(owners))
        found = np.zeros(len(maps), np.bool_)
        found[owners[hits]] = True
        return pa.array(found, mask=~known(maps, keys))

    return on_arrays(run)


def str_to_map(signature: CallSignature) -> Kernel | None:
    """``str_to_map(text, between pairs, between key and value)``; a key without a value has NULL.

    Spark takes the delimiters for regular expressions; here they are plain texts.
    """
    delimiters = constants(signature, 1)
    if delimiters is None or not all(_PLAIN_DELIMITER.fullmatch(one) for one in delimiters):
        return None
    pair, key_end = delimiters

    def entries(text: str) -> list[tuple[str, str | None]]:
        found: dict[str, str | None] = {}
        for part in text.split(pair):
            key, is_there, value = part.partition(key_end)
            if key in found:
                raise duplicated(signature.position)
            found[key] = value if is_there else None
        return list(found.items())

    return first_only(growing(entries, signature, size=list_bytes))


def is_plain_key(kind: pa.DataType) -> bool:
    """Whether Spark puts keys into maps as they are: of floating point it makes -0.0 to 0.0."""
    return is_orderable(kind) and not has_floats(kind)


def require_keys(keys: pa.Array, owners: Places, position: SqlPosition | None) -> None:
    """Raise unless keys, each of an entry of its owner's, are neither NULL nor the same twice."""
    if keys.null_count:
        raise failure("NULL_MAP_KEY", "A map's key cannot be NULL.", position)
    codes, count = codes_of(keys, Equality.GROUPING)
    if len(np.unique(owners * count + codes)) < len(keys):
        raise duplicated(position)


def duplicated(position: SqlPosition | None) -> DataError:
    """A key that a map would have twice."""
    return failure("DUPLICATED_MAP_KEY", "A map has the same key twice.", position)


def maps_of(sizes: Places, keys: pa.Array, items: pa.Array, kind: pa.DataType, *nulls: pa.Array) -> pa.Array:
    """Maps of so many entries each; NULL where one of ``nulls`` is."""
    offsets = np.zeros(len(sizes) + 1, np.int32)
    np.cumsum(sizes, out=offsets[1:])
    parts = [retyped(keys, kind.key_type), retyped(items, kind.item_type)]
    entries = pa.StructArray.from_arrays(parts, fields=list(kind.field(0).type))
    return pa.Array.from_buffers(kind, len(sizes), [nulls_of(*nulls), pa.py_buffer(offsets)], children=[entries])


FUNCTIONS: dict[str, Builder] = {
    "map_from_arrays": map_from_arrays,
    "map_from_entries": map_from_entries,
    "map_concat": map_concat,
    "map_entries": map_entries,
    "map_contains_key": map_contains_key,
    "str_to_map": str_to_map,
}
