"""What a seeded world of TPC-DS is drawn with."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")


class Dice:
    """Draws single values as Python objects, all determined by the seed."""

    def __init__(self, seed: int) -> None:
        self._generator = np.random.default_rng(seed)

    def between(self, low: int, high: int) -> int:
        """Both ends included."""
        return int(self._generator.integers(low, high, endpoint=True))

    def one(self, values: Sequence[T]) -> T:
        return values[int(self._generator.integers(len(values)))]

    def early(self, values: Sequence[T]) -> T:
        """The earlier in the sequence, the more often."""
        return values[int(len(values) * float(self._generator.random()) ** 2)]

    def some(self, values: Sequence[T], count: int) -> list[T]:
        """Without putting back."""
        return [values[int(place)] for place in self._generator.choice(len(values), count, replace=False)]

    def chance(self, share: float) -> bool:
        return float(self._generator.random()) < share

    def maybe(self, value: T, share: float = 0.03) -> T | None:
        """NULL now and then."""
        return None if self.chance(share) else value


def money(cents: int) -> Decimal:
    return Decimal(cents).scaleb(-2)
