"""Places where a test may stop the process, to see that nothing is lost; free when no test is watching."""

from __future__ import annotations

from collections.abc import Callable

POINTS = (
    "tick.before_step",
    "tick.before_log",
    "tick.before_commit",
    "tick.before_publish",
    "tick.after_publish",
    "log.before_create",
    "log.before_append",
    "log.half_appended",
    "log.before_sync",
    "log.before_tail",
    "log.before_rotate",
    "log.before_truncate",
    "checkpoint.before_pack",
    "checkpoint.in_pack",
    "compact.before_pack",
    "compact.in_pack",
    "compact.after_pack",
    "checkpoint.before_manifest_put",
    "checkpoint.after_manifest_put",
    "collect.before_manifest_delete",
    "collect.before_pack_delete",
    "collect.before_log_delete",
    "restore.before_manifest",
    "restore.before_packs",
    "restore.before_replay",
    "restore.in_replay",
    "define.before_log",
    "define.after_log",
    "feed.before_tick",
    "feed.after_tick",
    "sink.before_write",
    "sink.before_file",
    "sink.before_position",
    "sink.before_replace",
    "sink.after_write",
)
"""Those of flows in one process, in no particular order."""

REPAIR_POINTS = ("repair.before_cut", "repair.before_tail", "repair.before_move")
"""Those of repairing a flow's folder."""

PARTITIONED_POINTS = (
    "partitioned.after_pending",
    "partitioned.before_job",
    "partitioned.after_job",
    "partitioned.before_commit",
    "partitioned.after_commit",
    "partitioned.before_collect",
)
"""Those of the coordinator of a partitioned flow."""

STREAMING_POINTS = (
    "kafka.before_commit",
    "kafka.after_commit",
    "savepoint.before_list",
    "savepoint.after_file",
    "savepoint.before_manifest_put",
)
"""Those of streaming queries."""

_watcher: Callable[[str], None] | None = None


def failpoint(name: str) -> None:
    """Tell the watcher, if there is one, that this place is reached."""
    if _watcher is not None:
        assert name in (*POINTS, *REPAIR_POINTS, *PARTITIONED_POINTS, *STREAMING_POINTS), f"{name} is not listed"
        _watcher(name)


def is_watched() -> bool:
    """Whether a test watches the failpoints."""
    return _watcher is not None


def watch_failpoints(watcher: Callable[[str], None] | None) -> None:
    """Call ``watcher`` at every failpoint from now on; None to stop."""
    global _watcher  # noqa: PLW0603 - one for the process, and only in tests
    _watcher = watcher
