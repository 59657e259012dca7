"""``Target``: the table of a materialized view: what it holds, by its own account, and commits to it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weirflow.errors import Reason, SinkConflict
from weirflow.flows.sinks.table_commits import COMMITS, LOGS, TableCommit
from weirflow.flows.sinks.table_positions import POSITIONS
from weirflow.flows.sinks.whole_rows import merge_few_rows, merge_whole_rows
from weirflow.materialized.note import Note, decode_note, encode_note
from weirflow.materialized.reasons import FullReason, Obstacle
from weirflow.sql.quoting import quoted

if TYPE_CHECKING:
    from weirflow.ivm.zset.delta import DeltaBatch
    from weirflow.materialized.place import Place

_NOT_COMPARED = re.compile(r"\b(?:map<|variant\b(?!:)|geography|geometry)")


@dataclass(frozen=True)
class Holding:
    """What a target holds.

    Attributes:
        version: the newest of its versions; None if it has none.
        note: what the last refresh left that its rows stand on; None if there is none.
        obstacle: why its rows are not what the note says, or no note was found; None if they are.
    """

    version: str | None
    note: Note | None
    obstacle: Obstacle | None


class Target:
    """The table of one view, as a native session sees it. All calls run in an operation of the Session.

    Args:
        native: the session that commits.
        table: the table's whole name, quoted.
        kind: ``delta`` or ``iceberg``.
        view: the id of the view.
        place: where landmarks are.
    """

    def __init__(self, native: Any, table: str, kind: str, view: str, place: Place) -> None:
        self.native = native
        self.table = table
        self.kind = kind
        self._view = view
        self._place = place
        self._position = POSITIONS[kind](native, table, view)
        self._log: Any = None

    def holding(self) -> Holding:
        """What it holds now."""
        version: str | None = None
        self._log = LOGS[self.kind](self.native, self.table)
        for commit in COMMITS[self.kind](self._log):
            version = version or commit.version
            note = decode_note(commit.note, self._view) or self._place.landmark(commit)
            if note is not None:
                return Holding(version, note, _misplaced(note, commit, self.table))
            if commit.changes_rows:
                return Holding(version, None, _changed(commit, self.table))
        return Holding(version, None, Obstacle(FullReason.FIRST_REFRESH, f"{self.table} was never refreshed."))

    @property
    def origin(self) -> str:
        """Tells the table from others that had its name before, as ``holding`` has found it."""
        return str(self._log.origin)

    def next_epoch(self, last: Note | None) -> int:
        """The number of the next refresh: none before had it, undone ones included, as far as ``holding`` has seen."""
        return max(self._position.read(self._log) or 0, 0 if last is None else last.epoch) + 1

    def replace(self, rows: Any, note: Note) -> str:
        """Let the rows of a frame of the native session be all there is; returns the version."""

        def write() -> None:
            rows.write.insertInto(self.table, overwrite=True)

        return self._commit(note, write)

    def merge(self, changed: Any, note: Note) -> str:
        """Bring rows with weights in, those of a frame of the native session; returns the version."""
        columns = self.native.table(self.table).columns
        return self._commit(note, lambda: merge_whole_rows(self.native, self.table, columns, changed))

    def merge_few(self, changed: DeltaBatch, before: DeltaBatch | None, note: Note) -> tuple[str, DeltaBatch | None]:
        """The same with a change that is here.

        Args:
            changed: the rows that go and come.
            before: all rows of the version that the note is made for, if they are known.
            note: goes with the commit.

        Returns:
            The version, and all rows that it has, if they are known.

        Raises:
            RowsMissing: a row is to go that is not there; nothing was written.
        """
        newest = next(iter(COMMITS[self.kind](self._log)), None)  # _commit finds out whether it still is
        held = None if newest is None else newest.rows
        rows: list[DeltaBatch | None] = []
        version = self._commit(
            note, lambda: rows.append(merge_few_rows(self.native, self.table, changed, before, held))
        )
        return version, rows[-1] if rows else None

    def advance(self, note: Note) -> str:
        """Leave the rows, and note that they are those of other versions of the sources; returns the version."""
        record = self._position.record_alone

        def write() -> None:
            if record is not None:
                record(note.epoch, encode_note(note))
            else:
                self.native.table(self.table).limit(0).write.insertInto(self.table, overwrite=False)

        return self._commit(note, write)

    def require_columns(self, query: Any) -> None:
        """``SinkConflict`` unless the query has the columns of the table."""
        wanted = [(one.name, one.dataType.simpleString()) for one in query.schema]
        found = [(one.name, one.dataType.simpleString()) for one in self.native.table(self.table).schema]
        if wanted != found:
            raise SinkConflict(
                f"The query of {self.table} has the columns {_shown(wanted)} now; the table has {_shown(found)}.",
                hint="drop the materialized view and create it again",
            )

    def _commit(self, note: Note, write: Callable[[], None]) -> str:
        if not self.is_at(note.base):
            raise self.conflict()
        try:
            with self._position.recorded(note.epoch, encode_note(note)):
                write()
        except Exception as error:
            commits = self._commits()
            if _newest(commits) == note.base:
                raise  # for nothing was written
            return self._made(commits, note, error)
        return self._made(self._commits(), note)

    def _made(self, commits: Sequence[TableCommit], note: Note, error: Exception | None = None) -> str:
        """The version that a refresh has made: ``SinkConflict`` if none, or one whose rows are not all there is.

        Somebody may have come in between: then it stands on another version than it was made for, which the next
        refresh finds, too.
        """
        for commit in commits:
            found = decode_note(commit.note, self._view)
            if found is not None and found.attempt == note.attempt and commit.parent == note.base:
                return commit.version
            if found is not None or commit.changes_rows:
                break
        raise self.conflict() from error

    def _commits(self) -> list[TableCommit]:
        """The last ones now, newest first, as far as rows are those of the first of them."""
        found = []
        for commit in COMMITS[self.kind](LOGS[self.kind](self.native, self.table)):
            found.append(commit)
            if commit.changes_rows:
                break
        return found

    def is_at(self, version: str | None) -> bool:
        """Whether nobody has written to it since it was at this version."""
        return _newest(self._commits()) == version

    def conflict(self) -> SinkConflict:
        """What to say of a refresh that others have got in the way of."""
        return SinkConflict(
            f"Somebody else has written to {self.table}, or begun to refresh it, meanwhile.",
            hint="refresh it again",
        )


def unmatched(query: Any) -> Obstacle | None:
    """A column of a query by which rows cannot be found again, for its values cannot be compared; None if all can."""
    for column in query.schema:
        if _NOT_COMPARED.search(column.dataType.simpleString()):
            why = f"Values of the column {column.name}, {column.dataType.simpleString()}, cannot be compared."
            return Obstacle(Reason.TYPE_NOT_SUPPORTED, why, is_lasting=True)
    return None


def _newest(commits: Sequence[TableCommit]) -> str | None:
    return commits[0].version if commits else None


def _misplaced(note: Note, commit: TableCommit, table: str) -> Obstacle | None:
    if not commit.is_kept or commit.parent == note.base:
        return None
    why = f"Version {commit.version} of {table} was made for version {note.base}, but stands on {commit.parent}."
    return Obstacle(FullReason.TARGET_CHANGED, why)


def _changed(commit: TableCommit, table: str) -> Obstacle:
    if not commit.is_kept:
        return Obstacle(FullReason.TARGET_CHANGED, f"{table} stands on version {commit.version}, which is gone.")
    why = f"Somebody else has changed rows of {table}: {commit.operation} in version {commit.version}."
    return Obstacle(FullReason.TARGET_CHANGED, why)


def _shown(columns: list[tuple[str, str]]) -> str:
    return ", ".join(f"{quoted(name)} {kind}" for name, kind in columns)
