"""``View``: what a view computes and how it is maintained, as users declare it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from weirflow.errors import ConfigError
from weirflow.sql.settings import USUAL, SqlSettings

if TYPE_CHECKING:
    import pyarrow as pa


class Mode(StrEnum):
    """How a view is maintained."""

    AUTO = "auto"
    """By deltas where that is possible, else as DIFF."""
    INCREMENTAL = "incremental"
    """By deltas: a change costs what the change weighs."""
    DIFF = "diff"
    """Recomputed by Spark and compared with what it was before."""


FRAME = "-- a frame\n"
"""How the text of a view begins that was made of a frame and not of SQL."""


class RecomputeEngine(Protocol):
    """Runs whole queries for views that have no delta rule."""

    def schema(self, sql: str, tables: Mapping[str, pa.Schema]) -> pa.Schema:
        """The columns of the query's result; runs nothing."""

    def run(self, sql: str, tables: Mapping[str, pa.Table]) -> pa.Table:
        """The query's result over these tables."""


@dataclass(frozen=True)
class View:
    """What a view computes and how.

    Attributes:
        sql: one query over sources and other views.
        mode: how it is maintained.
        stored: whether its rows are kept, to be read at any time.
        forced: recomputed whatever its mode says; no part of how it was declared.
        plan: what the SQL means, from ``encode_plan`` or ``encode_refusal``; None for what the binder reads in it.
        settings: what the text leaves open, as it was when the view was registered; None if nobody wrote it down.
    """

    sql: str
    mode: Mode = Mode.AUTO
    stored: bool = True
    forced: bool = field(default=False, compare=False)
    plan: str | None = None
    settings: SqlSettings | None = None

    @property
    def read_with(self) -> SqlSettings:
        """The settings that the binder reads it with."""
        return USUAL if self.settings is None else self.settings

    @property
    def is_frame(self) -> bool:
        """Whether it was made of a frame: then its plan is all there is, and its text only shows it."""
        return self.sql.startswith(FRAME)

    @property
    def query(self) -> str:
        """What is run when it is recomputed: its SQL, in which snapshots take the place of a Session's tables."""
        if self.plan is None:
            return self.sql
        from weirflow.sql.stored import outline  # noqa: PLC0415 - who declares views needs no plans

        return outline(self.plan).query or self.sql

    def is_declared_as(self, other: View) -> bool:
        """Whether users declare the two alike, whatever was read in their SQL, and with which settings."""
        return replace(self, plan=other.plan, settings=other.settings) == other


def frame_recomputed() -> ConfigError:
    """The error for a view that would have to be recomputed and has no text that could be run."""
    return ConfigError(
        "A view made from a frame can only be maintained by deltas, not recomputed.",
        hint="register its SQL to recompute it",
    )
