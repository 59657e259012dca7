"""Krishiv: its incremental job in an embedded session, timed from an Arrow delta in to the end of its step.

One shard: with more, joins are refused and every shard has a top 10 of its own. The step does not return the view's
delta and the job has no call for it, so handing it out is not charged.
"""

from __future__ import annotations

import os
import time
from importlib import import_module
from importlib.metadata import version
from typing import Any

import pyarrow as pa

from ticking.child import Scenario, Tick, serve
from ticking.data import WEIGHT

os.environ["KRISHIV_IVM_SHARDS"] = "1"
# The incremental job is not among the names that the package exports.
krishiv: Any = import_module("krishiv.krishiv")


class Krishiv:
    """One job for one view; a process opens it once."""

    version = version("krishiv")

    def open(self, scenario: Scenario) -> None:
        """Register the view and load the base as one first step."""
        view = scenario.view
        self.columns = list(view.columns)
        self.changes = view.changes
        self.joins = "dims" in view.sql
        self.job = krishiv.Session.embedded().ivm(view.name)
        schema = type("Columns", (krishiv.Schema,), {"__annotations__": dict(view.columns)})
        self.job.register_view("view", view.sql, schema, is_materialized=True)
        facts, dims = scenario.base()
        self.job.feed("facts", krishiv.DeltaBatch.from_inserts(krishiv.Batch(facts)))
        if self.joins:
            self.job.feed("dims", krishiv.DeltaBatch.from_inserts(krishiv.Batch(dims)))
        self.job.step()

    def tick(self, delta: pa.RecordBatch) -> Tick:
        """Feed and step; rows are told apart by their weights before the clock starts."""
        weights = delta[WEIGHT].to_numpy()
        rows = delta.select(delta.schema.names[:-1])
        added, removed = (rows.filter(pa.array(weights == sign)) for sign in (1, -1))
        started = time.perf_counter()
        before = krishiv.Batch(removed) if len(removed) else None
        after = krishiv.Batch(added) if len(added) else None
        self.job.feed(self.changes, krishiv.DeltaBatch.from_cdc(before=before, after=after))
        self.job.step()
        return Tick(time.perf_counter() - started)

    def view(self) -> pa.Table:
        """The job's snapshot. Without a join, its names are sorted but its values are in the query's order."""
        snapshot = pa.table(self.job.snapshot("view").to_arrow())
        return snapshot.select(self.columns) if self.joins else snapshot.rename_columns(self.columns)


if __name__ == "__main__":
    serve(Krishiv)
