"""A vector store in memory: what others have to write to hold a view, and nothing more."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from weirflow.errors import SinkConflict

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.vector import VectorChanges, VectorLayout


@dataclass
class MemoryVectors:
    """Does not say that it is a ``VectorStore``: it has its methods."""

    dimension: int = 2
    rows: dict[tuple[Any, ...], dict[str, Any]] = field(default_factory=dict)
    epoch: int | None = None
    owner: str = ""
    closed: int = 0
    layout: Any = None
    written_by: str = ""

    def describe(self) -> str:
        return "vectors in memory"

    def open(self, owner: str, layout: VectorLayout) -> None:
        self.owner, self.layout = owner, layout

    def position(self) -> int | None:
        if self.epoch is not None and self.written_by != self.owner:
            raise SinkConflict("The vectors in memory are another's.")
        return self.epoch

    def apply(self, after: int, upto: int, changes: VectorChanges) -> None:
        if self.epoch == upto:
            return
        assert self.epoch == after
        for key in changes.gone.to_pylist():
            del self.rows[tuple(key.values())]
        self._put(changes.new)
        self._put(changes.changed)
        self.epoch = upto

    def backfill(self, epoch: int, rows: pa.Table) -> None:
        self.rows.clear()
        self._put(rows)
        self.epoch, self.written_by = epoch, self.owner

    def close(self) -> None:
        self.closed += 1

    def _put(self, rows: pa.Table) -> None:
        for row in rows.to_pylist():
            self.rows[tuple(row[name] for name in self.layout.key)] = row
