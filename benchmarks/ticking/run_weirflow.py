"""Weirflow: one circuit, timed from an Arrow delta in to an Arrow delta out, commit included."""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np
import pyarrow as pa

import weirflow
from ticking.child import Scenario, Tick, serve
from ticking.data import DIMS, FACTS, WEIGHT, weighted
from weirflow.config import COMPILED
from weirflow.ivm import compiled
from weirflow.ivm.compiler.compile import compile_views
from weirflow.ivm.zset.batch import Batch


class Weirflow:
    """The incremental kernel in this process."""

    version = weirflow.__version__

    def __init__(self) -> None:
        if os.environ.get(COMPILED) != "off":
            compiled.load()

    def open(self, scenario: Scenario) -> None:
        """Compile the view and load both tables as one first tick."""
        compiled = compile_views({"facts": FACTS, "dims": DIMS}, {"view": scenario.view.sql})
        self.circuit = compiled.circuit
        self.names = [field.name for field in compiled.fields["view"]]
        self.changes = scenario.view.changes
        self.emitted = [self._arrow(self.circuit.start())]
        facts, dims = scenario.base()
        self._step({"facts": Batch.of_arrow(facts), "dims": Batch.of_arrow(dims)})

    def tick(self, delta: pa.RecordBatch) -> Tick:
        """One tick and its commit."""
        started = time.perf_counter()
        *columns, weights = delta.columns
        self._step({self.changes: Batch(tuple(columns), weights.to_numpy())})
        return Tick(time.perf_counter() - started)

    def view(self) -> pa.Table:
        """The sum of all deltas that the view emitted."""
        emitted = pa.Table.from_batches([batch for batch in self.emitted if batch is not None])
        summed = emitted.group_by(self.names).aggregate([(WEIGHT, "sum")])
        weights = summed[f"{WEIGHT}_sum"].to_numpy()
        if not np.isin(weights, (0, 1)).all():
            raise AssertionError("a row of the view has a weight other than one")
        return summed.filter(pa.array(weights == 1)).select(self.names)

    def _step(self, deltas: dict[str, Batch]) -> None:
        outputs = self.circuit.step(deltas)
        self.circuit.commit([])
        self.circuit.maintain(sum(len(delta) for delta in deltas.values()))
        self.emitted.append(self._arrow(outputs))

    def _arrow(self, outputs: dict[str, Batch]) -> Any:
        if "view" not in outputs or not len(outputs["view"]):
            return None
        output = outputs["view"]
        return weighted(pa.record_batch(list(output.columns), names=self.names), output.weights)


if __name__ == "__main__":
    serve(Weirflow)
