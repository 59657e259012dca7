"""Two streams by key as one, whose rows say which of them they are of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import functions as sf

from weirflow.spark.streaming.columns import named

_LEFT = "_weirflow_left"
_RIGHT = "_weirflow_right"


def united(left: Any, right: Any, keys: Sequence[tuple[str, str]]) -> Any:
    """The rows of two native streams: the key, called as on the left, then the left row and the right one as STRUCTs.

    One of the two is NULL. The watermarks of both streams stay in the plan, and Spark goes by the least of them.

    Args:
        left: a native stream.
        right: another.
        keys: the columns of the key on either side, of the same types.
    """
    row = sf.struct("*")
    lefts = left.select(*(named(name) for name, _ in keys), row.alias(_LEFT))
    rights = right.select(*(named(other).alias(name) for name, other in keys), row.alias(_RIGHT))
    return lefts.unionByName(rights, allowMissingColumns=True)
