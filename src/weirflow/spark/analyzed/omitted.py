"""What Spark's JSON of a plan leaves out or writes so that it cannot be read back, from the objects themselves."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from weirflow.spark.analyzed.remote import Remote
from weirflow.sql.resolved.node import OMITTED

Read = Callable[[Remote], Any]


def _eval_mode(remote: Remote) -> str:
    return str(remote.get().evalMode().toString())


def _context(remote: Remote) -> tuple[str, bool]:
    """How an operator treats what does not fit, and whether decimals may lose digits."""
    context = remote.get().evalContext()
    return str(context.evalMode().toString()), bool(context.allowDecimalPrecisionLoss())


def _common_id(remote: Remote) -> int:
    return int(remote.get().id().id())


def _options(remote: Remote) -> dict[str, str]:
    pairs = remote.get().options().toSeq()
    items = [pairs.apply(at) for at in range(pairs.size())]
    return {str(one._1()): str(one._2()) for one in items}  # noqa: SLF001 - a pair of Scala's


_ARITHMETIC = ("Add", "Subtract", "Multiply", "Divide", "IntegralDivide", "Remainder", "Pmod", "Sum")
OMISSIONS: Mapping[str, Mapping[str, Read]] = {
    "Cast": {"evalMode": _eval_mode},
    "Average": {"evalMode": _eval_mode},
    **{key: {"evalContext": _context} for key in _ARITHMETIC},
    "Like": {"escapeChar": lambda remote: str(remote.get().escapeChar())},
    "ILike": {"escapeChar": lambda remote: str(remote.get().escapeChar())},
    "CommonExpressionDef": {"id": _common_id},
    **{key: {"options": _options} for key in ("JsonToStructs", "StructsToJson", "SchemaOfJson")},
    "CommonExpressionRef": {"id": _common_id},
}
"""By class and field; what is not here stays ``OMITTED``."""

_EXACT_TEXT = ("boolean", "byte", "short", "integer", "long", "string", "double", "float")
_MOST_ROWS = 1_000
_COUNTED = ("date", "timestamp", "timestamp_ntz")


def literal_value(written: str | None, kind: Any, remote: Remote) -> Any:
    """A literal's value as Python has it; times in microseconds or days since 1970, whatever zone shows them."""
    if written is None or not isinstance(kind, str):
        return None if remote.get().value() is None else OMITTED
    if kind.startswith("decimal"):
        return Decimal(written)
    if kind == "binary":
        return bytes(remote.get().value())
    if kind in _COUNTED or kind.startswith("interval"):
        return int(remote.get().value())
    return _parsed(written, kind) if kind in _EXACT_TEXT else OMITTED


def _parsed(written: str, kind: str) -> Any:
    if kind == "string":
        return written
    if kind == "boolean":
        return written == "true"
    return float(written) if kind in ("double", "float") else int(written)


def local_rows(output: Sequence[Any], remote: Remote) -> Any:
    """The rows of constants, their values as ``literal_value``'s; ``OMITTED`` if there are many, or of other types."""
    rows = remote.get().data()
    if not rows.size():
        return ()
    kinds = [one[0]["dataType"] for one in output]
    if rows.size() > _MOST_ROWS or not all(isinstance(kind, str) for kind in kinds):
        return OMITTED
    types = [remote.get().output().apply(at).dataType() for at in range(len(kinds))]
    found = tuple(
        tuple(_cell(rows.apply(place), at, kind, types[at]) for at, kind in enumerate(kinds))
        for place in range(rows.size())
    )
    return OMITTED if any(cell is OMITTED for row in found for cell in row) else found


def pivot_values(remote: Remote) -> Any:
    """The values that PIVOT makes columns of, each a tuple of one for each column it is about; ``OMITTED`` as above."""
    pivot = remote.get()
    column = json.loads(pivot.pivotColumn().dataType().json())
    values = [pivot.pivotColumnValues().apply(at) for at in range(pivot.pivotColumnValues().size())]
    if isinstance(column, str):
        found = tuple((_value(value, column),) for value in values)
    elif column["type"] == "struct" and all(isinstance(one["type"], str) for one in column["fields"]):
        kinds = [one["type"] for one in column["fields"]]
        types = [pivot.pivotColumn().dataType().apply(at).dataType() for at in range(len(kinds))]
        found = tuple(tuple(_cell(value, at, kind, types[at]) for at, kind in enumerate(kinds)) for value in values)
    else:
        return OMITTED
    return OMITTED if any(part is OMITTED for value in found for part in value) else found


def _cell(row: Any, at: int, kind: str, jvm_type: Any) -> Any:
    return None if row.isNullAt(at) else _value(row.get(at, jvm_type), kind)


def _value(value: Any, kind: str) -> Any:
    if value is None:
        return None
    if kind.startswith("decimal"):
        return Decimal(value.toString())
    if kind == "string":
        return str(value.toString())
    if kind == "binary":
        return bytes(value)
    if kind in _COUNTED or kind.startswith("interval"):
        return int(value)
    return value if kind in _EXACT_TEXT else OMITTED
