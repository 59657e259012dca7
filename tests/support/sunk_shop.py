"""A flow whose view has sinks, and what they have written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pathlib import Path

TOTALS = "SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer"
ANN_5_THEN_12 = [("ann", 5, -1, 2), ("ann", 5, 1, 1), ("ann", 12, 1, 2)]


def declare(flow: Any) -> Any:
    """The source and the view."""
    flow.register_source("orders", "customer STRING, amount BIGINT")
    flow.register_view("totals", TOTALS)
    return flow


def order(flow: Any, amount: int, customer: str = "ann") -> Any:
    """A tick of one order."""
    return flow.tick("orders", [{"customer": customer, "amount": amount}])


def written(folder: Path) -> list[tuple[Any, ...]]:
    """The rows of a changelog: customer, total, weight, epoch."""
    return sorted(tuple(row.values()) for row in pq.read_table(folder).to_pylist())
