"""Statements about materialized views, run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from weirflow.errors import TableNotFound
from weirflow.materialized.creation import NewView, create_view
from weirflow.materialized.opened import views_in
from weirflow.materialized.view import MaterializedView, materialized_view
from weirflow.sql.statements.materialized import (
    AlterMaterialized,
    CreateMaterialized,
    DescribeMaterialized,
    DropMaterialized,
    ExplainRefresh,
    RefreshMaterialized,
    ShowMaterialized,
    read_materialized,
)
from weirflow.sql.statements.parameters import with_literals

if TYPE_CHECKING:
    from weirflow.flows.host import FlowSession, Params
    from weirflow.materialized.history import RefreshRecord

_REFRESHED = pa.schema(
    [
        ("view", pa.string()),
        ("mode", pa.string()),
        ("code", pa.string()),
        ("why", pa.string()),
        ("version", pa.string()),
        ("rows", pa.int64()),
        ("seconds", pa.float64()),
        ("state_seconds", pa.float64()),
    ]
)
_LISTED = pa.schema([("name", pa.string()), ("kind", pa.string()), ("policy", pa.string()), ("query", pa.string())])
_DESCRIBED = pa.schema([("property", pa.string()), ("value", pa.string())])


class MaterializedStatements:
    """Runs what a Session's SQL says about materialized views."""

    def __init__(self, session: FlowSession) -> None:
        self._session = session

    def run(self, sql: str, params: Params | None) -> pa.Table:  # noqa: PLR0911 - one for each statement
        """What a statement returns, which has happened by then."""
        match read_materialized(sql if params is None else with_literals(sql, params).text):
            case CreateMaterialized() as statement:
                return self._create(statement)
            case RefreshMaterialized(name, full, cascade):
                done = materialized_view(self._session, name).refresh_all(full=full, cascade=cascade)
                return pa.Table.from_pylist([_refreshed(view, one) for view, one in done], _REFRESHED)
            case AlterMaterialized(name, query):
                materialized_view(self._session, name).alter(query.text)
                return pa.table({})
            case DropMaterialized() as statement:
                return self._drop(statement)
            case ShowMaterialized(schema):
                return self._show(schema)
            case DescribeMaterialized(name):
                found = described(materialized_view(self._session, name))
                return pa.Table.from_pylist([{"property": one, "value": found[one]} for one in found], _DESCRIBED)
            case ExplainRefresh(name):
                return pa.table({"plan": [materialized_view(self._session, name).explain_refresh()]})

    def _create(self, statement: CreateMaterialized) -> pa.Table:
        given = {"using": statement.using} if statement.using else {}
        wanted = NewView(
            statement.name,
            statement.query.text,
            partitioned_by=statement.partitioned_by,
            comment=statement.comment,
            properties=statement.properties,
            if_not_exists=statement.if_not_exists,
            **given,
        )
        create_view(self._session, wanted)
        return pa.table({})

    def _drop(self, statement: DropMaterialized) -> pa.Table:
        try:
            materialized_view(self._session, statement.name).drop()
        except TableNotFound:
            if not statement.if_exists:
                raise
        return pa.table({})

    def _show(self, schema: str | None) -> pa.Table:
        found = [
            {"name": one.name, "kind": one.kind, "policy": one.definition.policy, "query": one.definition.sql}
            for one in views_in(self._session, schema)
        ]
        return pa.Table.from_pylist(found, _LISTED)


def described(view: MaterializedView) -> dict[str, str | None]:
    """What a view is and how fresh, as text."""
    found = view.describe()
    last, plan = found.last, found.plan
    versions = {f"holds {name}": mark.version for name, mark in found.holds.items()}
    current = {f"current {name}": mark.version for name, mark in found.current.items()}
    return {
        "name": found.name,
        "kind": found.kind,
        "query": found.sql,
        "refresh policy": found.policy,
        "refreshes": str(found.epoch),
        **versions,
        **current,
        "rows behind": None if found.changed_rows is None else str(found.changed_rows),
        "next refresh": plan.mode
        if plan.obstacle is None
        else f"{plan.mode}: {plan.obstacle.code}, {plan.obstacle.why}",
        "last refresh": None if last is None else f"{last.mode} at {last.finished_at:%Y-%m-%d %H:%M:%S} UTC",
        "last cost": None
        if last is None
        else f"{last.cost.seconds:g} s, and {last.cost.state_seconds:g} s to build or catch up state",
    }


def _refreshed(view: str, record: RefreshRecord) -> dict[str, Any]:
    return {
        "view": view,
        "mode": record.mode,
        "code": record.code,
        "why": record.why,
        "version": record.version,
        "rows": record.rows,
        "seconds": record.cost.seconds,
        "state_seconds": record.cost.state_seconds,
    }
