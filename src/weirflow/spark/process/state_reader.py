"""Reads the state of process functions from the checkpoint of a Spark query, by Spark's own state reader."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as sf

from weirflow.errors import StateError, did_you_mean
from weirflow.spark.process.copies import BROADCAST_STATE
from weirflow.spark.process.lanes import LANE
from weirflow.spark.process.state import PLAIN, STAMPED, key_of
from weirflow.state.stored_entries import SlotReader, StoredEntry, slot_name

if TYPE_CHECKING:
    from weirflow.state import StateDescriptor

_KINDS = {"ValueState": "value", "ListState": "list", "MapState": "map"}
_VALUE_COLUMNS = {"value": "value", "list": "list_element", "map": "user_map_value"}


class SparkSlot:
    """A slot of a process function, as of a batch.

    Args:
        spark: the native session.
        location: the query's checkpoint.
        operator: the number of the operator in the query.
        slot: the name or descriptor.
        batch: as of which batch; the last one without it.

    Raises:
        StateError: the query has no such operator or slot, or it is not one of a process function.
    """

    def __init__(
        self, spark: Any, location: str, operator: int, slot: str | StateDescriptor, batch: int | None
    ) -> None:
        name = slot_name(slot)
        self.kind = _kind(spark, location, operator, name)
        reader = spark.read.format("statestore").option("operatorId", operator).option("stateVarName", name)
        if batch is not None:
            reader = reader.option("batchId", batch)
        self._frame = reader.load(location)
        types = {field.name: field.dataType for field in self._frame.schema.fields}
        names: list[str] = types["key"].fieldNames()
        self._of_key = slice(1, -1) if names[0] == LANE else slice(None)
        self.keys = names[self._of_key]
        self._path = _path(types[_VALUE_COLUMNS[self.kind]], _VALUE_COLUMNS[self.kind], name)
        self._reader = SlotReader(slot, self.kind, stamped=self._path.endswith(STAMPED))

    def entries(self, key: Any = None) -> Iterator[StoredEntry]:
        """The entries of one key, or of all."""
        entry = "user_map_key.key" if self.kind == "map" else "NULL"
        frame = self._frame
        if key is not None:
            values = key if isinstance(key, tuple) else (key,)
            for column, value in zip(self.keys, values, strict=True):
                frame = frame.where(sf.col("key").getField(column).eqNullSafe(sf.lit(value)))
        rows = frame.selectExpr("key", f"{entry} AS entry", f"{self._path} AS data").collect()
        places: dict[Any, int] = {}
        for row in rows:
            owner = key_of(row["key"][self._of_key])
            value = self._reader.value(bytes(row["data"]), owner)
            if self.kind == "list":
                places[owner] = places.get(owner, -1) + 1
                yield StoredEntry(owner, places[owner], value)
            else:
                yield StoredEntry(owner, self._reader.entry(bytes(row["entry"] or b"")), value)


def _kind(spark: Any, location: str, operator: int, slot: str) -> str:
    operators = {row["operatorId"]: row for row in spark.read.format("state-metadata").load(location).collect()}
    if operator not in operators:
        known = ", ".join(f"{at} ({row['operatorName']})" for at, row in sorted(operators.items())) or "none"
        raise StateError(f"The query at {location} has no operator {operator}.", hint=f"its operators are: {known}")
    properties = json.loads(operators[operator]["operatorProperties"] or "{}")
    variables = {one["stateName"]: one["stateVariableType"] for one in properties.get("stateVariables", [])}
    kinds = {name: _KINDS[kind] for name, kind in variables.items() if _is_of_keys(name, kind)}
    if slot not in kinds:
        names = ", ".join(sorted(kinds)) or "none"
        raise StateError(
            f"The operator {operator} of the query at {location} has no slot {slot!r}.",
            hint=did_you_mean(slot, kinds) or f"its slots are: {names}",
        )
    return kinds[slot]


def _is_of_keys(name: str, kind: str) -> bool:
    return kind in _KINDS and not name.startswith(BROADCAST_STATE)


def _path(kind: Any, column: str, slot: str) -> str:
    """Where the bytes of a value are: with a time to live Spark puts them one level deeper."""
    names = kind.fieldNames()
    for name in (PLAIN, STAMPED):
        if name in names:
            inner = kind[name].dataType
            return f"{column}.{name}" if not hasattr(inner, "fieldNames") else _path(inner, f"{column}.{name}", slot)
    raise StateError(f"The state {slot!r} was not written by a process function.", hint="read it with Spark's reader")
