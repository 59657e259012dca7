"""What belongs to no key (the catalogue, broadcast state, the watermark), brought together from several instances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from weirflow.state.catalogue import decode_slot
from weirflow.state.encoding.layout import BROADCAST, CATALOGUE, END, NOBODY

if TYPE_CHECKING:
    from weirflow.state.backends.contract import StateReader

Shared = dict[str, dict[bytes, bytes]]
"""For each operator, and for nobody, the entries that belong to no key."""


def read_shared(state: StateReader) -> Shared:
    """What belongs to no key in a backend or snapshot."""
    return {operator: dict(state.scan(operator, BROADCAST, END)) for operator in [NOBODY, *state.operators()]}


def merge_shared(instances: Sequence[Shared]) -> Shared:
    """What one instance has that takes the place of several.

    The catalogue knows the latest version of each slot; broadcast state is the first one's, for it is the same in all;
    the watermark is the earliest, for no instance may be ahead of its events.
    """
    merged: Shared = {}
    for shared in instances:
        for operator, entries in shared.items():
            known = merged.get(operator)
            if known is None:
                merged[operator] = dict(entries)
                continue
            for key, data in entries.items():
                if key >= CATALOGUE:
                    known[key] = _one(operator, known.get(key, data), data)
    watermarks = [shared.get(NOBODY, {}) for shared in instances]
    if not all(watermarks):
        merged.pop(NOBODY, None)
    return merged


def _one(operator: str, one: bytes, other: bytes) -> bytes:
    if operator == NOBODY:
        return min(one, other, key=lambda data: int.from_bytes(data, "little"))
    return max(one, other, key=lambda data: decode_slot(data, operator).version)
