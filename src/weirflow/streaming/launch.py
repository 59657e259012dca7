"""``Launch``: all that a writer was told, and the start of a query from it."""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from weirflow.errors import ConfigError, UnsupportedError
from weirflow.streaming.checkpoints import split_options
from weirflow.streaming.kafka_sink import check_kafka
from weirflow.streaming.sinks import (
    FILES,
    FLOW,
    FOREACH,
    FOREACH_BATCH,
    KAFKA_TRANSACTIONS,
    UPSERTED,
    promise,
    sink_of,
)
from weirflow.streaming.support import Asked, is_real_time, require_supported
from weirflow.streaming.trigger import Trigger, TriggerKind
from weirflow.types import Delivery, OutputMode

if TYPE_CHECKING:
    from collections.abc import Callable

    from weirflow.streaming.restart import RestartPolicy

INNER_NAME = "_weirflow_stream_"
_WITHOUT_FOLDERS = {FOREACH, FOREACH_BATCH, FLOW, KAFKA_TRANSACTIONS, "memory", "console", "kafka", "noop"}
_WORDS = {TriggerKind.PROCESSING_TIME: "processingTime", TriggerKind.CONTINUOUS: "continuous"}


@dataclass
class Launch:
    """All that a writer was told.

    Attributes:
        frame: the native streaming frame.
        late: where its late rows go.
        mode: the output mode.
        trigger: when it runs.
        format: the sink.
        options: those of the sink and of Spark.
        partition_by: columns whose values become folders.
        name: the query's name; None to have one made up.
        table: the catalog table to write, in place of a path.
        keys: the columns that updates are merged by.
        function: what takes batches or rows, if the sink is a function.
        flow: the flow and its source, if the sink is one.
        policy: whether it is started again after an error.
        savepoint: what it begins with, and where that is.
    """

    frame: Any
    late: tuple[str, ...] = ()
    mode: OutputMode = OutputMode.APPEND
    trigger: Trigger = field(default_factory=lambda: Trigger.processing_time(0))
    format: str = "parquet"
    options: dict[str, str] = field(default_factory=dict)
    partition_by: tuple[str, ...] = ()
    name: str | None = None
    table: str | None = None
    keys: tuple[str, ...] = ()
    function: Callable[..., Any] | Any = None
    flow: tuple[Any, str] | None = None
    policy: RestartPolicy | None = None
    savepoint: tuple[str, str | None] | None = None

    def check(self) -> Asked:
        """What is asked for, found to be possible; raises ``StreamRefused`` or ``ConfigError``."""
        from weirflow.spark.streaming_plan import query_shape  # noqa: PLC0415 - imports pyspark

        sink = sink_of(self.format)
        asked = Asked(self.mode, self.trigger, sink, query_shape(self.frame), self.keys, self.policy is not None)
        require_supported(asked)
        self._check_target()
        return asked

    def native_trigger(self, asked: Asked) -> tuple[str, Any] | None:
        """PySpark's keyword for the trigger, and its value."""
        from weirflow.spark.streaming_start import has_real_time_mode  # noqa: PLC0415 - imports pyspark

        kind, words = self.trigger.kind, f"{self.trigger.ms} milliseconds"
        match kind:
            case TriggerKind.ONCE:
                return "once", True
            case TriggerKind.AVAILABLE_NOW:
                return "availableNow", True
            case TriggerKind.CONTINUOUS if is_real_time(asked) and has_real_time_mode(self.frame):
                return "realTime", words
            case TriggerKind.PROCESSING_TIME if not self.trigger.ms:
                return None
            case _:
                return _WORDS[kind], words

    def query_name(self) -> str:
        """The name it was given, or one made up."""
        return self.name or f"{INNER_NAME}{uuid.uuid4().hex[:12]}"

    def target(self) -> str:
        """Where rows go, for people."""
        if self.flow is not None:
            return f"the source {self.flow[1]} of the flow {self.flow[0].name}"
        place = self.table or self.options.get("path") or self.options.get("topic")
        return f"{self.format} {place}" if place else self.format

    def delivery(self, asked: Asked) -> tuple[Delivery, str]:
        """How often rows arrive, and why."""
        return promise(asked.sink, asked.mode)

    def _check_target(self) -> None:
        if self.format in FILES and "path" not in self.options and self.table is None:
            raise ConfigError(f"No folder is given for the {self.format} files.", hint='set option("path", ...)')
        if self.format in UPSERTED and "path" not in self.options and self.table is None:
            raise ConfigError(
                f"No {self.format} table is given.", hint='name it with table(...), or set option("path", ...)'
            )
        if self.partition_by and self.format in _WITHOUT_FOLDERS:
            raise ConfigError(f"{self.format} has no folders to partition by.", hint="leave partition_by out")
        if self.partition_by and self.keys:
            raise ConfigError("A table that is merged into has its partitions already.", hint="leave partition_by out")
        if self.format == "memory" and self.name is not None and not re.fullmatch(r"\w+", self.name):
            raise ConfigError(
                f"A memory sink is a table of the query's name, and {self.name!r} is no table's name.",
                hint="use letters, digits and _",
            )
        if self.flow is not None:
            self._check_flow(*self.flow)
        if self.format == KAFKA_TRANSACTIONS:
            self._require_local("the Kafka client")
            check_kafka(split_options(self.options)[1], self.frame.dtypes)

    def _require_local(self, what: str) -> None:
        if not hasattr(self.frame, "_jdf"):
            raise UnsupportedError(
                f"Over Spark Connect batches are handled by the server's Python, where {what} is not.",
                hint="start the query in an embedded or single-node Session",
            )

    def _check_flow(self, flow: Any, source: str) -> None:
        self._require_local("the flow")
        if self.mode is OutputMode.UPDATE and not flow.source(source).key:
            raise ConfigError(
                f"The source {source!r} has no key, so updates would be added to the rows they replace.",
                hint="register the source with key=..., or use OutputMode.APPEND",
            )
