"""An engine for views that are recomputed, which needs no Spark: another flow answers the query."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weirflow.ivm.flow import IncrementalFlow

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa


class FlowEngine:
    """Answers queries over whole tables, and counts them."""

    def __init__(self) -> None:
        self.runs = 0

    def schema(self, sql: str, tables: Mapping[str, pa.Schema]) -> pa.Schema:
        return self._result(sql, {name: schema.empty_table() for name, schema in tables.items()}).schema

    def run(self, sql: str, tables: Mapping[str, pa.Table]) -> pa.Table:
        self.runs += 1
        return self._result(sql, tables)

    def _result(self, sql: str, tables: Mapping[str, pa.Table]) -> pa.Table:
        flow = IncrementalFlow("engine")
        for name, table in tables.items():
            flow.register_source(name, table.schema)
            flow.load(name, table)
        return flow.sql(sql)
