"""State with a layer on top for what the running tick has brought so far.

An operator that is stepped several times within one tick reads what its earlier steps brought, while the state itself
stays as it was until the tick is kept. Layers are read as one: state is a set of immutable runs that add up.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from weirflow.ivm.kernel.additive import AdditiveArrangement
from weirflow.ivm.kernel.arrangement import Arrangement
from weirflow.ivm.zset.batch import Batch

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.ivm.kernel.state import ProbeResult
    from weirflow.ivm.zset.batch import Int64s, UInt64s
    from weirflow.ivm.zset.layout import Layout

# As for any state: enough to keep the number of the layer's runs logarithmic.
_FUEL_PER_ROW = 12
_LEAST_FUEL = 8192


class LayeredArrangement(Arrangement):
    """Weighted rows by key. Inserted rows are found at once, and stored by ``keep`` or dropped by ``forget``.

    ``runs``, ``rows`` and all else that is about storage leave the layer out.
    """

    def __init__(self, types: Iterable[pa.DataType], key_count: int) -> None:
        super().__init__(types, key_count)
        self.forget()

    def insert(self, batch: Batch) -> None:
        """Add the rows' weights to those of the layer."""
        self._layer.insert(batch)
        self._layer.maintain(max(_LEAST_FUEL, _FUEL_PER_ROW * len(batch)))
        self._inserted.append(batch)
        self._both = Arrangement(self.types, self.key_count, runs=(*self.runs, *self._layer.runs))

    def probe(
        self,
        keys: Sequence[pa.Array],
        *,
        consolidated: bool = False,
        count: int | None = None,
        most: int | None = None,
        columns: Sequence[int] | None = None,
        layout: Layout | None = None,
    ) -> ProbeResult:
        """See ``Arrangement``; rows of the layer are found too."""
        held = self._both.probe if self._inserted else super().probe
        return held(keys, consolidated=consolidated, count=count, most=most, columns=columns, layout=layout)

    def probe_stored(self, keys: Sequence[pa.Array]) -> ProbeResult:
        """The rows that were there before the tick, each once."""
        return super().probe(keys, consolidated=True)

    def keep(self) -> None:
        """Store the layer. Does not fail: the layer has taken the rows already."""
        if self._inserted:
            super().insert(Batch.concat(self._inserted))
            self.forget()

    def forget(self) -> None:
        """Drop the layer."""
        self._layer = Arrangement(self.types, self.key_count)
        self._both = self._layer
        self._inserted: list[Batch] = []


class LayeredSums(AdditiveArrangement):
    """Accumulators by key. Added values count at once, and are stored by ``keep`` or dropped by ``forget``."""

    def __init__(self, key_types: Iterable[pa.DataType], width: int) -> None:
        super().__init__(key_types, width)
        self.forget()

    def add(self, keys: Sequence[pa.Array], values: Int64s, codes: UInt64s | None = None) -> None:
        """Add each row of ``values`` to the layer's accumulators of its key."""
        self._layer.add(keys, values, codes)
        self._layer.maintain(max(_LEAST_FUEL, _FUEL_PER_ROW * len(values)))
        self._added.append((keys, values))

    def lookup(self, keys: Sequence[pa.Array], codes: UInt64s | None = None, layout: Layout | None = None) -> Int64s:
        """See ``AdditiveArrangement``; what the layer holds is added."""
        stored = super().lookup(keys, codes, layout)
        return stored + self._layer.lookup(keys, codes, layout) if self._added else stored

    def keep(self) -> None:
        """Store the layer. Does not fail: the layer has taken the values already."""
        for keys, values in self._added:
            super().add(keys, values)
        self.forget()

    def forget(self) -> None:
        """Drop the layer."""
        self._layer = AdditiveArrangement(self.key_types, self.width)
        self._added: list[tuple[Sequence[pa.Array], Int64s]] = []
