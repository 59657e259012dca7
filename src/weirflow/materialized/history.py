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


_SECONDS_PER_ROW = 2e-5


class Estimate(msgspec.Struct, frozen=True):
    """What was expected of a refresh.

    Attributes:
        changed_rows: how many rows came or went in the tables; those that were updated did both.
        incremental_seconds: what an increment takes.
        full_seconds: what a full refresh takes.
        compared_rows: rows of files that were written anew, which have to be compared to find those that changed.
        uncounted_rows: of these, the ones of which only experience says how many have changed.
        fixed_seconds: what an increment takes, however few rows have changed; None in records of earlier releases.
        seconds_per_row: and for each row that has.
    """

    changed_rows: int
    incremental_seconds: float
    full_seconds: float
    compared_rows: int = 0
    uncounted_rows: int = 0
    fixed_seconds: float | None = None
    seconds_per_row: float = _SECONDS_PER_ROW


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


_FIXED_SECONDS = 0.3
"""What an increment takes besides its rows, as long as nobody knows: so little that it is tried."""
_USUAL_FIXED_SECONDS = 2.0
"""What it takes where rows take what follows."""
_SECONDS_PER_COMPARED_ROW = 2e-6
_FULL_FIXED_SECONDS = 2.0
_FULL_SECONDS_PER_ROW = 3e-6
_CHANGED_OF_REWRITTEN = 0.01
_LOOK_BACK = 5
LOOKED_AT = 5 * _LOOK_BACK
"""So many of the last refreshes tell enough: what is known of those before is in their estimates."""
_MOST = 8.0
_FEW_SECONDS = 0.2
"""Increments whose rows are expected to take no longer tell what is fixed, others what a row takes."""
_KEPT, _FIXED_KEPT = 0.8, 0.95
"""What is left of how far off increments were, for each full refresh since: one bad measurement is not for ever."""


def expected(records: Sequence[RefreshRecord], size: ChangeSize, source_rows: int) -> Estimate:
    """What a refresh is expected to take, after what the last ones of the view took.

    An increment has a fixed time, which is what small ones took; one for each row that changed, and a small one for
    each row that has to be compared. These are as far off as they were for large increments, of which those of about
    the same size count more. How many of the rows in rewritten files have changed is reckoned as it was for the last
    increments. A full refresh takes what the last one took, or was expected to take if it is not among ``records``, for
    as many rows as there are now.
    """
    done = [one for one in records if one.mode == "incremental" and one.estimate is not None][-_LOOK_BACK:]
    fulls = sum(1 for one in records[records.index(done[-1]) :] if one.mode == "full") if done else 0
    changed = max(size.changed, round(_share_changed(done) * size.uncounted))
    work = _work(changed, size.compared)
    fixed = _fixed_seconds(done, records, fulls)
    off = _how_far_off(done, work, fixed)
    factor = min(max(1.0 + (off - 1.0) * _KEPT**fulls, 1 / _MOST), _MOST)
    return Estimate(
        changed,
        round(fixed + work * factor, 3),
        round(_full_seconds(records, source_rows), 3),
        size.compared,
        size.uncounted,
        round(fixed, 3),
        factor * _SECONDS_PER_ROW,
    )


def most_rows_worth_it(estimate: Estimate) -> int:
    """How many rows may have changed for an increment to be worth it, where only the estimate says how many did."""
    spare = estimate.full_seconds - estimate.incremental_seconds
    return estimate.changed_rows + max(round(spare / estimate.seconds_per_row), 0)


def _work(changed: int, compared: int) -> float:
    """What the rows of an increment roughly take."""
    return _SECONDS_PER_ROW * changed + _SECONDS_PER_COMPARED_ROW * compared


def _work_of(one: RefreshRecord) -> float:
    assert one.estimate is not None
    changed = one.estimate.changed_rows if one.changed_rows is None else one.changed_rows
    return _work(changed, one.estimate.compared_rows)


def _fixed_seconds(done: Sequence[RefreshRecord], records: Sequence[RefreshRecord], fulls: int) -> float:
    """What the best of the last small increments took; if none was small, what was thought before."""
    small = [one.cost.seconds - _work_of(one) for one in done if _work_of(one) <= _FEW_SECONDS]
    if small:
        found, kept = min(small), _FIXED_KEPT**fulls
    else:
        thought = next((one.estimate.fixed_seconds for one in reversed(records) if one.estimate is not None), None)
        found, kept = _FIXED_SECONDS if thought is None else thought, _FIXED_KEPT
    return max(_FIXED_SECONDS + (found - _FIXED_SECONDS) * kept, 0.0)


def _how_far_off(done: Sequence[RefreshRecord], work: float, fixed: float) -> float:
    """How many times as long as roughly expected the rows of large increments took, of those of this size above all.

    Where none was large, slow small ones tell of a slow machine.
    """
    large = [(one.cost.seconds - fixed, _work_of(one)) for one in done if _work_of(one) > _FEW_SECONDS]
    found = [(max(took, 0.0) / own, (1 + abs(math.log2(max(work, 1e-3) / own))) ** -2) for took, own in large]
    weight = sum(one for _, one in found)
    return sum(ratio * one for ratio, one in found) / weight if found else max(fixed / _USUAL_FIXED_SECONDS, 1.0)


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
