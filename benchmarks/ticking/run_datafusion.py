"""DataFusion: the query over Arrow tables in memory, recomputed at every tick."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pyarrow as pa

from ticking.child import Recomputing, Scenario, serve

datafusion: Any = import_module("datafusion")
# As many partitions as DataFusion uses by itself on a machine of two cores.
SLICE = 1 << 17


class DataFusion(Recomputing):
    """One session context; the base is loaded once for each size."""

    version = datafusion.__version__

    def __init__(self) -> None:
        self.context = datafusion.SessionContext()
        self.loaded: int | None = None

    def open(self, scenario: Scenario) -> None:
        """Register the base as in-memory tables."""
        self.sql = scenario.view.sql
        if self.loaded != scenario.rows:
            for name, batch in zip(("facts", "dims"), scenario.base(), strict=True):
                self.context.deregister_table(name)
                batches = pa.table(batch).to_batches(max_chunksize=SLICE)
                halves = [batches[0::2], batches[1::2]]
                self.context.register_record_batches(name, [half for half in halves if half])
            self.loaded = scenario.rows

    def view(self) -> pa.Table:
        """The query's rows."""
        return self.context.sql(self.sql).to_arrow_table()


if __name__ == "__main__":
    serve(DataFusion)
