"""Output mode x trigger x sink: every cell of the table in docs/streaming-support.md, which tests check one by one."""

from __future__ import annotations

from dataclasses import dataclass

from weirflow import OutputMode, Trigger
from weirflow.errors import StreamRefused
from weirflow.spark.streaming_plan import QueryShape
from weirflow.streaming.sinks import promise, sink_of
from weirflow.streaming.support import Asked, require_supported
from weirflow.streaming.trigger import TriggerKind

LOCAL_SINKS = ("memory", "console", "noop", "parquet", "foreach_batch", "foreach", "flow")
CONNECTOR_SINKS = ("kafka", "delta", "iceberg")
TRIGGERS = (Trigger.once(), Trigger.available_now(), Trigger.processing_time(100), Trigger.continuous(500))
# What each mode is asked for with: rows as they come, or counts by key.
SELECTING = QueryShape(("rate",), frozenset({"StreamingRelationV2", "Filter", "Project"}), 0, final_groups=True)
COUNTING = QueryShape(("rate",), frozenset({"StreamingRelationV2", "Aggregate"}), 1, final_groups=False)


@dataclass(frozen=True)
class Cell:
    """One combination."""

    sink: str
    mode: OutputMode
    trigger: Trigger

    @property
    def refusal(self) -> StreamRefused | None:
        """Why it is refused; None if it works."""
        shape = SELECTING if self.mode is OutputMode.APPEND else COUNTING
        keys = ("key",) if self.sink in ("delta", "iceberg") and self.mode is OutputMode.UPDATE else ()
        try:
            require_supported(Asked(self.mode, self.trigger, sink_of(self.sink), shape, keys))
        except StreamRefused as refused:
            return refused
        return None

    def __str__(self) -> str:
        return f"{self.sink}-{self.mode}-{self.trigger.kind}".replace(" ", "-")


def cells(sinks: tuple[str, ...], *, refused: bool) -> list[Cell]:
    """The cells of these sinks that work, or those that are refused."""
    every = [Cell(sink, mode, trigger) for sink in sinks for mode in OutputMode for trigger in TRIGGERS]
    return [cell for cell in every if (cell.refusal is not None) == refused]


def document() -> str:
    """The page."""
    letters: dict[tuple[str, str], str] = {}
    lines = []
    for sink in (*LOCAL_SINKS, *CONNECTOR_SINKS):
        for mode in OutputMode:
            row = [Cell(sink, mode, trigger) for trigger in TRIGGERS]
            shown = [_shown(cell, letters) for cell in row]
            delivery = str(promise(sink_of(sink), mode)[0]) if "yes" in shown else ""
            lines.append(f"| `{sink}` | {mode} | {' | '.join(shown)} | {delivery} |")
    reasons = [f"- **{letter}**: {message} To do: {hint}." for (message, hint), letter in letters.items()]
    return "\n".join([_HEAD, *lines, "", _BELOW, *reasons, ""])


def _shown(cell: Cell, letters: dict[tuple[str, str], str]) -> str:
    refused = cell.refusal
    if refused is None:
        return "yes"
    return letters.setdefault((refused.message, refused.hint or ""), chr(ord("a") + len(letters)))


_HEAD = f"""\
# Which output mode, trigger and sink go together

Written by `make docs-streaming` from what the tests run: each *yes* is a query that ran, each letter one that `start()`
refused with the sentence below. The queries: rows that are filtered for append, counts by key for update and complete.
What [streaming queries](streaming.md) do besides is on their page.

| sink | output mode | {" | ".join(trigger.kind for trigger in TRIGGERS)} | delivery |
|---|---|{"---|" * len(TRIGGERS)}---|"""
_BELOW = """\
`kafka-transactions` is as `kafka`, exactly once and without the continuous trigger; `json`, `csv`, `orc`, `text`
and `avro` are as `parquet`; other formats are passed to Spark, which knows them. Updates of `delta`
and `iceberg` tables are merged by `keys(...)`; those of a `flow` need a source with a key.
"""
assert set(TriggerKind) == {trigger.kind for trigger in TRIGGERS}
