"""What changed in a table between two of its versions, all together, as rows with weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from weirflow.flows.feeds.weighted_rows import weighted
from weirflow.sql.quoting import quoted

if TYPE_CHECKING:
    from weirflow.flows.feeds.table_changes import TableChanges


def table_difference(changes: TableChanges, columns: Sequence[str], after: str | None, upto: str) -> Any:
    """A native frame of these columns with weights: what makes the rows of one version those of another.

    ``after`` is None for a table before its first version. The frame can be run until ``changes.release()``.
    """
    names = [quoted(name) for name in columns]
    if after is None:
        return weighted(changes.snapshot(upto), names, 1)
    return changes.difference(names, after, upto)
