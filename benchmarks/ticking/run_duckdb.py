"""DuckDB: the query over tables of its own, recomputed at every tick."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pyarrow as pa

from ticking.child import Recomputing, Scenario, serve

duckdb: Any = import_module("duckdb")


class DuckDB(Recomputing):
    """One in-memory database; the base is loaded once for each size."""

    version = duckdb.__version__

    def __init__(self) -> None:
        self.connection = duckdb.connect()
        self.loaded: int | None = None

    def open(self, scenario: Scenario) -> None:
        """Copy the base into native tables."""
        self.sql = scenario.view.sql
        if self.loaded != scenario.rows:
            facts, dims = (pa.table(batch) for batch in scenario.base())
            for name, table in (("facts", facts), ("dims", dims)):
                self.connection.register("arrow", table)
                self.connection.execute(f"CREATE OR REPLACE TABLE {name} AS SELECT * FROM arrow")
                self.connection.unregister("arrow")
            self.loaded = scenario.rows

    def view(self) -> pa.Table:
        """The query's rows."""
        return self.connection.sql(self.sql).to_arrow_table()


if __name__ == "__main__":
    serve(DuckDB)
