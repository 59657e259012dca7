"""Higher-order functions of maps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from weirflow.ivm.kernel.expressions.nested.lists import entries_of
from weirflow.ivm.kernel.expressions.nested.maps import is_plain_key, maps_of, require_keys
from weirflow.ivm.kernel.expressions.nested.selection import codes_of, known
from weirflow.ivm.kernel.expressions.retype import retyped
from weirflow.ivm.kernel.expressions.rows import broadcast, true_mask
from weirflow.ivm.zset.hashing import Equality

if TYPE_CHECKING:
    from weirflow.ivm.kernel.expressions.nested.elements import HigherOrderBuilder
    from weirflow.ivm.kernel.expressions.rows import Node, Rows, Value
    from weirflow.ivm.kernel.expressions.signature import CallSignature


def of_entries(signature: CallSignature, given: list[Any]) -> Node | None:
    """``map_filter``, ``transform_keys`` and ``transform_values``, by ``(key, value) -> ...``."""
    argument, function = given
    name, kind, position = signature.function, signature.result, signature.position
    if not is_plain_key(kind.key_type):
        return None

    def run(rows: Rows) -> Value:
        maps = broadcast(argument(rows), rows.length)
        entries = entries_of(maps)
        sizes = np.diff(entries.offsets)
        owners = np.repeat(np.arange(rows.length), sizes)
        keys, items = entries.keys, entries.items
        made = function(rows, owners, [keys, items])
        if name == "map_filter":
            kept = true_mask(made, len(owners))
            keys, items = (one.filter(pa.array(kept)) for one in (keys, items))
            sizes = np.bincount(owners[kept], minlength=rows.length)
        elif name == "transform_keys":
            require_keys(made, owners, position)
            keys = made
        else:
            items = made
        return maps_of(sizes, keys, items, kind, maps)

    return run


def map_zip_with(signature: CallSignature, given: list[Any]) -> Node | None:
    """``map_zip_with(m, n, (key, a, b) -> ...)``: the keys of both, those of the first one first."""
    left, right, function = given
    kind = signature.result
    if not is_plain_key(kind.key_type):
        return None

    def run(rows: Rows) -> Value:
        sides = [broadcast(node(rows), rows.length) for node in (left, right)]
        both = known(*sides)
        parts = [entries_of(one) for one in sides]
        owners = [np.repeat(np.arange(rows.length), np.diff(one.offsets)) for one in parts]
        keys = pa.concat_arrays([retyped(one.keys, kind.key_type) for one in parts])
        owner = np.concatenate(owners)
        codes, count = codes_of(keys, Equality.GROUPING)
        wanted = owner * count + codes
        first = np.sort(np.unique(wanted, return_index=True)[1])
        first = first[both[owner[first]]]
        first = first[np.argsort(owner[first], kind="stable")]
        split, values = len(owners[0]), []
        for part, some in zip(parts, (wanted[:split], wanted[split:]), strict=True):
            order = np.argsort(some, kind="stable")
            at = np.searchsorted(some[order], wanted[first])
            there = np.zeros(len(first), np.bool_)
            inside = at < len(some)
            there[inside] = some[order][at[inside]] == wanted[first][inside]
            places = np.where(there, order[np.where(inside, at, 0)] if len(some) else 0, 0)
            values.append(part.items.take(pa.array(places, mask=~there)))
        chosen = keys.take(pa.array(first))
        made = function(rows, owner[first], [chosen, *values])
        return maps_of(np.bincount(owner[first], minlength=rows.length), chosen, made, kind, *sides)

    return run


HIGHER_ORDER: dict[str, HigherOrderBuilder] = {
    **dict.fromkeys(("map_filter", "transform_keys", "transform_values"), of_entries),
    "map_zip_with": map_zip_with,
}
