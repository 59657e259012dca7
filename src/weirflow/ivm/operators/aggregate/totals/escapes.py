"""The side table of a group's escaped doubles: what the limbs of its sums cannot hold."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from weirflow.ivm.kernel.arrangement import Arrangement
from weirflow.ivm.zset.batch import Batch, take_columns

if TYPE_CHECKING:
    from weirflow.ivm.operators.aggregate.totals.doubles import Escapes

    Slots = dict[int, int]
    """Slot to amount."""


class Keyed(Protocol):
    """Groups of rows of a delta, as far as it matters here."""

    @property
    def keys(self) -> Sequence[pa.Array]:
        """One row for each group."""

    @property
    def count(self) -> int:
        """How many there are."""

    @property
    def numbers(self) -> np.ndarray:
        """For each row of the delta, the number of its group."""


class EscapeTable:
    """Rows of (group key, call, slot) whose weight is the amount; almost always empty."""

    def __init__(self, key_types: Sequence[pa.DataType]) -> None:
        self.state = Arrangement((*key_types, pa.int32(), pa.int32()), len(key_types))
        self._tick: list[tuple[np.ndarray, int, np.ndarray, np.ndarray]] = []

    def stage(self, groups: Keyed, call: int, escapes: Escapes, stage: Callable[[Callable[[], None]], None]) -> None:
        """Note what a call's rows add in this tick."""
        group = groups.numbers[escapes.rows]
        columns = (
            *take_columns(groups.keys, group),
            pa.array(np.full(len(group), call, np.int32)),
            pa.array(escapes.slots.astype(np.int32)),
        )
        batch = Batch(columns, escapes.amounts)
        self._tick.append((group, call, escapes.slots, escapes.amounts))
        stage(lambda: self.state.insert(batch))

    def forget(self) -> None:
        """Drop what was noted in a tick that came to nothing."""
        self._tick = []

    def read(
        self, groups: Keyed, before: np.ndarray, after: np.ndarray
    ) -> dict[int, dict[int, list[tuple[int, int]]]] | None:
        """What has escaped, by call and by position in ``before`` (old state), then ``after`` (with this tick)."""
        tick, self._tick = self._tick, []
        if not tick and self.state.row_count == 0:
            return None
        old = self._stored(groups)
        new = {place: dict(slots) for place, slots in old.items()}
        for group, call, slots, amounts in tick:
            for number, slot, amount in zip(group.tolist(), slots.tolist(), amounts.tolist(), strict=True):
                own = new.setdefault((number, call), {})
                own[slot] = own.get(slot, 0) + amount
        found: dict[int, dict[int, list[tuple[int, int]]]] = defaultdict(dict)
        for offset, members, known in ((0, before, old), (len(before), after, new)):
            position = {group: offset + index for index, group in enumerate(members.tolist())}
            for (number, call), stored in known.items():
                present = [(slot, amount) for slot, amount in stored.items() if amount]
                if present and number in position:
                    found[call][position[number]] = present
        return found

    def _stored(self, groups: Keyed) -> dict[tuple[int, int], Slots]:
        matches = self.state.probe(groups.keys, consolidated=True, count=groups.count)
        call, slot = matches.batch.columns[-2:]
        stored: dict[tuple[int, int], Slots] = defaultdict(dict)
        amounts = matches.batch.weights.tolist()
        rows = zip(matches.probe_index.tolist(), call.to_pylist(), slot.to_pylist(), amounts, strict=True)
        for group, number, place, amount in rows:
            stored[group, number][place] = amount
        return stored
