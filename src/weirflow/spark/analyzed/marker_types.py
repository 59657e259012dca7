"""The types that Spark expects of a query's parameters: what its analyzer casts expressions of no type to."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import _parse_datatype_json_value

if TYPE_CHECKING:
    import pyarrow as pa

_NULLS = 3
_CAST, _COALESCE, _LITERAL = (
    f"org.apache.spark.sql.catalyst.expressions.{one}" for one in ("Cast", "Coalesce", "Literal")
)


def marker(number: int) -> str:
    """An expression without a type that stands for a parameter, and can be told from those for others.

    >>> marker(1)
    'coalesce(NULL, NULL, NULL, NULL)'
    """
    return f"coalesce({', '.join(['NULL'] * (_NULLS + number))})"


def marker_types(native: Any) -> Mapping[int, pa.DataType]:
    """The types of the markers in a classic frame, by their numbers; those that may be of any type are left out."""
    plan = json.loads(native._jdf.queryExecution().analyzed().toJSON())  # noqa: SLF001 - no public way
    found: dict[int, pa.DataType] = {}
    for trees in _lists(plan):
        for above, node, *children in _windows(trees):
            if above["class"] == _CAST and node["class"] == _COALESCE and all(map(_is_null, children)):
                kind = _arrow_type(above.get("dataType"))
                if kind is not None:
                    found.setdefault(len(children) - _NULLS, kind)
    return found


def _windows(nodes: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Each node with the one behind it and that one's children, where these are leaves."""
    for at, node in enumerate(nodes[1:], 1):
        count = node.get("num-children", 0)
        if count >= _NULLS and len(nodes) > at + count:
            yield nodes[at - 1 : at + 1 + count]


def _lists(value: Any) -> Iterator[list[dict[str, Any]]]:
    """All lists of nodes, at any depth: plans, and the expressions in their fields."""
    if isinstance(value, list):
        if value and all(isinstance(one, dict) and "class" in one for one in value):
            yield value
        for one in value:
            yield from _lists(one)
    elif isinstance(value, dict):
        for one in value.values():
            yield from _lists(one)


def _is_null(node: dict[str, Any]) -> bool:
    return node["class"] == _LITERAL and node.get("value") is None


def _arrow_type(kind: Any) -> pa.DataType | None:
    try:
        return None if kind in (None, "void") else to_arrow_type(_parse_datatype_json_value(kind))
    except (PySparkException, ValueError):  # a type that Arrow has not got
        return None
