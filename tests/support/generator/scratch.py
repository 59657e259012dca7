"""Views computed by a new circuit from whole tables in one tick: the recompute that knows all of the grammar."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from support.maintained import batch_rows

from weirflow.ivm.circuit.circuit import Circuit
from weirflow.ivm.compiler.lower import Lowering
from weirflow.ivm.zset.batch import Batch
from weirflow.sql.passes.optimize import logical_plan
from weirflow.sql.plan import Field

if TYPE_CHECKING:
    from support.generator.case import Case
    from support.generator.deltas import Tables
    from support.generator.values import Row

    from weirflow.sql.plan import Plan


class Scratch:
    """The plans of a case's views, which are made once, when first asked for, and run often."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._sources = case.sources

    @cached_property
    def _plans(self) -> dict[str, Plan]:
        catalog = {
            name: tuple(Field(field.name, field.type) for field in schema) for name, schema in self._sources.items()
        }
        plans = {}
        for view in self._case.views:
            plans[view.name] = logical_plan(view.text.spark, catalog)
            catalog[view.name] = plans[view.name].fields
        return plans

    def views(self, tables: Tables) -> dict[str, Counter[Row]]:
        """All views over these tables; raises what the circuit raises."""
        circuit = Circuit()
        nodes = {name: circuit.add_source(name, schema.types) for name, schema in self._sources.items()}
        lowering = Lowering(circuit, nodes)
        for name, plan in self._plans.items():
            nodes[name] = lowering.node(plan)
            circuit.add_view(name, nodes[name])
        result: dict[str, Counter[Row]] = {name: Counter() for name in self._plans}
        filled = {name: self._batch(name, rows) for name, rows in tables.rows.items() if rows}
        for outputs in (circuit.start(), circuit.step(filled)):
            for name, delta in outputs.items():
                for row, weight in zip(batch_rows(delta), delta.weights.tolist(), strict=True):
                    result[name][row] += weight
        return {name: Counter({row: weight for row, weight in rows.items() if weight}) for name, rows in result.items()}

    def _batch(self, name: str, rows: list[Row]) -> Batch:
        columns = tuple(
            pa.array([row[place] for row in rows], kind) for place, kind in enumerate(self._sources[name].types)
        )
        return Batch(columns, np.ones(len(rows), np.int64))
