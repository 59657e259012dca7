"""What changed in a table from version to version, as each kind of table tells it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from weirflow.errors import StreamConflict

OP = "_change_type"
TOGETHER = 100
"""How many versions are read at a time."""


@dataclass(frozen=True)
class ChangeSize:
    """How much changed between two versions of a table, as its own records say.

    Attributes:
        changed: rows that came or went; those that were updated did both.
        compared: rows of files that were written anew, which have to be compared to find those that changed.
        uncounted: of these, the ones of which nobody has written down how many changed.
    """

    changed: int = 0
    compared: int = 0
    uncounted: int = 0

    def __add__(self, other: ChangeSize) -> ChangeSize:
        return ChangeSize(
            self.changed + other.changed, self.compared + other.compared, self.uncounted + other.uncounted
        )


class TableChanges(Protocol):
    """The versions of a table, as text."""

    def origin(self) -> str:
        """Tells the current table from others that had its name before; all else is as it is when this is asked for."""

    @property
    def seen(self) -> str:
        """What ``origin`` said last."""

    def latest(self) -> str | None:
        """The current version; None if the table never had rows."""

    def snapshot(self, version: str, selected: str = "*") -> Any:
        """A native frame of all rows of a version: its columns, or what SQL selects of them."""

    def versions(self, after: str, upto: str) -> list[str]:
        """Those after one version up to another, in order, or the first of them if they are many.

        Raises:
            StreamConflict: ``after`` is not a version that leads to ``upto``.
        """

    def read(self, after: str, upto: str) -> Any:
        """A native frame of the changes of the versions after one up to another, to which it leads.

        Each row has its kind in the column ``OP``, and its version in the column ``version``.
        """

    def require_recorded(self) -> None:
        """``ConfigError`` if the table does not record its changes."""

    def difference(self, names: Sequence[str], after: str, upto: str) -> Any:
        """A native frame of quoted columns with weights: what makes the rows of one version those of another.

        Both are kept; one need not lead to the other. It can be run until ``release``.
        """

    def release(self) -> None:
        """Let go of what frames of ``difference`` read."""

    def is_kept(self, version: str) -> bool:
        """Whether the rows of a version can still be read."""

    def rows(self, version: str) -> int | None:
        """How many rows a version has, as the table's own records say; None if they do not."""

    def size(self, after: str, upto: str) -> ChangeSize | None:
        """How much changed in between, as the table's own records say; None if they do not."""

    @property
    def version(self) -> str:
        """The column with the version of a change."""


def gone_back(table: str, version: str) -> StreamConflict:
    """What to say of a version that does not lead to the current one."""
    return StreamConflict(
        f"The table {table} no longer has version {version}, which is where the flow is.",
        hint="drop the source and attach the table under another name=, to begin with a snapshot",
    )
