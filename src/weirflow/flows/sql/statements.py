"""Statements about flows, run: sources and views are made, described and dropped, changes become ticks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from weirflow.errors import AlreadyExists, ConfigError, TableNotFound, UnsupportedError, did_you_mean
from weirflow.flows.own_session import settings_of
from weirflow.flows.sql.changes import delete, insert, update
from weirflow.flows.sql.listings import description, listing
from weirflow.flows.sql.local_change import LocalChange
from weirflow.flows.sql.merge import merge
from weirflow.flows.sql.queries import FlowQueries, placed
from weirflow.flows.sql.sharded_change import ShardedChange
from weirflow.ivm.compiler.view import Mode
from weirflow.ivm.flow.outputs.subscription import Subscription
from weirflow.ivm.flow.query import explain_query
from weirflow.ivm.flow.source import Lateness
from weirflow.sql.statements.changes import Change, Delete, Insert, Merge, Update
from weirflow.sql.statements.composed import ComposedSql, Fragment
from weirflow.sql.statements.flows import (
    CreateFlow,
    CreateSource,
    CreateView,
    Describe,
    Drop,
    Explain,
    Kind,
    Refresh,
    Show,
    read_statement,
)
from weirflow.sql.statements.kinds import About, StatementKind
from weirflow.sql.statements.relation_name import RelationName
from weirflow.sql.statements.subscribe import read_subscribe
from weirflow.sql.statements.table_references import table_references

if TYPE_CHECKING:
    from weirflow.flows.host import FlowSession
    from weirflow.flows.registry import Flow, FlowRegistry
    from weirflow.flows.seen import SeenFlows
    from weirflow.flows.sql.shown_relations import ShownRelations
    from weirflow.ivm.flow.summary import StepSummary

_DEFAULT_FLOW = "default"


class FlowStatements:
    """Runs what a Session's SQL says about flows."""

    def __init__(self, session: FlowSession, flows: FlowRegistry | SeenFlows, shown: ShownRelations) -> None:
        self._session = session
        self._flows = flows
        self._shown = shown

    def has(self, kind: StatementKind) -> bool:
        """Whether a statement is about flows: by its words, or because a source or view, and no table, has its name."""
        target = kind.target
        if target is None:
            return kind.about is About.FLOWS
        return not self._shown.is_own_table(target) and self._flows.find(target) is not None

    def run(self, sql: str, kind: StatementKind) -> pa.Table | None:  # noqa: PLR0911 - one for each statement
        """What the statement returns, which has happened by then; None if it is not about flows."""
        match read_statement(sql):
            case None:
                _leave_to_spark(kind)
                return None
            case CreateFlow() as statement:
                return self._create_flow(statement)
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

    def subscribe(self, sql: str) -> Subscription:
        """The changes of a view, as ``SUBSCRIBE TO`` says."""
        wanted = read_subscribe(sql)
        flow, name = self._found(wanted.name, Kind.VIEW)
        return Subscription.of(
            flow,
            name,
            as_of=wanted.as_of,
            snapshot=wanted.snapshot,
            progress=wanted.progress,
            upsert=wanted.upsert,
        )

    # What flows are made of

    def _create_flow(self, statement: CreateFlow) -> pa.Table:
        known = self._flows.named(statement.name)
        if known is None:
            self._flows.open(statement.name, partitions=statement.partitions or None)
        elif not statement.if_not_exists:
            raise AlreadyExists(
                f"There is a flow {known.name!r} already.", hint="choose another name, or say IF NOT EXISTS"
            )
        return _nothing()

    def _create_source(self, statement: CreateSource) -> pa.Table:
        flow = self._flow_for(statement.name)
        name = statement.name.name
        with flow.exclusive():
            if _has(flow.sources, name) and statement.if_not_exists:
                return _nothing()
            self._refuse_taken(flow, statement.name)
            lateness = Lateness(*statement.lateness) if statement.lateness else None
            given: dict[str, Any] = {"key": statement.key, "dedup": statement.dedup, "lateness": lateness}
            dimensions = dict(statement.dimensions)
            flow.register_source(name, statement.schema, **given, dimensions=dimensions, spread=statement.spread)
            _settle(flow, name)
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
            _settle(flow, statement.name.name)
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
        return listing(flows, statement.kind)

    def _describe(self, statement: Describe) -> pa.Table:
        return description(*self._found(statement.name, statement.kind))

    def _explain(self, statement: Explain, sql: str) -> pa.Table:
        if isinstance(statement.what, RelationName):
            flow, name = self._found(statement.what, None)
            return _plan(flow.explain(name))
        read = self._flow_read(statement.what)
        query = ComposedSql([statement.what])
        if read is None:
            with placed(query, sql):
                return _plan(explain_query({}, query.text, Mode.AUTO, settings=settings_of(self._session.spark)))
        query = _without_own_flow(query, read)
        with placed(query, sql):
            return _plan(read.explain_query(query.text))

    # Changes

    def _change(self, change: Change, sql: str) -> pa.Table:
        """One statement is one tick: if it fails, in a view for instance, nothing has happened and nothing waits."""
        named = change.target if isinstance(change, Insert) else change.target.name
        flow, name = self._found(named, Kind.SOURCE)
        with FlowQueries(self._session, self._flows, self._shown, flow, sql) as queries, flow.exclusive():
            waits = flow.pending
            changed = (ShardedChange if flow.takes_frames else LocalChange)(flow, name, queries)
            match change:
                case Insert():
                    plan, found = insert(change, changed)
                case Delete():
                    plan, found = delete(change, changed)
                case Update():
                    plan, found = update(change, changed)
                case Merge():
                    plan, found = merge(change, changed)
            plan = replace(plan, time_zone=queries.settings.time_zone)
            try:
                return _summary(changed.tick(plan, found))
            finally:
                if not waits:
                    flow.discard()

    # Inner workings

    def _flow_for(self, name: RelationName) -> Flow:
        """The flow that something new belongs to."""
        wanted = name.flow or _DEFAULT_FLOW
        return self._flows.named(wanted) or self._flows.open(wanted)

    def _found(self, name: RelationName, kind: Kind | None) -> tuple[Flow, str]:
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

    def _flow_read(self, query: Fragment) -> Flow | None:
        """The flow whose sources and views a query reads; None if it reads none."""
        for reference in table_references(query.text):
            name = reference.relation
            found = None if name is None else self._flows.find(name)
            if found is not None:
                return found[0]
        return None

    def _refuse_taken(self, flow: Flow, name: RelationName) -> None:
        if _has((*flow.sources, *flow.views), name.name):
            raise AlreadyExists(
                f"The flow {flow.name!r} already has a source or view {name.name!r}.",
                hint="drop it first, choose another name, or say IF NOT EXISTS",
            )
        if name.flow is None and self._shown.is_own_table(name):
            raise AlreadyExists(
                f"There is a table {name.name!r}, which would hide the source or view in SQL.",
                hint=f"choose another name, or name the flow too, as in shop.{name.name}",
            )

    def _not_in_flow(self, error: TableNotFound, flow: Flow, query: ComposedSql) -> TableNotFound:
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


def _leave_to_spark(kind: StatementKind) -> None:
    """Refuse what Spark cannot do either: a change of a flow's source in a form that is not read."""
    if kind.target is not None:
        raise UnsupportedError(
            f"A change of the source {str(kind.target)!r} cannot begin with WITH or FROM.",
            hint="write WITH after the target, as in INSERT INTO name WITH ... SELECT ..., or a subquery",
        )


def _settle(flow: Flow, name: str) -> None:
    """Have what was registered compiled, filled and written down; if that fails it is gone again."""
    try:
        flow.schema(name)
    except BaseException:
        if name in (*flow.sources, *flow.views):
            flow.drop(name)
        raise


def _without_own_flow(query: ComposedSql, flow: Flow) -> ComposedSql:
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
