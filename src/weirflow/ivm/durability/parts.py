"""``Parts``: a file for Arrow to write to that keeps what it is given, so that values are not copied."""

from __future__ import annotations

from typing import Any


class Parts:
    """What was written, piece by piece, as it was given; it must not change until the pieces are used."""

    closed = False

    def __init__(self) -> None:
        self.views: list[memoryview] = []

    @property
    def nbytes(self) -> int:
        """Bytes of all pieces."""
        return sum(view.nbytes for view in self.views)

    def write(self, data: Any) -> int:
        """Keep a piece."""
        view = memoryview(data).cast("B")
        self.views.append(view)
        return view.nbytes

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        """What was written stays."""
