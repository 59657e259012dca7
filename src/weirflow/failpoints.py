"""Places where a test may stop the process, to see that nothing is lost; free when no test is watching."""

from __future__ import annotations

from collections.abc import Callable


def _of(part: str, points: str) -> tuple[str, ...]:
    return tuple(f"{part}.{point}" for point in points.split())


POINTS = (
    *_of("tick", "before_step before_log before_commit before_publish after_publish"),
    *_of("log", "before_create before_append half_appended before_sync before_tail before_rotate before_truncate"),
    *_of("checkpoint", "before_pack in_pack before_manifest_put after_manifest_put"),
    *_of("compact", "before_pack in_pack after_pack"),
    *_of("collect", "before_manifest_delete before_pack_delete before_log_delete"),
    *_of("restore", "before_manifest before_packs before_replay in_replay"),
    *_of("define", "before_log after_log"),
    *_of("feed", "before_tick after_tick"),
    *_of("sink", "before_write before_file before_position before_replace after_write"),
)
"""Those of flows in one process, in no particular order."""

REPAIR_POINTS = _of("repair", "before_cut before_tail before_move")
"""Those of repairing a flow's folder."""

PARTITIONED_POINTS = _of("partitioned", "after_pending before_job after_job before_commit after_commit before_collect")
"""Those of the coordinator of a partitioned flow."""

SAVED_POINTS = _of("saved", "before_pack")
"""Those of checkpoints of flows in shards, besides those of publishing a manifest and a commit."""

MOVED_POINTS = _of("moved", "before_pack after_pack")
"""Those of moving the state of a flow to other shards."""

STREAMING_POINTS = (
    *_of("kafka", "before_commit after_commit"),
    *_of("savepoint", "before_list after_file before_manifest_put"),
)
"""Those of streaming queries."""

REFRESH_POINTS = _of("refresh", "before_state after_state before_commit after_commit after_landmark")
"""Those of refreshing a materialized view."""

VECTOR_POINTS = _of("vector", "before_create before_copy before_index before_commit after_commit")
"""Those of writing a view to a vector store."""

_LISTED = frozenset(
    (
        *POINTS,
        *REPAIR_POINTS,
        *PARTITIONED_POINTS,
        *SAVED_POINTS,
        *MOVED_POINTS,
        *STREAMING_POINTS,
        *REFRESH_POINTS,
        *VECTOR_POINTS,
    )
)
_watcher: Callable[[str], None] | None = None


def failpoint(name: str) -> None:
    """Tell the watcher, if there is one, that this place is reached."""
    if _watcher is not None:
        assert name in _LISTED, f"{name} is not listed"
        _watcher(name)


def is_watched() -> bool:
    """Whether a test watches the failpoints."""
    return _watcher is not None


def watch_failpoints(watcher: Callable[[str], None] | None) -> None:
    """Call ``watcher`` at every failpoint from now on; None to stop."""
    global _watcher  # noqa: PLW0603 - one for the process, and only in tests
    _watcher = watcher
