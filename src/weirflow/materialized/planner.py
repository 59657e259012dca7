"""How a refresh is done: not at all, by an increment, or in full."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import takewhile
from typing import TYPE_CHECKING

from weirflow.errors import Reason, RefreshRefused
from weirflow.materialized.definition import Definition, RefreshPolicy
from weirflow.materialized.history import Estimate, RefreshRecord, expected
from weirflow.materialized.reasons import ALLOWED_WHEN_STRICT, FullReason, Obstacle

if TYPE_CHECKING:
    from weirflow.materialized.note import Marks, Note
    from weirflow.materialized.sources import SourceTables
    from weirflow.materialized.target import Holding


class RefreshMode(StrEnum):
    """How a refresh is done."""

    NONE = "none"
    """Nothing has changed."""
    INCREMENTAL = "incremental"
    """What changed is brought in."""
    FULL = "full"
    """Everything is computed."""


@dataclass(frozen=True)
class RefreshPlan:
    """What is chosen, and why.

    Attributes:
        mode: how.
        obstacle: why it is full; None otherwise.
        estimate: what was weighed; None where there was nothing to choose.
        keeps_state: of a full one, whether the state that the target names stays, and is behind then.
    """

    mode: RefreshMode
    obstacle: Obstacle | None = None
    estimate: Estimate | None = None
    keeps_state: bool = False


def choose(
    definition: Definition,
    holding: Holding,
    sources: SourceTables,
    now: Marks,
    records: Callable[[], Sequence[RefreshRecord]],
    *,
    full: bool,
) -> RefreshPlan:
    """How the next refresh is done.

    Raises:
        RefreshRefused: it would be a full one, which the policy does not allow.
    """
    found = _chosen(definition, holding, sources, now, records, full=full)
    if found.obstacle is not None and definition.policy is RefreshPolicy.STRICT:
        require_allowed(found.obstacle)
    return found


def require_allowed(obstacle: Obstacle) -> None:
    """``RefreshRefused`` unless a strict policy allows a full refresh for this."""
    if obstacle.code not in ALLOWED_WHEN_STRICT:
        raise RefreshRefused(
            f"The view may only be refreshed by increments, and this refresh cannot be one: {obstacle.why}",
            reason=obstacle.code,
            hint="refresh it with FULL, or give it another refresh_policy",
        )


def _chosen(  # noqa: PLR0911 - one for each choice
    definition: Definition,
    holding: Holding,
    sources: SourceTables,
    now: Marks,
    records: Callable[[], Sequence[RefreshRecord]],
    *,
    full: bool,
) -> RefreshPlan:
    note, policy = holding.note, definition.policy
    if holding.obstacle is not None or note is None:
        assert holding.obstacle is not None
        return RefreshPlan(RefreshMode.FULL, holding.obstacle)
    if note.revision != definition.revision:
        return _full(FullReason.QUERY_CHANGED, "The view was given another query since the last refresh.")
    broken = sources.lasting_obstacle() or sources.obstacle(note.sources, now)
    if broken is not None:
        return RefreshPlan(RefreshMode.FULL, broken)
    if full:
        return _full(FullReason.REQUESTED, "A full refresh was asked for.")
    if note.sources == now and note.code != Reason.EXPRESSION_NOT_DETERMINISTIC:
        return RefreshPlan(RefreshMode.NONE)
    if policy is RefreshPolicy.FULL:
        return _full(FullReason.POLICY, "The view is always refreshed in full.")
    if note.state is None:
        return _full(FullReason.NO_STATE, "The refresh before kept no state.")
    behind = sources.obstacle(note.state.sources, now)
    if behind is not None:
        return RefreshPlan(RefreshMode.FULL, behind)
    known = records()
    estimate = expected(known, sources.size(note.state.sources, now), sources.rows(now))
    is_slower = estimate.full_seconds < estimate.incremental_seconds
    if policy is RefreshPolicy.AUTO and is_slower and not _pays_to_catch_up(known, note, sources, now):
        return RefreshPlan(RefreshMode.FULL, large_change(estimate.changed_rows), estimate, keeps_state=True)
    return RefreshPlan(RefreshMode.INCREMENTAL, None, estimate)


def _pays_to_catch_up(known: Sequence[RefreshRecord], note: Note, sources: SourceTables, now: Marks) -> bool:
    """Whether to bring up state that full refreshes left behind, though another full one would take less time.

    It is, once these have taken as much longer than increments would have as it takes to catch up: after one large
    change, small ones are not expensive for ever.
    """
    assert note.state is not None
    if note.state.sources == note.sources:
        return False
    rows = sources.rows(now)
    alone = expected(known, sources.size(note.sources, now), rows)
    behind = expected(known, sources.size(note.state.sources, note.sources), rows)
    fulls = sum(1 for _ in takewhile(lambda one: one.code == FullReason.LARGE_CHANGE, reversed(known)))
    return fulls * (alone.full_seconds - alone.incremental_seconds) >= behind.incremental_seconds


def large_change(rows: int) -> Obstacle:
    """Why so many rows are not brought in by an increment."""
    why = f"About {rows} rows have changed: a full refresh is expected to be faster."
    return Obstacle(FullReason.LARGE_CHANGE, why)


def _full(code: FullReason, why: str, estimate: Estimate | None = None, *, keeps_state: bool = False) -> RefreshPlan:
    return RefreshPlan(RefreshMode.FULL, Obstacle(code, why), estimate, keeps_state)
