"""Errors of ours that code on Spark's executors raises: Spark hands on their text, in which they are written."""

from __future__ import annotations

import json
import re

from weirflow import errors
from weirflow.errors import QueryError

_MARKED = re.compile(r"weirflow-error:([0-9a-f]+):end")


def relayed(error: QueryError) -> RuntimeError:
    """What to raise on an executor, so that ``relayed_error`` finds the error in what comes of it."""
    told = [type(error).__name__, error.message, error.hint, error.condition]
    return RuntimeError(f"weirflow-error:{json.dumps(told).encode().hex()}:end")


def relayed_error(text: str) -> QueryError | None:
    """The error that is written in a text of Spark's; None if there is none."""
    found = _MARKED.search(text)
    if found is None:
        return None
    name, message, hint, condition = json.loads(bytes.fromhex(found[1]))
    kind = getattr(errors, name, QueryError)
    known = isinstance(kind, type) and issubclass(kind, QueryError)
    return (kind if known else QueryError)(message, hint=hint, condition=condition)
