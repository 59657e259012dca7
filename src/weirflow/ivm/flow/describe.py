"""What a flow is, for people: where it runs and what it holds."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weirflow.ivm.compiler.reads import in_order, reads
from weirflow.sql.clock.relation import CLOCK
from weirflow.sql.snapshots import is_snapshot

if TYPE_CHECKING:
    from weirflow.ivm.compiler.view import View
    from weirflow.sql.settings import SqlSettings


@dataclass(frozen=True)
class RelationInfo:
    """A source or view.

    Attributes:
        kind: ``source``, ``incremental``, ``diff``, ``waiting`` for a view whose inputs are not all there, or
            ``snapshot`` for what views read of a table of the Session.
        rows: how many rows it holds; None where they are not kept.
        reads: the sources and views that a view reads.
        settings: those that a view's SQL is read with; None for a source, and where nobody wrote them down.
    """

    name: str
    kind: str
    rows: int | None
    reads: tuple[str, ...] = ()
    settings: SqlSettings | None = None


def relation_infos(
    sources: Collection[str],
    views: Mapping[str, View],
    kind: Callable[[str], str],
    rows: Callable[[str], int | None],
) -> tuple[RelationInfo, ...]:
    """All sources and views, those that are read before those that read them.

    Args:
        sources: their names.
        views: all of them.
        kind: of a source or view.
        rows: how many rows one holds; None where they are not kept.
    """
    known = {name.casefold(): name for name in (*sources, *views)}
    found = [
        RelationInfo(name, "snapshot" if is_snapshot(name) else kind(name), rows(name))
        for name in sources
        if name != CLOCK
    ]
    for name in in_order(views):
        read = sorted(known[one] for one in reads(views[name]) if one in known and known[one] != name)
        found.append(RelationInfo(name, kind(name), rows(name), tuple(read), views[name].settings))
    return tuple(found)


@dataclass(frozen=True)
class FlowInfo:
    """A flow at an epoch.

    Attributes:
        runs: where its circuit runs.
        kept: where it is kept.
        nbytes: of all its state.
        clock: what moves its clock, and the clock's reading, where views follow it.
    """

    name: str
    runs: str
    kept: str
    epoch: int
    nbytes: int
    relations: Sequence[RelationInfo]
    clock: str | None = None

    def __str__(self) -> str:
        lines = [
            f"{'flow':<10} {self.name}, epoch {self.epoch}",
            f"{'runs':<10} {self.runs}",
            f"{'kept':<10} {self.kept}",
            f"{'state':<10} {self.nbytes:,} bytes",
        ]
        if self.clock is not None:
            lines.append(f"{'clock':<10} {self.clock}")
        for one in self.relations:
            rows = "rows not kept" if one.rows is None else f"{one.rows:,} rows"
            reads = f", reads {', '.join(one.reads)}" if one.reads else ""
            lines.append(f"{one.kind:<12} {one.name}: {rows}{reads}")
        return "\n".join(lines)
