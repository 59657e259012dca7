"""Output mode x trigger x sink: the table of docs/streaming-support.md, written by hand; tests try every cell of it."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from weirflow import OutputMode, Trigger
from weirflow.streaming.trigger import TriggerKind

LOCAL_SINKS = ("memory", "console", "noop", "parquet", "foreach_batch", "foreach", "flow")
CONNECTOR_SINKS = ("kafka", "delta", "iceberg")
TRIGGERS = (Trigger.once(), Trigger.available_now(), Trigger.processing_time(100), Trigger.continuous(500))

# What start() says, and what to do, by a letter; asked for with rows that are filtered, or with counts by key.
REFUSALS = {
    "a": (
        "Trigger.continuous runs queries that only select and filter; this one has Aggregate.",
        "use Trigger.processing_time",
    ),
    "b": (
        "Rows reach parquet in batches, and Trigger.continuous makes none.",
        "use Trigger.processing_time, or write to kafka, memory or console",
    ),
    "c": (
        "Files are only ever added, so a parquet folder cannot take updates of existing rows.",
        "use OutputMode.APPEND with a watermark, or a delta or iceberg table with keys()",
    ),
    "d": (
        "Files are only ever added, so a parquet folder cannot be rewritten after each batch.",
        "use OutputMode.APPEND with a watermark, or a delta or iceberg table",
    ),
    "e": (
        "Rows reach foreach_batch in batches, and Trigger.continuous makes none.",
        "use Trigger.processing_time, or write to kafka, memory or console",
    ),
    "f": (
        "Rows reach foreach in batches, and Trigger.continuous makes none.",
        "use Trigger.processing_time, or write to kafka, memory or console",
    ),
    "g": (
        "Rows reach flow in batches, and Trigger.continuous makes none.",
        "use Trigger.processing_time, or write to kafka, memory or console",
    ),
    "h": (
        "A flow takes changes, so the whole result after each batch would be added again and again.",
        "use OutputMode.UPDATE and a source with a key, which is an upsert",
    ),
    "i": (
        "Rows reach delta in batches, and Trigger.continuous makes none.",
        "use Trigger.processing_time, or write to kafka, memory or console",
    ),
    "j": (
        "Rows reach iceberg in batches, and Trigger.continuous makes none.",
        "use Trigger.processing_time, or write to kafka, memory or console",
    ),
}

# By trigger: yes or the letter of a refusal. Then what is promised of what is delivered.
TABLE = {
    ("memory", OutputMode.APPEND): ("yes", "yes", "yes", "yes", "at-least-once"),
    ("memory", OutputMode.UPDATE): ("yes", "yes", "yes", "a", "at-least-once"),
    ("memory", OutputMode.COMPLETE): ("yes", "yes", "yes", "a", "at-least-once"),
    ("console", OutputMode.APPEND): ("yes", "yes", "yes", "yes", "at-least-once"),
    ("console", OutputMode.UPDATE): ("yes", "yes", "yes", "a", "at-least-once"),
    ("console", OutputMode.COMPLETE): ("yes", "yes", "yes", "a", "at-least-once"),
    ("noop", OutputMode.APPEND): ("yes", "yes", "yes", "yes", "at-least-once"),
    ("noop", OutputMode.UPDATE): ("yes", "yes", "yes", "a", "at-least-once"),
    ("noop", OutputMode.COMPLETE): ("yes", "yes", "yes", "a", "at-least-once"),
    ("parquet", OutputMode.APPEND): ("yes", "yes", "yes", "b", "exactly-once"),
    ("parquet", OutputMode.UPDATE): ("c", "c", "c", "c", ""),
    ("parquet", OutputMode.COMPLETE): ("d", "d", "d", "d", ""),
    ("foreach_batch", OutputMode.APPEND): ("yes", "yes", "yes", "e", "at-least-once"),
    ("foreach_batch", OutputMode.UPDATE): ("yes", "yes", "yes", "e", "at-least-once"),
    ("foreach_batch", OutputMode.COMPLETE): ("yes", "yes", "yes", "e", "at-least-once"),
    ("foreach", OutputMode.APPEND): ("yes", "yes", "yes", "f", "at-least-once"),
    ("foreach", OutputMode.UPDATE): ("yes", "yes", "yes", "f", "at-least-once"),
    ("foreach", OutputMode.COMPLETE): ("yes", "yes", "yes", "f", "at-least-once"),
    ("flow", OutputMode.APPEND): ("yes", "yes", "yes", "g", "exactly-once"),
    ("flow", OutputMode.UPDATE): ("yes", "yes", "yes", "g", "exactly-once"),
    ("flow", OutputMode.COMPLETE): ("h", "h", "h", "h", ""),
    ("kafka", OutputMode.APPEND): ("yes", "yes", "yes", "yes", "at-least-once"),
    ("kafka", OutputMode.UPDATE): ("yes", "yes", "yes", "a", "at-least-once"),
    ("kafka", OutputMode.COMPLETE): ("yes", "yes", "yes", "a", "at-least-once"),
    ("delta", OutputMode.APPEND): ("yes", "yes", "yes", "i", "exactly-once"),
    ("delta", OutputMode.UPDATE): ("yes", "yes", "yes", "i", "exactly-once"),
    ("delta", OutputMode.COMPLETE): ("yes", "yes", "yes", "i", "exactly-once"),
    ("iceberg", OutputMode.APPEND): ("yes", "yes", "yes", "j", "exactly-once"),
    ("iceberg", OutputMode.UPDATE): ("yes", "yes", "yes", "j", "exactly-once"),
    ("iceberg", OutputMode.COMPLETE): ("yes", "yes", "yes", "j", "exactly-once"),
}


@dataclass(frozen=True)
class Cell:
    """One combination."""

    sink: str
    mode: OutputMode
    trigger: Trigger

    @property
    def refusal(self) -> tuple[str, str] | None:
        """Why it is refused and what to do instead; None if it works."""
        return REFUSALS.get(TABLE[self.sink, self.mode][TRIGGERS.index(self.trigger)])

    @property
    def delivery(self) -> str:
        """What a query of it says about what is delivered."""
        return TABLE[self.sink, self.mode][-1]

    def __str__(self) -> str:
        return f"{self.sink}-{self.mode}-{self.trigger.kind}".replace(" ", "-")


def working_cells(sinks: tuple[str, ...]) -> list[object]:
    """The cells of these sinks that work, as parameters.

    In every run each sink meets each of its modes and each trigger, and each mode each trigger; the combinations that
    only repeat such pairs are a campaign.
    """
    found: list[object] = []
    for at, sink in enumerate(sinks):
        modes = [mode for mode in OutputMode if TABLE[sink, mode][0] == "yes"]
        for nth, mode in enumerate(modes):
            for number, trigger in enumerate(TRIGGERS):
                cell = Cell(sink, mode, trigger)
                if cell.refusal is None:
                    repeats = trigger.kind is not TriggerKind.CONTINUOUS and (number + at - nth) % len(modes) != 0
                    marks = [pytest.mark.campaign] if repeats else []
                    found.append(pytest.param(cell, marks=marks, id=str(cell)))
    return found


def refused_cells(sinks: tuple[str, ...]) -> list[object]:
    """The cells of these sinks that are refused, as parameters."""
    every = [Cell(sink, mode, trigger) for sink in sinks for mode in OutputMode for trigger in TRIGGERS]
    return [pytest.param(cell, id=str(cell)) for cell in every if cell.refusal is not None]


def document() -> str:
    """The page."""
    lines = [f"| `{sink}` | {mode} | {' | '.join(row)} |" for (sink, mode), row in TABLE.items()]
    reasons = [f"- **{letter}**: {message} To do: {hint}." for letter, (message, hint) in REFUSALS.items()]
    return "\n".join([_HEAD, *lines, "", _BELOW, *reasons, ""])


_HEAD = f"""\
# Which output modes, triggers and sinks work together

This page shows which combinations work in a [streaming query](streaming.md). Each *yes* is a query that the tests run.
Each letter is a query that `start()` refuses with the message below the table. For append the query filters rows; for
update and complete it counts by key. `make docs-streaming` writes this page.

| sink | output mode | {" | ".join(trigger.kind for trigger in TRIGGERS)} | delivery |
|---|---|{"---|" * len(TRIGGERS)}---|"""
_BELOW = """\
`kafka-transactions` is like `kafka`, but exactly once and without the continuous trigger. `json`, `csv`, `orc`, `text`
and `avro` are like `parquet`. Other formats are passed on to Spark. Updates of `delta` and `iceberg` tables are
merged by `keys(...)`; updates of a `flow` need a source with a key.
"""
assert set(TriggerKind) == {trigger.kind for trigger in TRIGGERS}
assert set(TABLE) == {(sink, mode) for sink in (*LOCAL_SINKS, *CONNECTOR_SINKS) for mode in OutputMode}
