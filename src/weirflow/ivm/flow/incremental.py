"""``IncrementalFlow``: a flow in this process, for those who have no Session."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from weirflow.arguments import Count, Folder, Name, checked
from weirflow.errors import ConfigError
from weirflow.ivm.compiler.settled import is_settled
from weirflow.ivm.flow.flow import Flow
from weirflow.sql.settings import USUAL, SqlSettings
from weirflow.stack import grows
from weirflow.types import ClockKind, one_of

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from weirflow.ivm.compiler.view import RecomputeEngine
    from weirflow.ivm.flow.folder.repair import Repair
    from weirflow.sql.registered import UserFunction


@checked
class IncrementalFlow(Flow):
    """Sources, SQL views over them, and ticks that bring deltas.

    Views that are maintained by deltas need neither Spark nor a Session; ``session.flow(name)`` makes a flow that also
    runs other views on Spark. Methods may be called from several threads; ticks run one after the other.

    >>> flow = IncrementalFlow()
    >>> flow.register_source("orders", "customer STRING, amount BIGINT")
    >>> flow.register_view("totals", "SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer")
    >>> flow.tick("orders", [{"customer": "ann", "amount": 5}]).rows_out
    1
    >>> flow.snapshot("totals").to_pylist()
    [{'customer': 'ann', 'total': 5}]

    Args:
        name: what errors, metrics and stores call the flow.
        path: a folder to keep the flow in: a tick that returned survives the process, and the next flow with this path
            continues from there. None keeps it in memory.
        fsync: with a path, after how many ticks the log is synced to the disk: a killed process loses nothing, and a
            power failure at most this many ticks. 0 leaves it to the system.
        checkpoint_every: with a path, after how many ticks a checkpoint replaces the log; 0 makes no checkpoints by
            itself.
        history: for how many epochs deltas are kept for ``watch_output(from_epoch=...)`` and ``snapshot(epoch=...)``.
        engine: what runs views that are not incremental.
        functions: the functions that stored views call, by name: a plain function is version "1", others are given as
            ``UserFunction``. A Session's flow uses those of ``session.udf``.
        registry: where the flow's metrics are; None for Weirflow's own registry, of ``weirflow.observability.metrics``.
        time_zone: the time zone in which SQL reads times: a region such as ``America/New_York``, or an offset such as
            ``+05:30``. A view keeps the one that it was registered with; the same is true of the next two settings.
        ansi: whether an expression without a result (a division by zero, an overflow) is an error, as in Spark's ANSI
            mode.
        case_sensitive: whether names of columns that differ only by case are different names.
        clock: what moves the clock that ``now()`` in views reads: ``system``, the system's time at each tick, or
            ``manual``, only ``advance``.
    """

    def __init__(
        self,
        name: Name = "flow",
        *,
        path: Folder | None = None,
        fsync: Count = 1,
        checkpoint_every: Count = 10_000,
        history: Count = 1000,
        engine: RecomputeEngine | None = None,
        functions: Mapping[str, Callable[..., Any] | UserFunction] | None = None,
        registry: CollectorRegistry | None = None,
        time_zone: str = "UTC",
        ansi: bool = True,
        case_sensitive: bool = False,
        clock: ClockKind | str = ClockKind.SYSTEM,
    ) -> None:
        # The compiler, with the parser of SQL: slow to import, and needed by those who have a flow.
        _import_compiler()
        from weirflow.ivm.compiler.user_functions import with_functions  # noqa: PLC0415 - see above
        from weirflow.ivm.flow.local import LocalBackend  # noqa: PLC0415 - see above
        from weirflow.sql.zoned import tzinfo_of, zone_name  # noqa: PLC0415 - see above

        tzinfo_of(time_zone)
        settings = SqlSettings(zone_name(time_zone), ansi, case_sensitive)
        if is_settled(engine) and settings != USUAL:
            raise ConfigError(
                "The settings of a Session's flow are those of the Session.",
                hint="set spark.sql.session.timeZone, spark.sql.ansi.enabled or spark.sql.caseSensitive there",
            )
        if functions is not None:
            engine = with_functions(engine, functions)
        super().__init__(
            LocalBackend(
                name,
                path,
                fsync,
                checkpoint_every,
                history=history,
                engine=engine,
                registry=registry,
                settings=settings,
                clock=one_of(ClockKind, clock, "No clock is called"),
            )
        )

    @classmethod
    def salvage(cls, path: Folder, name: Name | None = None, **options: Any) -> tuple[Self, Repair]:
        """Open a damaged flow at its last whole epoch, and say what was lost.

        Damaged files are moved to ``damaged-<time>`` in the flow's folder, and never deleted. A checkpoint is made, so
        that the flow opens normally from then on. A flow that is whole is simply opened.

        Args:
            path: the flow's folder.
            name: the flow's name; by default the name in its newest checkpoint, or that of the folder.
            options: those of the class.

        Raises:
            ObjectNotFound: there is no flow at the path.
            FlowError: the flow is open.
            StorageError: nothing whole is left, or a later version has written a file; nothing has changed.
        """
        from weirflow.ivm.flow.folder.repair import repair_flow  # noqa: PLC0415 - for damaged flows only

        repair = repair_flow(Path(path))
        flow = cls(name or repair.name or Path(path).name, path=path, **options)
        if not repair.was_whole:
            try:
                flow.checkpoint()
            except BaseException:
                flow.close()
                raise
        return flow, repair


@grows
def _import_compiler() -> None:
    """Import what flows are made of, however deep the caller is: importing nests many calls."""
    for module in (
        "weirflow.ivm.compiler.user_functions",
        "weirflow.ivm.flow.local",
        "weirflow.ivm.flow.folder.repair",
    ):
        import_module(module)
