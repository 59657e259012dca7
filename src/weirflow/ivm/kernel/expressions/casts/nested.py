"""Casts of arrays, maps and structs: their parts are cast, their shape stays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from weirflow.ivm.kernel.expressions.nested.lists import entries_of, list_from, list_offsets, map_from
from weirflow.ivm.kernel.expressions.rows import on_arrays, validity

if TYPE_CHECKING:
    from weirflow.ivm.kernel.expressions.casts.context import Cast
    from weirflow.ivm.kernel.expressions.signature import Kernel

    Find = Callable[[Cast], Kernel | None]


def kernel(cast: Cast, find: Find) -> Kernel | None:
    """The kernel of a cast between types of one shape; ``find`` gives those of the parts."""
    source, target = cast.source, cast.target
    if pa.types.is_map(source) and pa.types.is_map(target):
        return _map(cast, find)
    if pa.types.is_list(source) and pa.types.is_list(target):
        return _list(cast, find)
    if pa.types.is_struct(source) and pa.types.is_struct(target) and source.num_fields == target.num_fields:
        return _struct(cast, find)
    return None


def _list(cast: Cast, find: Find) -> Kernel | None:
    part = find(replace(cast, source=cast.source.value_type, target=cast.target.value_type))
    if part is None:
        return None

    def run(array: pa.Array) -> pa.Array:
        return list_from(list_offsets(array), part(array.flatten()), cast.target, array)

    return on_arrays(run)


def _struct(cast: Cast, find: Find) -> Kernel | None:
    parts = [
        find(replace(cast, source=one.type, target=other.type))
        for one, other in zip(cast.source, cast.target, strict=True)
    ]
    kernels = [part for part in parts if part is not None]
    if len(kernels) < len(parts):
        return None

    def run(array: pa.Array) -> pa.Array:
        fields = [part(field) for part, field in zip(kernels, array.flatten(), strict=True)]
        return pa.Array.from_buffers(cast.target, len(array), [validity(array)], children=fields)

    return on_arrays(run)


def _map(cast: Cast, find: Find) -> Kernel | None:
    keys = find(replace(cast, source=cast.source.key_type, target=cast.target.key_type))
    items = find(replace(cast, source=cast.source.item_type, target=cast.target.item_type))
    if keys is None or items is None or cast.source.key_type != cast.target.key_type:
        return None  # two keys may become equal

    def run(array: pa.Array) -> pa.Array:
        entries = entries_of(array)
        return map_from(entries.offsets, keys(entries.keys), items(entries.items), cast.target, array)

    return on_arrays(run)
