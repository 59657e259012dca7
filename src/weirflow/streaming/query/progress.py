"""``QueryProgress``: what one batch of a streaming query did."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True)
class QueryProgress:
    """What one batch did.

    Attributes:
        query_id: the query's id, the same over restarts.
        run_id: the id of this start of it.
        name: the query's name.
        batch: the number of the batch.
        trigger: when it began.
        input_rows: rows read.
        output_rows: rows written; None for sinks that do not count.
        input_rows_per_second: rows that arrived in a second since the batch before.
        processed_rows_per_second: rows that it got through in a second.
        watermark: rows before it are late; None without an event time, or before the first rows.
        late_rows: rows that were dropped because they were late.
        state_rows: rows that the query remembers.
        state_bytes: memory that they take.
        duration_ms: how long the batch took.
        raw: all that Spark says.
    """

    query_id: str
    run_id: str
    name: str | None
    batch: int
    trigger: datetime
    input_rows: int
    output_rows: int | None
    input_rows_per_second: float
    processed_rows_per_second: float
    watermark: datetime | None
    late_rows: int
    state_rows: int
    state_bytes: int
    duration_ms: int
    raw: dict[str, Any] = field(repr=False, compare=False)

    @classmethod
    def from_json(cls, text: str) -> QueryProgress:
        """From the JSON that Spark makes of it."""
        raw = json.loads(text)
        operators = raw.get("stateOperators") or []
        sources = raw.get("sources") or []  # over Spark Connect only they have counts
        written = (raw.get("sink") or {}).get("numOutputRows", -1)
        return cls(
            query_id=raw["id"],
            run_id=raw["runId"],
            name=raw.get("name"),
            batch=raw["batchId"],
            trigger=datetime.fromisoformat(raw["timestamp"]),
            input_rows=sum(int(one.get("numInputRows") or 0) for one in sources),
            output_rows=int(written) if written is not None and written >= 0 else None,
            input_rows_per_second=sum(_rate(one.get("inputRowsPerSecond")) for one in sources),
            processed_rows_per_second=sum(_rate(one.get("processedRowsPerSecond")) for one in sources),
            watermark=_watermark(raw.get("eventTime") or {}),
            late_rows=sum(one.get("numRowsDroppedByWatermark", 0) for one in operators),
            state_rows=sum(one.get("numRowsTotal", 0) for one in operators),
            state_bytes=sum(one.get("memoryUsedBytes", 0) for one in operators),
            duration_ms=int((raw.get("durationMs") or {}).get("triggerExecution") or raw.get("batchDuration") or 0),
            raw=raw,
        )

    def __str__(self) -> str:
        parts = [f"batch {self.batch}", f"{self.input_rows} rows in"]
        if self.output_rows is not None:
            parts.append(f"{self.output_rows} out")
        if self.late_rows:
            parts.append(f"{self.late_rows} dropped as late")
        parts.append(f"{self.processed_rows_per_second:.0f} rows/s")
        if self.state_rows:
            parts.append(f"{self.state_rows} in state")
        if self.watermark is not None:
            parts.append(f"watermark {self.watermark:%Y-%m-%d %H:%M:%S}")
        return ", ".join(parts)


def _rate(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and value == value and abs(value) != float("inf") else 0.0  # noqa: PLR0124 - NaN


def _watermark(event_time: dict[str, str]) -> datetime | None:
    text = event_time.get("watermark")
    found = datetime.fromisoformat(text) if text else None
    return found if found and found.timestamp() > 0 else None
