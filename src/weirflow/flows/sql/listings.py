"""What statements tell about flows: their sources and views, and how these are maintained."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pyarrow as pa

from weirflow.sql.snapshots import table_of
from weirflow.sql.statements.flows import Kind
from weirflow.sql.types import type_name

if TYPE_CHECKING:
    from weirflow.flows.registry import Flow


def listing(flows: Iterable[Flow], kind: Kind) -> pa.Table:
    """All sources, or all views, of some flows."""
    wants_sources = kind is Kind.SOURCE
    found = [
        (flow, one)
        for flow in sorted(flows, key=lambda flow: flow.name)
        for one in sorted(flow.describe().relations, key=lambda one: one.name)
        if one.kind != "snapshot" and (one.kind == "source") == wants_sources
    ]
    table = pa.table(
        {
            "flow": pa.array([flow.name for flow, _ in found], pa.string()),
            "name": pa.array([one.name for _, one in found], pa.string()),
            "rows": pa.array([one.rows for _, one in found], pa.int64()),
        }
    )
    if wants_sources:
        keys = [", ".join(flow.source(one.name).key) or None for flow, one in found]
        return table.append_column("key", pa.array(keys, pa.string()))
    table = table.append_column("mode", pa.array([one.kind for _, one in found], pa.string()))
    return table.append_column("reads", pa.array([", ".join(one.reads) for _, one in found], pa.string()))


def description(flow: Flow, name: str) -> pa.Table:
    """The columns of a source or view, and what there is to say about it."""
    with flow.exclusive():
        info = next(one for one in flow.describe().relations if one.name == name)
        rows = [(field.name, type_name(field.type)) for field in flow.schema(name)]
        about = {
            "Flow": flow.name,
            "Mode": info.kind,
            "Rows": "not kept" if info.rows is None else str(info.rows),
            "Epoch": str(flow.epoch),
        }
        if info.settings is not None:
            about["Settings"] = str(info.settings)
        tables = [table for table in map(table_of, info.reads) if table is not None]
        if tables:
            about["Snapshots"] = f"{', '.join(tables)}; REFRESH reads them again"
        if name in flow.sources and flow.source(name).key:
            about["Key"] = ", ".join(flow.source(name).key)
        if name in flow.sources and flow.source(name).dimensions:
            about["Dimensions"] = ", ".join(f"{one} = {many}" for one, many in flow.source(name).dimensions)
    rows += [("", ""), ("# Incremental", ""), *about.items()]
    titles = ("col_name", "data_type")
    return pa.table({title: pa.array([row[at] for row in rows], pa.string()) for at, title in enumerate(titles)})
