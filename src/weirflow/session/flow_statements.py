"""Statements about flows, run: sources and views are made, described and dropped, changes become ticks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from weirflow.errors import AlreadyExists, ConfigError, TableNotFound, did_you_mean
from weirflow.ivm.compiler.program import Mode
from weirflow.ivm.flow.query import explain_query
from weirflow.ivm.flow.source import Lateness
from weirflow.ivm.flow.state import FlowState
from weirflow.session.flow_changes import SourceRows, delete, insert, update
from weirflow.session.flow_merge import merge
from weirflow.session.flow_queries import FlowQueries, placed
from weirflow.sql.composed import ComposedSql, Fragment
from weirflow.sql.flow_statements import (
    Change,
    CreateSource,
    CreateView,
    Delete,
    Describe,
    Drop,
    Explain,
    Insert,
    Kind,
    Merge,
    Refresh,
    Show,
    Update,
    read_statement,
    statement_target,
)
from weirflow.sql.relation_name import RelationName
from weirflow.sql.statements import is_about_flows
from weirflow.sql.table_references import table_references
from weirflow.sql.types import type_name

if TYPE_CHECKING:
    from weirflow.ivm.flow.summary import StepSummary
    from weirflow.session.flows import Flows, SessionFlow
    from weirflow.session.session import Session
    from weirflow.session.shown_relations import ShownRelations

_DEFAULT_FLOW = "default"


class FlowStatements:
    """Runs what a Session's SQL says about flows."""

    def __init__(self, session: Session, flows: Flows, shown: ShownRelations) -> None:
        self._session = session
        self._flows = flows
        self._shown = shown

    def has(self, sql: str) -> bool:
        """Whether a statement is about flows: by its words, or because a source or view, and no table, has its name."""
        if is_about_flows(sql):
            return True
        target = statement_target(sql)
        return target is not None and not self._shown.is_own_table(target) and self._flows.find(target) is not None

    def run(self, sql: str) -> pa.Table | None:  # noqa: PLR0911 - one for each statement
        """What the statement returns, which has happened by then; None if it is not about flows."""
        match read_statement(sql):
            case None:
                return None
            case CreateSource() as statement:
                return self._create_source(statement)
            case CreateView() as statement:
                return self._create_view(statement, sql)
            case Drop() as statement:
                return self._drop(statement)
            case Show() as statement:
                return self._show(statement)
            case Describe() as statement:
                return self._describe(statement)
            case Refresh() as statement:
                flow, name = self._found(statement.name, Kind.VIEW)
                flow.refresh_view(name)
                return _nothing()
            case Explain() as statement:
                return self._explain(statement, sql)
            case change:
                return self._change(change, sql)

    # What flows are made of

    def _create_source(self, statement: CreateSource) -> pa.Table:
        flow = self._flow_for(statement.name)
        name = statement.name.name
        with flow.exclusive():
            if _has(flow.sources, name) and statement.if_not_exists:
                return _nothing()
            self._refuse_taken(flow, statement.name)
            lateness = Lateness(*statement.lateness) if statement.lateness else None
            flow.register_source(name, statement.schema, key=statement.key, dedup=statement.dedup, lateness=lateness)
        return _nothing()

    def _create_view(self, statement: CreateView, sql: str) -> pa.Table:
        flow = self._flow_for(statement.name)
        query = _without_own_flow(ComposedSql([statement.query]), flow)
        mode, materialized = statement.mode, statement.materialized
        with flow.exclusive(), placed(query, sql):
            known = {one.casefold(): one for one in flow.views}
            name = known.get(statement.name.name.casefold())
            if name is not None and statement.if_not_exists:
                return _nothing()
            if name is not None and statement.replace:
                flow.replace_view(name, query.text, mode=mode, materialized=materialized)
                return _nothing()
            self._refuse_taken(flow, statement.name)
            try:
                flow.explain_query(query.text, mode=mode)
            except TableNotFound as error:
                raise self._not_in_flow(error, flow, query) from None
            flow.register_view(statement.name.name, query.text, mode=mode, materialized=materialized)
        return _nothing()

    def _drop(self, statement: Drop) -> pa.Table:
        try:
            flow, name = self._found(statement.name, statement.kind)
        except TableNotFound:
            if statement.if_exists:
                return _nothing()
            raise
        flow.drop(name)
        self._shown.forget(flow, name)
        return _nothing()

    # Looking at them

    def _show(self, statement: Show) -> pa.Table:
        if statement.flow is None:
            flows = self._flows.all()
        else:
            named = self._flows.named(statement.flow)
            if named is None:
                known = [flow.name for flow in self._flows.all()]
                hint = did_you_mean(statement.flow, known) or f"there is {', '.join(known) or 'none'}"
                raise ConfigError(f"No flow is called {statement.flow!r}.", hint=hint)
            flows = (named,)
        wants_sources = statement.kind is Kind.SOURCE
        found = [
            (flow, one)
            for flow in sorted(flows, key=lambda flow: flow.name)
            for one in sorted(flow.describe().relations, key=lambda one: one.name)
            if (one.kind == "source") == wants_sources
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

    def _describe(self, statement: Describe) -> pa.Table:
        flow, name = self._found(statement.name, statement.kind)
        with flow.exclusive():
            info = next(one for one in flow.describe().relations if one.name == name)
            rows = [(field.name, type_name(field.type)) for field in flow.schema(name)]
            about = {
                "Flow": flow.name,
                "Mode": info.kind,
                "Rows": "not kept" if info.rows is None else str(info.rows),
                "Epoch": str(flow.epoch),
            }
            if name in flow.sources and flow.source(name).key:
                about["Key"] = ", ".join(flow.source(name).key)
        rows += [("", ""), ("# Incremental", ""), *about.items()]
        titles = ("col_name", "data_type")
        return pa.table({title: pa.array([row[at] for row in rows], pa.string()) for at, title in enumerate(titles)})

    def _explain(self, statement: Explain, sql: str) -> pa.Table:
        if isinstance(statement.what, RelationName):
            flow, name = self._found(statement.what, None)
            return _plan(flow.explain(name))
        read = self._flow_read(statement.what)
        query = ComposedSql([statement.what])
        if read is None:
            with placed(query, sql):
                return _plan(explain_query(FlowState(), query.text, Mode.AUTO))
        query = _without_own_flow(query, read)
        with placed(query, sql):
            return _plan(read.explain_query(query.text))

    # Changes

    def _change(self, change: Change, sql: str) -> pa.Table:
        """One statement is one tick: if it fails, in a view for instance, nothing has happened and nothing waits."""
        named = change.target if isinstance(change, Insert) else change.target.name
        flow, name = self._found(named, Kind.SOURCE)
        queries = FlowQueries(self._session, self._flows, self._shown, flow, sql)
        with flow.exclusive():
            waits = flow.pending
            rows = SourceRows(flow, name, queries)
            match change:
                case Insert():
                    edit = insert(change, rows)
                case Delete():
                    edit = delete(change, rows)
                case Update():
                    edit = update(change, rows)
                case Merge():
                    edit = merge(change, rows)
            try:
                return _summary(flow.tick(name, rows.delta(edit)))
            finally:
                if not waits:
                    flow.discard()

    # Inner workings

    def _flow_for(self, name: RelationName) -> SessionFlow:
        """The flow that something new belongs to."""
        wanted = name.flow or _DEFAULT_FLOW
        return self._flows.named(wanted) or self._flows.open(wanted, options={})

    def _found(self, name: RelationName, kind: Kind | None) -> tuple[SessionFlow, str]:
        """The flow of a source or view and its name there; an error if there is none, or of the other kind."""
        found = self._flows.find(name)
        if found is None:
            known = [f"{flow.name}.{one}" for flow in self._flows.opened for one in (*flow.sources, *flow.views)]
            plain = [one.partition(".")[2] for one in known]
            hint = did_you_mean(str(name), known if name.flow else plain) or self._flows.unopened
            raise TableNotFound(f"No flow has a source or view {str(name)!r}.", hint=hint)
        is_source = found[1] in found[0].sources
        if kind is not None and is_source != (kind is Kind.SOURCE):
            other = Kind.SOURCE if is_source else Kind.VIEW
            raise ConfigError(
                f"{str(name)!r} is {_article(other)}, not {_article(kind)}.",
                hint="rows are inserted, changed and deleted in sources" if kind is Kind.SOURCE else None,
            )
        return found

    def _flow_read(self, query: Fragment) -> SessionFlow | None:
        """The flow whose sources and views a query reads; None if it reads none."""
        for reference in table_references(query.text):
            name = reference.relation
            found = None if name is None else self._flows.find(name)
            if found is not None:
                return found[0]
        return None

    def _refuse_taken(self, flow: SessionFlow, name: RelationName) -> None:
        if _has((*flow.sources, *flow.views), name.name):
            raise AlreadyExists(
                f"The flow {flow.name!r} already has a source or view {name.name!r}.",
                hint="drop it first, choose another name, or say IF NOT EXISTS",
            )
        if name.flow is None and self._shown.is_own_table(name):
            raise AlreadyExists(
                f"A table is called {name.name!r}, and would hide the source or view from SQL.",
                hint=f"choose another name, or name the flow too, as in shop.{name.name}",
            )

    def _not_in_flow(self, error: TableNotFound, flow: SessionFlow, query: ComposedSql) -> TableNotFound:
        """The error for a view that reads what its flow does not have, with a word on who has it."""
        for reference in table_references(query.text):
            name = reference.relation
            if name is None or (name.flow is None and _has((*flow.sources, *flow.views), name.name)):
                continue
            elsewhere = self._flows.find(name)
            if elsewhere is not None:
                there = elsewhere[0].name
                error.hint = f"{name.name} is in the flow {there!r}: put that before the view's name too"
            elif self._shown.is_own_table(name):
                error.hint = (
                    f"{name} is a table; a view reads sources and views of its flow: CREATE SOURCE, then INSERT"
                )
        return error


def _without_own_flow(query: ComposedSql, flow: SessionFlow) -> ComposedSql:
    """The query with the names of the flow's own sources and views alone, as views have them."""
    known = {one.casefold(): one for one in (*flow.sources, *flow.views)}
    edits = []
    for reference in table_references(query.text):
        name = reference.relation
        is_own = name is not None and name.flow is not None and name.flow.casefold() == flow.name.casefold()
        if name is not None and is_own and name.name.casefold() in known:
            edits.append((reference.start, reference.end, known[name.name.casefold()]))
    return query.replaced(edits)


def _has(names: tuple[str, ...], name: str) -> bool:
    return name.casefold() in {one.casefold() for one in names}


def _article(kind: Kind) -> str:
    return "a source" if kind is Kind.SOURCE else "an incremental view"


def _nothing() -> pa.Table:
    return pa.table({})


def _plan(text: str) -> pa.Table:
    return pa.table({"plan": [text]})


def _summary(step: StepSummary) -> pa.Table:
    counts = (step.epoch, step.rows_in, step.rows_out, step.late, step.dropped)
    titles = ("epoch", "rows_in", "rows_out", "late", "dropped")
    return pa.table({title: pa.array([count], pa.int64()) for title, count in zip(titles, counts, strict=True)})
