"""``RefreshRecord``: how a refresh was done, why, what was expected of it and what it took."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime  # noqa: TC003 - msgspec reads the annotations
from typing import TYPE_CHECKING

import msgspec

from weirflow.checkpoint.sealed import FORMAT
from weirflow.materialized.note import Marks  # noqa: TC001 - msgspec reads the annotations

if TYPE_CHECKING:
    from weirflow.flows.feeds.table_changes import ChangeSize


class Estimate(msgspec.Struct, frozen=True):
    """What was expected of a refresh.

    Attributes:
        changed_rows: how many rows came or went in the tables; those that were updated did both.
        incremental_seconds: what an increment takes.
        full_seconds: what a full refresh takes.
        compared_rows: rows of files that were written anew, which have to be compared to find those that changed.
        uncounted_rows: of these, the ones of which only experience says how many have changed.
    """

    changed_rows: int
    incremental_seconds: float
    full_seconds: float
    compared_rows: int = 0
    uncounted_rows: int = 0


class Cost(msgspec.Struct, frozen=True):
    """What a refresh took.

    Attributes:
        seconds: all of it, without building state.
        state_seconds: building or rebuilding state, or bringing one up that was left behind.
        commit_seconds: the commit of the target, which computes the rows if all are.
    """

    seconds: float
    state_seconds: float = 0.0
    commit_seconds: float = 0.0


class RefreshRecord(msgspec.Struct, frozen=True):
    """One refresh.

    Attributes:
        epoch: its number.
        attempt: tells it from others of the same number.
        finished_at: when, in UTC.
        mode: ``incremental``, ``full``, or ``none`` if nothing had changed.
        code: why it was full; see ``FullReason``. None for an increment.
        why: the same as a sentence.
        version: of the target, that it made.
        sources: the versions of the tables that the view was made of.
        source_rows: how many rows these have, as far as they say it.
        rows: how many rows of the view went or came; None if it was full.
        estimate: what was expected; None where there was nothing to choose.
        cost: what it took.
        changed_rows: how many rows came or went in the tables, as an increment found; None if it was full.
    """

    epoch: int
    attempt: str
    finished_at: datetime
    mode: str
    code: str | None
    why: str | None
    version: str | None
    sources: Marks
    source_rows: int
    rows: int | None
    estimate: Estimate | None
    cost: Cost
    format: int = FORMAT
    changed_rows: int | None = None


_FIXED_SECONDS = 2.0
_SECONDS_PER_ROW = 2e-5
_SECONDS_PER_COMPARED_ROW = 2e-6
_FULL_FIXED_SECONDS = 2.0
_FULL_SECONDS_PER_ROW = 3e-6
_CHANGED_OF_REWRITTEN = 0.01
_LOOK_BACK = 5
LOOKED_AT = 5 * _LOOK_BACK
"""So many of the last refreshes tell enough: what is known of those before is in their estimates."""
_MOST = 8.0
_FORGOTTEN = 0.8
"""What is left of how far off increments were, for each full refresh since: one bad measurement is not for ever."""


def expected(records: Sequence[RefreshRecord], size: ChangeSize, source_rows: int) -> Estimate:
    """What a refresh is expected to take, after what the last ones of the view took.

    An increment has a fixed time, one for each row that changed, and a small one for each row that has to be compared.
    All are as far off as they were for the last increments, of which those of about the same size count more. How
    many of the rows in rewritten files have changed is reckoned as it was for the last increments. A full refresh
    takes what the last one took, or was expected to take if it is not among ``records``, for as many rows as there are
    now.
    """
    done = [one for one in records if one.mode == "incremental" and one.estimate is not None][-_LOOK_BACK:]
    changed = max(size.changed, round(_share_changed(done) * size.uncounted))
    rough = _rough(changed, size.compared)
    off = _how_far_off(done, rough)
    fulls = sum(1 for one in records[records.index(done[-1]) :] if one.mode == "full") if done else 0
    factor = min(max(1.0 + (off - 1.0) * _FORGOTTEN**fulls, 1 / _MOST), _MOST)
    whole = _full_seconds(records, source_rows)
    return Estimate(changed, round(rough * factor, 3), round(whole, 3), size.compared, size.uncounted)


def most_rows_worth_it(estimate: Estimate) -> int:
    """How many rows may have changed for an increment to be worth it, where only the estimate says how many did."""
    factor = estimate.incremental_seconds / _rough(estimate.changed_rows, estimate.compared_rows)
    spare = estimate.full_seconds / max(factor, 1 / _MOST) - _rough(0, estimate.compared_rows)
    return max(estimate.changed_rows, round(spare / _SECONDS_PER_ROW))


def _rough(changed: int, compared: int) -> float:
    return _FIXED_SECONDS + _SECONDS_PER_ROW * changed + _SECONDS_PER_COMPARED_ROW * compared


def _how_far_off(done: Sequence[RefreshRecord], rough: float) -> float:
    """How many times as long as roughly expected the last increments took, those of about this size above all."""
    found = []
    for one in done:
        assert one.estimate is not None
        changed = one.estimate.changed_rows if one.changed_rows is None else one.changed_rows
        own = _rough(changed, one.estimate.compared_rows)
        found.append((one.cost.seconds / own, (1 + abs(math.log2(rough / own))) ** -2))
    weight = sum(one for _, one in found)
    return sum(ratio * one for ratio, one in found) / weight if found else 1.0


def _full_seconds(records: Sequence[RefreshRecord], source_rows: int) -> float:
    """What a full refresh takes."""
    done = [(one.cost.seconds, one.source_rows) for one in records if one.mode == "full"]
    thought = [(one.estimate.full_seconds, one.source_rows) for one in records if one.estimate is not None]
    seconds, rows = (done or [one for one in thought if one[0]] or [(0.0, 0)])[-1]
    if not seconds:
        return _FULL_FIXED_SECONDS + _FULL_SECONDS_PER_ROW * source_rows
    return seconds * max(source_rows / rows if rows and source_rows else 1.0, 1 / _MOST)


def _share_changed(done: Sequence[RefreshRecord]) -> float:
    """Which part of the rows in rewritten files has changed."""
    shares = [
        one.changed_rows / one.estimate.uncounted_rows
        for one in done
        if one.estimate is not None and one.estimate.uncounted_rows and one.changed_rows is not None
    ]
    return min(max(shares[-2:]), 1.0) if shares else _CHANGED_OF_REWRITTEN
