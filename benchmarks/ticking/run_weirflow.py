"""Weirflow as its users call it: a flow that is ticked with a delta, and a watch that gives the view's delta."""

from __future__ import annotations

import os
import time

import pyarrow as pa

import weirflow
from ticking.child import Scenario, Tick, serve
from ticking.data import DIMS, FACTS
from ticking.emitted import added_up
from weirflow import DeltaBatch, IncrementalFlow
from weirflow.environment import COMPILED
from weirflow.ivm import compiled


class Weirflow:
    """A flow in this process, with its history and all else that is there by default."""

    version = weirflow.__version__

    def __init__(self) -> None:
        if os.environ.get(COMPILED) != "off":
            compiled.load()

    def open(self, scenario: Scenario) -> None:
        """Register the view and load both tables as one first tick."""
        self.flow = IncrementalFlow()
        self.flow.register_source("facts", FACTS)
        self.flow.register_source("dims", DIMS)
        self.flow.register_view("view", scenario.view.sql)
        self.changes = scenario.view.changes
        self.watch = self.flow.watch_output("view", snapshot=True)
        self.emitted: list[pa.RecordBatch] = []
        facts, dims = scenario.base()
        self.flow.tick({"facts": facts, "dims": dims})
        self._receive()

    def tick(self, delta: pa.RecordBatch) -> Tick:
        """One tick, from the Arrow delta of a table to that of the view."""
        started = time.perf_counter()
        self.flow.tick(self.changes, DeltaBatch.from_weighted(delta))
        self._receive()
        return Tick(time.perf_counter() - started)

    def view(self) -> pa.Table:
        """The sum of all deltas that the view emitted, which is also what the view holds."""
        rows = added_up(pa.Table.from_batches(self.emitted))
        if DeltaBatch.from_inserts(rows) != DeltaBatch.from_inserts(self.flow.snapshot("view")):
            raise AssertionError("the view's deltas do not add up to its rows")
        return rows

    def _receive(self) -> None:
        while len(self.watch):
            _, delta = next(self.watch)
            self.emitted.append(delta.to_arrow())


if __name__ == "__main__":
    serve(Weirflow)
