"""``Calls``: the methods of a Session and of flows that Weirflow's client calls, with the right that each needs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from weirflow._version import __version__
from weirflow.errors import ConfigError, NotAllowed, WeirflowError
from weirflow.ivm.flow.source import Lateness, Source
from weirflow.server.access.caller import Caller, Right
from weirflow.server.flight.ticks import delta_of
from weirflow.sql.statements.kinds import refuse_commands
from weirflow.types import OperationState
from weirflow.wire import calls as wire
from weirflow.wire.arrow import pack_schema, unpack_params, unpack_rows, unpack_schema
from weirflow.wire.calls import METHODS, form, method_of
from weirflow.wire.errors import failure_of
from weirflow.wire.messages import PROTOCOL, Call, Place, Statement, Summary, pack

if TYPE_CHECKING:
    from weirflow.ivm.compiler.view import View
    from weirflow.ivm.flow.backend import FlowBackend
    from weirflow.ivm.flow.flow import Flow
    from weirflow.server.coordinator import Coordinator
    from weirflow.server.flight.statements import Statements
    from weirflow.server.nodes import ServerNodes
    from weirflow.session.operation import Operation

_LONGEST_WAIT = 30.0
_OWN_PLACE = frozenset({"path", "metadata"})
"""The options of a flow that say where on the server it is kept."""
_FLOW_OPTIONS = frozenset(
    {
        *_OWN_PLACE,
        "fsync",
        "checkpoint_every",
        "history",
        "clock",
        "clock_every",
        "lease_seconds",
        "wait",
    }
)


@dataclass(frozen=True)
class Asked:
    """A call that is answered.

    Attributes:
        caller: who calls.
        arguments: of the method, as its struct has them.
        flow: whose method it is; None for those of the Session.
    """

    caller: Caller
    arguments: Any
    flow: Flow | None = None

    @property
    def backend(self) -> FlowBackend:
        """What runs the flow."""
        assert self.flow is not None
        return self.flow._backend  # noqa: SLF001 - what is called are the methods of backends


Handler = Callable[[Asked], Any]


class Calls:
    """Answers calls. Each method has one right and one handler, in one table.

    Args:
        coordinator: whose Session and flows.
        statements: runs what is submitted.
        nodes: the nodes around this server; None if it is not one of any.
    """

    def __init__(self, coordinator: Coordinator, statements: Statements, nodes: ServerNodes | None = None) -> None:
        self._coordinator = coordinator
        self._statements = statements
        self._nodes = nodes
        self.table: Mapping[str, tuple[Right, Handler]] = {**_FLOW_METHODS, **self._session_methods()}
        assert self.table.keys() == METHODS.keys()

    def answer(self, caller: Caller, call: Call) -> bytes:
        """Do what a call says; returns the answer as bytes."""
        method = method_of(call)
        right, handler = self.table[method.name]
        arguments = method.read_arguments(call)
        detail = getattr(arguments, "name", None) or ""
        with self._coordinator.work(caller, right, method.name.replace("_", " "), flow=call.flow, detail=detail):
            flow = None if call.flow is None else self._coordinator.flow(call.flow)
            asked = Asked(caller, arguments, flow)
            self._check_sql(asked, method.name)
            return pack(handler(asked))

    def _check_sql(self, asked: Asked, method: str) -> None:
        """A query that comes with a call is looked at as those of statements are."""
        own: list[str] = []
        match method:
            case "define_view" | "replace_view":
                queries = [asked.arguments.view.sql]
            case "plan":
                queries = [view.sql for view in asked.arguments.views]
                own = [one.name for one in (*asked.arguments.sources, *asked.arguments.views)]
            case "explain_query":
                queries = [asked.arguments.sql]
            case _:
                return
        for sql in queries:
            self._coordinator.check_query(asked.caller, sql, None if asked.flow is None else asked.flow.name, own)

    # Methods of the Session

    def _session_methods(self) -> dict[str, tuple[Right, Handler]]:
        return {
            "hello": (Right.READ, _hello),
            "server": (Right.READ, self._server),
            "flows": (Right.READ, self._flows),
            "create_flow": (Right.OPERATE, self._create_flow),
            "explain_sql": (Right.READ, self._explain_sql),
            "submit": (Right.READ, self._submit),
            "operations": (Right.READ, self._operations),
            "operation": (Right.READ, self._operation),
            "cancel": (Right.READ, self._cancel),
            "streams": (Right.READ, self._streams),
            "stream": (Right.READ, self._stream),
            "stop_stream": (Right.OPERATE, self._stop_stream),
            "save_stream": (Right.OPERATE, self._save_stream),
            "nodes": (Right.READ, self._list_nodes),
            "server_metrics": (Right.READ, self._metrics),
        }

    def _server(self, asked: Asked) -> wire.ServerForm:
        info = self._coordinator.describe(asked.caller)
        return wire.ServerForm(
            __version__,
            PROTOCOL,
            info.placement.value,
            info.profile.value,
            str(info),
            asked.caller.name,
            asked.caller.role.value,
        )

    def _flows(self, asked: Asked) -> tuple[wire.FlowRow, ...]:
        return tuple(
            wire.FlowRow(flow.name, flow.epoch, flow.partitions, flow.sources, flow.views)
            for flow in self._coordinator.flows(asked.caller)
        )

    def _create_flow(self, asked: Asked) -> wire.FlowStatus:
        wanted = asked.arguments
        asked.caller.require(Right.OPERATE, "make flows", flow=wanted.name)
        unknown = sorted(wanted.options.keys() - _FLOW_OPTIONS)
        if unknown:
            raise ConfigError(
                f"A flow of a server has no option {unknown[0]!r}.", hint=", ".join(sorted(_FLOW_OPTIONS))
            )
        if wanted.options.keys() & _OWN_PLACE:
            asked.caller.require(Right.ADMIN, "say where on the server a flow is kept")
        flow = self._coordinator.session.flow(wanted.name, partitions=wanted.partitions, **wanted.options)
        return _status(replace(asked, flow=flow))

    def _explain_sql(self, asked: Asked) -> str:
        wanted = asked.arguments
        refuse_commands(wanted.sql)
        outcome = self._coordinator.statement(asked.caller, wanted.sql, unpack_params(wanted.params))
        assert outcome.frame is not None  # a query, which nobody has computed yet
        return self._coordinator.session.explain(outcome.frame, wanted.mode)

    def _submit(self, asked: Asked) -> wire.OperationForm:
        wanted: Statement = asked.arguments
        operation = self._statements.submit(
            asked.caller, wanted.sql, unpack_params(wanted.params), timeout=wanted.timeout, key=wanted.key
        )
        return self._operation_form(self._statements.operation(asked.caller, operation))

    def _operations(self, asked: Asked) -> tuple[wire.OperationForm, ...]:
        return tuple(self._operation_form(one) for one in self._statements.operations(asked.caller))

    def _operation(self, asked: Asked) -> wire.OperationForm:
        operation = self._statements.operation(asked.caller, asked.arguments.operation)
        operation.wait(min(max(asked.arguments.wait, 0.0), _LONGEST_WAIT))
        return self._operation_form(operation)

    def _operation_form(self, operation: Operation) -> wire.OperationForm:
        running = operation.state in (OperationState.RUNNING, OperationState.CANCELLING)
        progress = operation.progress
        error = operation.error
        return wire.OperationForm(
            operation.id,
            operation.description,
            operation.state.value,
            operation.seconds,
            progress.done,
            progress.total,
            operation.note if running else "",
            self._statements.key_of(operation),
            failure_of(error) if isinstance(error, WeirflowError) else None,
        )

    def _cancel(self, asked: Asked) -> bool:
        return self._statements.cancel(asked.caller, asked.arguments.operation)

    def _streams(self, asked: Asked) -> tuple[wire.StreamForm, ...]:
        here = self._coordinator.streams(asked.caller)
        running = set(map(id, self._coordinator.session.streams.active))
        return tuple(_stream_form(query) for query in here if id(query) in running)

    def _stream(self, asked: Asked) -> wire.StreamForm:
        return _stream_form(self._coordinator.stream(asked.caller, asked.arguments.name))

    def _stop_stream(self, asked: Asked) -> wire.StreamForm:
        query = self._coordinator.stream(asked.caller, asked.arguments.name)
        within = asked.arguments.within
        query.stop() if within is None else query.stop(within)
        return _stream_form(query)

    def _save_stream(self, asked: Asked) -> wire.SavepointForm:
        wanted = asked.arguments
        if wanted.to is not None:
            asked.caller.require(Right.ADMIN, "say where on the server a savepoint is kept")
        saved = self._coordinator.stream(asked.caller, wanted.name).savepoint(wanted.savepoint, wanted.to)
        return wire.SavepointForm(saved.name, wanted.to or self._coordinator.session.describe().stores.checkpoints)

    def _list_nodes(self, asked: Asked) -> tuple[wire.NodeForm, ...]:
        del asked
        found = () if self._nodes is None else self._nodes.all()
        return tuple(
            wire.NodeForm(one.id, one.address, one.state.value, one.joined, one.age, dict(one.info)) for one in found
        )

    def _metrics(self, asked: Asked) -> str:
        if "*" not in asked.caller.flows:
            raise NotAllowed(
                f"The token of {asked.caller.name!r} is not for all flows, but metrics are about all of them."
            )
        return self._coordinator.session.metrics()


def _hello(asked: Asked) -> wire.HelloForm:
    return wire.HelloForm(__version__, PROTOCOL, asked.caller.name, asked.caller.role.value)


# Methods of flows


def _status(asked: Asked) -> wire.FlowStatus:
    backend = asked.backend
    return wire.FlowStatus(
        backend.name,
        backend.epoch,
        backend.partitions,
        tuple(sorted(backend.capabilities)),
        backend.pending,
        dict(backend.waiting),
        tuple(backend.readable),
        backend.clock,
        backend.clock_kind.value,
        backend.follows_clock,
        backend.identity,
    )


def _sources(asked: Asked) -> tuple[wire.SourceForm, ...]:
    return tuple(_source_form(source) for source in asked.backend.sources.values())


def _source_form(source: Source) -> wire.SourceForm:
    lateness = source.lateness
    return wire.SourceForm(
        source.name,
        pack_schema(source.schema),
        tuple(source.key),
        source.dedup,
        None if lateness is None else wire.LatenessForm(lateness.column, lateness.delay, lateness.keep),
    )


def _source(given: wire.SourceForm) -> Source:
    lateness = given.lateness
    return Source(
        given.name,
        unpack_schema(given.schema),
        key=given.key,
        dedup=given.dedup,
        lateness=None if lateness is None else Lateness(lateness.column, lateness.delay, lateness.keep),
    )


def _views(asked: Asked) -> tuple[wire.ViewForm, ...]:
    return tuple(_view_form(name, view) for name, view in asked.backend.views.items())


def _view_form(name: str, view: View) -> wire.ViewForm:
    return wire.ViewForm(name, view.sql, view.mode.value, view.stored, view.forced)


def _describe(asked: Asked) -> wire.FlowInfoForm:
    return form(asked.backend.describe(), wire.FlowInfoForm)


def _gauges(asked: Asked) -> wire.GaugesForm | None:
    found = asked.backend.gauges()
    if found is None:
        return None
    shards = tuple((*where, *measured) for where, measured in found.shards.items())
    return wire.GaugesForm(
        found.epoch,
        found.state_bytes,
        dict(found.view_bytes),
        dict(found.waiting),
        found.log_bytes,
        shards,
        dict(found.recall),
    )


def _position(asked: Asked) -> Place | None:
    found = asked.backend.position(asked.arguments.name)
    return None if found is None else Place(found.stream, found.origin, found.at)


def _too_late(asked: Asked) -> int:
    return asked.backend.too_late(asked.arguments.source, delta_of(unpack_rows(asked.arguments.rows)))


def _define_source(asked: Asked) -> None:
    source = _source(asked.arguments.source)
    assert asked.flow is not None
    asked.flow.register_source(
        source.name,
        source.schema,
        key=source.key,
        dedup=source.dedup,
        lateness=source.lateness,
        dimensions=dict(source.dimensions),
        spread=asked.arguments.spread,
    )


def _define_view(asked: Asked) -> None:
    view: wire.ViewForm = asked.arguments.view
    assert asked.flow is not None
    asked.flow.register_view(view.name, view.sql, mode=view.mode, materialized=view.stored)


def _replace_view(asked: Asked) -> wire.PlanForm:
    view: wire.ViewForm = asked.arguments.view
    assert asked.flow is not None
    plan = asked.flow.replace_view(view.name, view.sql, mode=view.mode, materialized=view.stored)
    return form(plan, wire.PlanForm)


def _flow(asked: Asked) -> Flow:
    assert asked.flow is not None
    return asked.flow


def _drop(asked: Asked) -> None:
    _flow(asked).drop(asked.arguments.name)


def _advance(asked: Asked) -> Summary:
    from weirflow.ivm.kernel.deadline import Deadline  # noqa: PLC0415 - imports the kernel

    wanted = asked.arguments
    return form(asked.backend.advance(wanted.to, Deadline(wanted.timeout), keep=wanted.keep), Summary)


def _save(asked: Asked) -> str:
    wanted = asked.arguments
    if wanted.uri is not None:
        asked.caller.require(Right.ADMIN, "say where on the server a flow is saved")
    return asked.backend.save(wanted.uri, full=wanted.full)


def _restore(asked: Asked) -> wire.PlanForm:
    asked.caller.require(Right.ADMIN, "restore a flow from a place on the server")
    return form(asked.backend.restore(asked.arguments.uri, asked.arguments.epoch), wire.PlanForm)


def _plan(asked: Asked) -> wire.PlanForm:
    from weirflow.ivm.compiler.view import Mode, View  # noqa: PLC0415 - imports the compiler

    sources = {one.name: _source(one) for one in asked.arguments.sources}
    views = {one.name: View(one.sql, Mode(one.mode), one.stored, one.forced) for one in asked.arguments.views}
    return form(asked.backend.plan(sources, views), wire.PlanForm)


def _rescale(asked: Asked) -> None:
    _flow(asked).rescale(asked.arguments.partitions, spread=asked.arguments.spread)


def _stream_form(query: Any) -> wire.StreamForm:
    status, progress, error = query.status(), query.last_progress(), query.exception
    return wire.StreamForm(
        query.name,
        query.id,
        query.run_id,
        status.state.value,
        status.message,
        query.restarts,
        str(query.describe()),
        None if progress is None else json.dumps(progress.raw),
        failure_of(error) if error is not None else None,
    )


_FLOW_METHODS: dict[str, tuple[Right, Handler]] = {
    "status": (Right.READ, _status),
    "settings": (Right.READ, lambda asked: form(asked.backend.settings, wire.SettingsForm)),
    "sources": (Right.READ, _sources),
    "views": (Right.READ, _views),
    "schema": (Right.READ, lambda asked: pack_schema(asked.backend.schema(asked.arguments.name))),
    "describe": (Right.READ, _describe),
    "explain": (Right.READ, lambda asked: asked.backend.explain(asked.arguments.view)),
    "explain_query": (
        Right.READ,
        lambda asked: _flow(asked).explain_query(asked.arguments.sql, mode=asked.arguments.mode),
    ),
    "metrics": (Right.READ, lambda asked: asked.backend.metrics()),
    "gauges": (Right.READ, _gauges),
    "position": (Right.READ, _position),
    "epoch_of": (Right.READ, lambda asked: asked.backend.epoch_of(asked.arguments.token)),
    "is_due": (Right.READ, lambda asked: asked.backend.is_due(asked.arguments.moment)),
    "too_late": (Right.READ, _too_late),
    "define_source": (Right.OPERATE, _define_source),
    "define_view": (Right.OPERATE, _define_view),
    "replace_view": (Right.OPERATE, _replace_view),
    "refresh_view": (
        Right.OPERATE,
        lambda asked: form(_flow(asked).refresh_view(asked.arguments.name), wire.PlanForm),
    ),
    "force_diff": (Right.OPERATE, lambda asked: _flow(asked).force_diff_based(asked.arguments.view)),
    "drop": (Right.OPERATE, _drop),
    "retry": (Right.WRITE, lambda asked: form(_flow(asked).retry(timeout=asked.arguments.timeout), Summary)),
    "discard": (Right.WRITE, lambda asked: _flow(asked).discard()),
    "advance": (Right.WRITE, _advance),
    "save": (Right.OPERATE, _save),
    "restore": (Right.ADMIN, _restore),
    "plan": (Right.READ, _plan),
    "rescale": (Right.OPERATE, _rescale),
}
