"""What a cast is told, and how it ends: with its values, with NULLs (TRY_CAST) or with an error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from weirflow.ivm.kernel.deadline import checked
from weirflow.ivm.kernel.expressions.calendar import text_of_micros
from weirflow.ivm.kernel.expressions.failures import cast_invalid, cast_overflow
from weirflow.ivm.kernel.expressions.rows import first_row, numbers

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from weirflow.errors import DataError, SqlPosition
    from weirflow.ivm.kernel.expressions.signature import Kernel

    CastBuilder = Callable[["Cast"], Kernel | None]


@dataclass(frozen=True)
class Cast:
    """A cast between two types; ``tolerant`` is TRY_CAST, which has NULL where CAST fails."""

    source: pa.DataType
    target: pa.DataType
    position: SqlPosition | None = None
    tolerant: bool = False

    def settled(
        self,
        values: pa.Array,
        failed: NDArray[np.bool_],
        array: pa.Array,
        error: Callable[[Any], DataError] | None = None,
    ) -> pa.Array:
        """The values, if none failed where ``array``, the source, is not NULL; else NULL there, or the error.

        The error is for a source value; by default, that it overflows.
        """
        row = first_row(failed, array)
        if row is None:
            return values
        if self.tolerant:
            return pc.if_else(pa.array(~failed), values, None)
        value = _shown(array, row)
        raise error(value) if error else cast_overflow(value, self.source, self.target, self.position)

    def parsed(self, texts: Sequence[Any], parse: Callable[[str], Any]) -> list[Any]:
        """Each text parsed, one by one; ``parse`` raises ``ValueError`` for what is malformed."""
        results: list[Any] = []
        for text in checked(texts):
            if text is None:
                results.append(None)
                continue
            try:
                results.append(parse(text))
            except ValueError:
                if not self.tolerant:
                    raise cast_invalid(text, self.source, self.target, self.position) from None
                results.append(None)
        return results

    def to(self, values: Sequence[Any]) -> pa.Array:
        """Python values as an array of the target type."""
        return pa.array(values, self.target)


def _shown(array: pa.Array, row: int) -> Any:
    """A value for a message; Python has no dates as far away as Arrow's."""
    if pa.types.is_timestamp(array.type):
        return text_of_micros(numbers(array)[row : row + 1])[0]
    return array[row].as_py()
