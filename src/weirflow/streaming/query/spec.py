"""``QuerySpec``: all that a writer was told, which is all that the start of a query depends on."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from weirflow.streaming.query.checkpoints import OPTION, split_options
from weirflow.streaming.trigger import Trigger
from weirflow.types import OutputMode

if TYPE_CHECKING:
    from weirflow.streaming.query.restart import RestartPolicy
    from weirflow.streaming.sinks.sink import StreamSink

INNER_NAME = "_weirflow_stream_"


@dataclass(frozen=True)
class QuerySpec:
    """A streaming query as it is to be started.

    Attributes:
        frame: the native streaming frame.
        sink: where its rows go.
        late: where its late rows go.
        mode: the output mode.
        trigger: when it runs.
        options: those of the sink and of Spark.
        partition_by: columns whose values become folders.
        name: the query's name; None to have one made up.
        table: the catalog table to write, in place of a path.
        keys: the columns that updates are merged by.
        policy: whether it is started again after an error.
        savepoint: what it begins with, and where that is.
    """

    frame: Any
    sink: StreamSink
    late: tuple[str, ...] = ()
    mode: OutputMode = OutputMode.APPEND
    trigger: Trigger = field(default_factory=lambda: Trigger.processing_time(0))
    options: Mapping[str, str] = field(default_factory=dict)
    partition_by: tuple[str, ...] = ()
    name: str | None = None
    table: str | None = None
    keys: tuple[str, ...] = ()
    policy: RestartPolicy | None = None
    savepoint: tuple[str, str | None] | None = None

    @property
    def checkpoint(self) -> str | None:
        """Where the checkpoint is, as Spark calls it; None if nobody said so.

        Raises:
            ConfigError: it is to be in two places.
        """
        return split_options(self.options)[0]

    @property
    def sink_options(self) -> dict[str, str]:
        """The options but for the checkpoint's."""
        return split_options(self.options)[1]

    def resolved(self, checkpoint: str | None) -> QuerySpec:
        """The same with a name, and with the checkpoint that was found for it."""
        place = {OPTION: checkpoint} if checkpoint is not None else {}
        name = self.name or f"{INNER_NAME}{uuid.uuid4().hex[:12]}"
        return replace(self, name=name, options={**self.sink_options, **place})
