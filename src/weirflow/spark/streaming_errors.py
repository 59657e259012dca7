"""Why a streaming query of Spark's ended, as ours."""

from __future__ import annotations

from typing import Any

from weirflow.errors import QueryError, WeirflowError
from weirflow.spark.errors import translate


def query_error(query: Any) -> WeirflowError | None:
    """The error that ended a native query; None if it runs, was stopped or is done."""
    try:
        found = query.exception()
    except Exception as error:
        known = translate(error)
        if known is None:
            raise
        return known
    if found is None:
        return None
    known = translate(found) or QueryError(str(found))
    known.__cause__ = found
    return known
