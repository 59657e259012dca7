"""``Memory``: a table in the driver's memory."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from weirflow.errors import ConfigError, StreamRefused
from weirflow.streaming.query.spec import INNER_NAME, QuerySpec
from weirflow.streaming.sinks.sink import StreamSink
from weirflow.types import Delivery, OutputMode

if TYPE_CHECKING:
    from weirflow.streaming.host import StreamHost
    from weirflow.streaming.savepoints.named import QuerySavepoint


@dataclass(frozen=True)
class Memory(StreamSink):
    """A table of the query's name."""

    name: str = "memory"
    delivery: Delivery = Delivery.AT_LEAST_ONCE
    why: str = "rows are kept as long as the query's handle"
    continuous: bool = True
    own_checkpoint: bool = True

    @override
    def refusals(self, spec: QuerySpec) -> Iterator[tuple[str, str]]:
        yield from super().refusals(spec)
        if spec.policy is not None and spec.mode is not OutputMode.COMPLETE:
            yield (
                "What a memory sink holds is not in the checkpoint, so a query that is started again would lack rows.",
                "leave restart() out, or write somewhere else",
            )

    @override
    def check(self, spec: QuerySpec) -> None:
        super().check(spec)
        if spec.name is not None and not re.fullmatch(r"\w+", spec.name):
            raise ConfigError(
                f"A memory sink is a table named after its query, but {spec.name!r} cannot name a table.",
                hint="use letters, digits and _",
            )

    @override
    def prepare(self, spec: QuerySpec, savepoint: QuerySavepoint) -> None:
        if spec.mode is not OutputMode.COMPLETE:
            raise StreamRefused(
                "A memory sink begins empty, so it would lack the rows from before the savepoint.",
                hint="use OutputMode.COMPLETE, or write somewhere else",
            )

    def kept(self, spec: QuerySpec, host: StreamHost) -> tuple[Callable[[], Any], Callable[[], None] | None]:
        """See ``StreamSink``; rows whose table somebody named are not forgotten."""
        name = str(spec.name)

        def forget() -> None:
            with contextlib.suppress(Exception):  # the Session may be closed, and its views with it
                host.spark.catalog.dropTempView(name)

        def rows() -> Any:
            return host.run(f"read {name}", lambda: host.spark.table(name).toArrow())

        return rows, forget if name.startswith(INNER_NAME) else None
