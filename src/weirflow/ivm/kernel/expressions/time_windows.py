"""Windows of time: the stretches of equal length, each begun a slide after the last, that hold a moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from weirflow.ivm.kernel.bounds import require_memory
from weirflow.ivm.kernel.expressions.failures import overflow
from weirflow.ivm.kernel.expressions.rows import numbers, on_arrays, to_mask

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weirflow.errors import SqlPosition
    from weirflow.ivm.kernel.expressions.signature import Builder, CallSignature, Kernel

_LONG = np.iinfo(np.int64)


@dataclass(frozen=True)
class TimeWindows:
    """Windows of ``size`` microseconds, one every ``slide``, of which one begins ``start`` after 1970-01-01.

    Attributes:
        kind: struct<start,end> of the type of the moments.
        position: of the call in the SQL text, for errors.
    """

    size: int
    slide: int
    start: int
    kind: pa.DataType
    position: SqlPosition | None

    @classmethod
    def of_constants(
        cls, constants: Sequence[pa.Scalar | None], kind: pa.DataType, position: SqlPosition | None
    ) -> TimeWindows | None:
        """The windows of a call with these lengths; None if one of them is not a constant."""
        lengths = [constant.as_py() for constant in constants if constant is not None and constant.is_valid]
        if len(lengths) < len(constants):
            return None
        size, slide, start = lengths
        return cls(size, slide, start, kind, position)

    @property
    def overlap(self) -> int:
        """How many windows hold a moment at most."""
        return -(-self.size // self.slide)

    def last(self, times: pa.Array) -> pa.Array:
        """The window of each moment that begins last; NULL for no moment."""
        return self._windows(self._last_starts(times), ~_present(times))

    def all(self, times: pa.Array) -> tuple[NDArray[np.int64], pa.Array]:
        """Every window that holds a moment, and the index of that moment; ordered by it, none for NULL."""
        require_memory(4 * 8 * len(times) * self.overlap, f"Windows of which {self.overlap:,} hold each moment")
        starts = self._last_starts(times)[:, None] - np.arange(self.overlap) * self.slide
        holds = (numbers(times)[:, None] < starts + self.size) & _present(times)[:, None]
        return np.nonzero(holds)[0], self._windows(starts[holds], None)

    def _last_starts(self, times: pa.Array) -> NDArray[np.int64]:
        """Where the last windows begin; an error where Spark's 64-bit arithmetic leaves its range."""
        moments = np.where(_present(times), numbers(times), 0)
        margin = abs(self.start) + self.size + self.slide
        if not len(moments) or (moments.max() <= _LONG.max - margin and moments.min() >= _LONG.min + margin):
            near: NDArray[np.int64] = moments - (moments - self.start) % self.slide
            return near
        wide = moments.astype(object)
        shifted = wide - self.start
        starts = wide - shifted % self.slide
        edges = np.concatenate([shifted, starts - (self.overlap - 1) * self.slide, starts + self.size])
        if max(edges) > _LONG.max or min(edges) < _LONG.min:
            raise overflow("long", self.position)
        far: NDArray[np.int64] = starts.astype(np.int64)
        return far

    def _windows(self, starts: NDArray[np.int64], absent: NDArray[np.bool_] | None) -> pa.Array:
        moment = self.kind.field(0).type
        bounds = [pa.array(edge, pa.int64()).view(moment) for edge in (starts, starts + self.size)]
        mask = None if absent is None else pa.array(absent)
        return pa.StructArray.from_arrays(bounds, fields=list(self.kind), mask=mask)


def _present(times: pa.Array) -> NDArray[np.bool_]:
    return to_mask(times.is_valid())


def tumble(signature: CallSignature) -> Kernel | None:
    """``window(time, size)`` for windows that do not overlap."""
    windows = TimeWindows.of_constants(signature.constants[1:], signature.result, signature.position)
    if windows is None or not pa.types.is_timestamp(signature.types[0]):
        return None
    last = on_arrays(windows.last)
    return lambda times, *_: last(times)


FUNCTIONS: dict[str, Builder] = {"tumble": tumble}
