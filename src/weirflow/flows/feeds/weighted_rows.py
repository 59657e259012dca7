"""Native frames of rows with weights, made by Spark alone."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from weirflow.ivm.zset.delta import WEIGHT


def weighted(rows: Any, names: Sequence[str], weight: int) -> Any:
    """These columns, quoted, of a frame, all with the same weight."""
    return rows.selectExpr(*names, f"CAST({weight} AS BIGINT) AS {WEIGHT}")


def weighted_by(rows: Any, names: Sequence[str], op: str) -> Any:
    """These columns of a frame of changes, those with a kind in ``op`` that takes rows away below zero."""
    goes = f"{op} IN ('delete', 'update_preimage')"
    return rows.selectExpr(*names, f"CAST(IF({goes}, -1, 1) AS BIGINT) AS {WEIGHT}")


def together(frames: Sequence[Any]) -> Any:
    """The rows of one or more frames."""
    return reduce(lambda one, other: one.unionAll(other), frames)


def netted(rows: Any, names: Sequence[str]) -> Any:
    """Each row once, with the sum of its weights, but for those of which nothing is left."""
    both = rows.groupBy(*names).agg({WEIGHT: "sum"})
    return both.selectExpr(*names, f"`sum({WEIGHT})` AS {WEIGHT}").where(f"{WEIGHT} <> 0")
