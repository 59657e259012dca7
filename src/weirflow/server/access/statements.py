"""What a statement needs: found in how Weirflow and Spark read it, not in its words.

An admin may run all that Spark understands. Others may run what is named here, and nothing else: a kind of statement or
of plan node that nobody has thought of is refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weirflow.errors import NotAllowed, QueryError, TableNotFound, UnsupportedError
from weirflow.server.access.caller import Caller, Right
from weirflow.server.access.plan_nodes import CHANGES, COMMANDS, LISTINGS, PARTS_OF_CHANGES, commands_in, unknown_in
from weirflow.sql.quoting import quoted
from weirflow.sql.statements.catalogs import ShowCatalogs, read_catalog_statement
from weirflow.sql.statements.changes import Delete, Insert, Merge, Update
from weirflow.sql.statements.composed import Fragment
from weirflow.sql.statements.flows import (
    CreateFlow,
    CreateSource,
    CreateView,
    Describe,
    Drop,
    Explain,
    Refresh,
    Show,
    read_statement,
)
from weirflow.sql.statements.kinds import About, StatementKind
from weirflow.sql.statements.lexer import Lexer
from weirflow.sql.statements.materialized import (
    AlterMaterialized,
    CreateMaterialized,
    DescribeMaterialized,
    ExplainRefresh,
    ShowMaterialized,
    read_materialized,
)
from weirflow.sql.statements.parameters import with_literals
from weirflow.sql.statements.relation_name import RelationName
from weirflow.sql.statements.table_references import table_references

if TYPE_CHECKING:
    from weirflow.flows.host import Params
    from weirflow.session.inspection import Inspection
    from weirflow.session.session import Session
    from weirflow.spark.analyzed.reach import Reach
    from weirflow.spark.frames.frame import DataFrame

_INNER = "_weirflow_"

_ODD_IN_NAMES = frozenset("/\\\"'`")
_READ_FILES = {"from_avro": 3, "from_protobuf": 3, "from_xml": 3, "schema_of_avro": 2, "to_protobuf": 3}
"""Functions that read files which an argument names, and from how many arguments on they do."""
_NAMED_CALL = "ExpressionWithUnresolvedIdentifier"
_EXPLAIN_MODES = ("CODEGEN", "COST", "EXTENDED", "FORMATTED", "LOGICAL")
_COMPUTED_NAME = ".PlanWithUnresolvedIdentifier"
_REFUSED_EXPRESSIONS = frozenset({"CallMethodViaReflection", "TryReflect"})
_SCRIPT = "ScriptTransformation"


class Classifier:
    """Says what a statement needs, and refuses it to who has not got it."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def check(self, caller: Caller, sql: str, kind: StatementKind, params: Params | None) -> Inspection | None:
        """Refuse a statement that is not Spark's; for one that is, return what looks at it on its way to Spark.

        Raises:
            NotAllowed: the caller may not run it.
        """
        if kind.about is About.CATALOGS:
            is_list = isinstance(read_catalog_statement(sql, params), ShowCatalogs)
            caller.require(Right.READ if is_list else Right.ADMIN, "add or drop catalogs")
            if "*" not in caller.catalogs:
                raise NotAllowed(f"The token of {caller.name!r} is not for all catalogs.")
        elif kind.about is About.MATERIALIZED:
            self._check_materialized(caller, sql if params is None else with_literals(sql, params).text)
        elif kind.about in (About.FLOWS, About.TARGET):
            self._check_flows(caller, sql if params is None else with_literals(sql, params).text, kind)
        if caller.role.has(Right.ADMIN):
            return None
        return _Inspection(self, caller, kind, params)

    def check_text(self, caller: Caller, text: str, kind: StatementKind) -> None:
        """Refuse what Spark is about to get, unless it is for the caller. A query is looked at again as a frame."""
        reach = self._parsed(text)
        self._check_classes(caller, reach, analyzed=False)
        for parts in sorted(reach.namespaces):
            self._require_namespace(caller, parts)
        if kind.about is About.QUERY:
            if unknown := sorted(commands_in(reach.classes)):  # what the lexer took for a query is none for Spark
                caller.require(Right.ADMIN, f"run {unknown[0]}")
            for parts in sorted(reach.names):
                self._check_flow(caller, parts)
            return
        for name in (reach.top, *sorted(commands_in(reach.classes - PARTS_OF_CHANGES))):  # EXPLAIN has another in it
            caller.require(COMMANDS.get(name, Right.ADMIN), f"run what Spark calls {name}")
        if reach.top in LISTINGS and "*" not in caller.flows:
            raise NotAllowed(
                f"The token of {caller.name!r} is not for all flows, and {reach.top} would show what is in the others."
            )
        self._check_names(caller, text, reach)

    def check_frame(self, caller: Caller, frame: DataFrame) -> None:
        """Refuse a query that is analyzed and reads, or does, what the caller may not; nothing of it has run."""
        if caller.role.has(Right.ADMIN):
            return
        from weirflow.spark.analyzed.reach import frame_reach  # noqa: PLC0415 - imports pyspark's plans

        reach = frame_reach(frame.spark)
        self._check_classes(caller, reach)
        _require_plain(caller, reach.tables)
        if reach.has_nameless:
            raise NotAllowed(f"{caller.name!r} may not read files by their paths.", hint="read tables and views")
        for catalog in sorted(reach.catalogs):
            caller.require(Right.READ, "read", catalog=catalog)
        shown = self._session._flows_sql().flow_of if self._session._has_flows() else None  # noqa: SLF001 - see Coordinator
        for view in sorted(reach.views):
            flow = shown(view) if shown is not None else None
            if flow is None and view.casefold().startswith(_INNER):
                raise _inner(view)
            if flow is not None and not caller.sees_flow(flow):
                raise _not_there(view)

    def check_query(self, caller: Caller, sql: str, flow: str | None = None, own: Iterable[str] = ()) -> None:
        """A query inside a statement about flows: which others it reads is known from its text.

        The names that are its ``own`` are of what comes with it.
        """
        if caller.role.has(Right.ADMIN):
            return
        reach = self._parsed(sql)
        self._check_classes(caller, reach, analyzed=False)
        if unknown := sorted(commands_in(reach.classes - CHANGES)):
            caller.require(Right.ADMIN, f"run {unknown[0]}")
        self._check_names(caller, sql, reach, flow, own)

    def require_table(self, caller: Caller, table: str) -> None:
        """Refuse a table whose catalog is not one of the caller's; a name without a catalog is of the current one."""
        parts = Lexer(table).names()
        if not caller.role.has(Right.ADMIN):
            _require_plain(caller, parts)
        if "*" in caller.catalogs:
            return
        is_first = len(parts) > 2 or (len(parts) > 1 and parts[0] in self._catalogs())  # noqa: PLR2004 - see _check_reference
        caller.require(Right.READ, f"use {table}", catalog=parts[0] if is_first else self._catalog())

    # Statements that are not Spark's

    def _check_materialized(self, caller: Caller, sql: str) -> None:
        statement = read_materialized(sql)
        if not isinstance(statement, ShowMaterialized | DescribeMaterialized | ExplainRefresh):
            caller.require(Right.OPERATE, "make, refresh or drop materialized views")
        if isinstance(statement, ShowMaterialized):
            self.require_table(caller, "m" if statement.schema is None else f"{statement.schema}.m")
        else:
            self.require_table(caller, statement.name)
        if isinstance(statement, CreateMaterialized | AlterMaterialized):
            self.check_query(caller, statement.query.text)

    def _check_flows(self, caller: Caller, sql: str, kind: StatementKind) -> None:  # noqa: C901 - one for each statement
        if kind.target is not None and not self._check_flow(caller, _parts(kind.target)):
            if self._session._flows_sql().flows.find(kind.target) is not None:  # noqa: SLF001 - see Coordinator
                raise _not_there(str(kind.target))
            return  # Spark's, and looked at when Spark gets it
        statement = read_statement(sql)
        match statement:
            case None:
                return
            case Show(flow=flow):
                self._check_listed(caller, flow)
            case CreateFlow(name=name):
                caller.require(Right.OPERATE, "make flows", flow=name)
            case Explain(what=Fragment(text=text)):
                self.check_query(caller, text)
            case Explain(what=RelationName() as name):
                caller.require(Right.READ, "explain", flow=self._owner_or_named(caller, name))
            case Describe(name=name):
                caller.require(Right.READ, "describe", flow=self._owner_or_named(caller, name))
            case Insert() | Update() | Delete() | Merge():
                target = statement.target if isinstance(statement, Insert) else statement.target.name
                owner = self._owner_or_named(caller, target)
                caller.require(Right.WRITE, "change sources", flow=owner)
                self.check_query(caller, sql, owner)
            case CreateSource() | CreateView() | Drop() | Refresh():
                owner = self._owner(caller, statement.name)
                caller.require(Right.OPERATE, "define sources and views", flow=owner)
                if isinstance(statement, CreateView):
                    self.check_query(caller, statement.query.text, owner)

    def _check_listed(self, caller: Caller, flow: str | None) -> None:
        """A list of all flows would name those that are not the caller's."""
        if flow is not None:
            caller.require(Right.READ, "list", flow=flow)
        elif "*" not in caller.flows:
            raise NotAllowed(
                f"The token of {caller.name!r} is not for all flows.", hint="list those of one: SHOW SOURCES IN flow"
            )

    def _check_names(
        self, caller: Caller, sql: str, reach: Reach, flow: str | None = None, given: Iterable[str] = ()
    ) -> None:
        """The tables and views that a text names: those of flows, and those of catalogs.

        A name that ``flow`` has, which the text is about, is that flow's, and one that is ``given`` nobody's.
        """
        own = {name.casefold() for name in (*given, *(() if flow is None else self._relations(flow)))}
        if any(name.endswith(_COMPUTED_NAME) for name in reach.classes):
            raise NotAllowed(f"{caller.name!r} may not use a computed name for a table.", hint="write it")
        direct = {reference.parts for reference in table_references(_query_in(sql))}
        for parts in sorted(reach.names):
            if len(parts) > 1 or parts[0].casefold() not in own:
                self._check_reference(caller, parts, is_needed=parts in direct)

    def _check_reference(self, caller: Caller, parts: tuple[str, ...], *, is_needed: bool) -> None:
        """A name in a text that is not analyzed before it runs: what it stands for is looked at as a query of it is.

        What is not there may be a CTE, unless it ``is_needed``; it must not come to be there before the text runs.
        """
        if parts[-1].casefold().startswith(_INNER):
            raise _inner(parts[-1])
        if self._check_flow(caller, parts):
            return
        is_qualified = len(parts) > 2  # noqa: PLR2004 - catalog, schema, table
        caller.require(Right.READ, "read", catalog=parts[0] if is_qualified else self._catalog())
        native = self._session.spark
        table = ".".join(quoted(part) for part in parts)
        try:
            frame = self._session.operations.run("look up a table", lambda: native.table(table))
        except QueryError:
            if is_needed and len(parts) == 1:
                raise _not_there(parts[0]) from None
            return
        self.check_frame(caller, self._session._wrapped(frame))  # noqa: SLF001 - see Coordinator

    def _check_flow(self, caller: Caller, parts: tuple[str, ...]) -> bool:
        """Whether a name is a source or view of a flow, which is the caller's then.

        Whether there is a flow that is not the caller's, nobody finds out: its name is refused if nothing has it, too.
        """
        relation = RelationName.of(*parts)
        if relation is None:
            return False
        if self._flow_of(caller, relation) is not None:
            return True
        if relation.flow is not None and not caller.sees_flow(relation.flow):
            table = ".".join(quoted(part) for part in parts)
            native = self._session.spark
            if not self._session.operations.run("look up a table", lambda: native.catalog.tableExists(table)):
                caller.require(Right.READ, "read", flow=relation.flow)
        return False

    # Statements of Spark's

    def _check_classes(self, caller: Caller, reach: Reach, *, analyzed: bool = True) -> None:
        names = {one.rpartition(".")[2] for one in reach.classes}
        if _SCRIPT in names:
            raise NotAllowed(f"{caller.name!r} may not run scripts.", hint="TRANSFORM is for admins")
        if names & _REFUSED_EXPRESSIONS:
            raise NotAllowed(f"{caller.name!r} may not call Java methods.")
        for name, count in sorted(reach.calls):
            if count >= _READ_FILES.get(name, count + 1):
                raise NotAllowed(
                    f"{caller.name!r} may not call {name}() with {count} arguments, because it could read files.",
                    hint="leave out the options, or the file of descriptors",
                )
        if reach.has_options:
            raise NotAllowed(
                f"{caller.name!r} may not give options to tables, because these say how and where they are read.",
                hint="leave out WITH (...) after the table's name",
            )
        for parts in sorted(reach.names):
            _require_plain(caller, parts)
        if _NAMED_CALL in names:
            raise NotAllowed(f"{caller.name!r} may not use a computed name for a function.", hint="write it")
        if analyzed:
            unknown = sorted(unknown_in(reach.classes))
            if unknown:
                raise NotAllowed(
                    f"{caller.name!r} may not run this query: it needs {unknown[0]}.", hint="ask an admin to run it"
                )

    def _parsed(self, sql: str) -> Reach:
        from weirflow.spark.analyzed.reach import is_classic, parsed_reach  # noqa: PLC0415 - imports pyspark's plans

        native: Any = self._session.spark
        if not is_classic(native):
            raise UnsupportedError(
                "Over Spark Connect a server cannot see what a statement would do.",
                hint="use an admin's token, or let the server's Session have a driver of its own: spark:// or local",
            )
        with self._session._translated():  # noqa: SLF001 - Spark says what is wrong with the text
            return parsed_reach(native, sql)

    # Names

    def _flow_of(self, caller: Caller, name: RelationName) -> str | None:
        """The flow of the caller's that has a source or view, or None."""
        found = self._session._flows_sql().flows.find(name, caller.sees_flow)  # noqa: SLF001 - see Coordinator
        return None if found is None else found[0].name

    def _relations(self, flow: str) -> tuple[str, ...]:
        found = self._session._flows_sql().flows.named(flow)  # noqa: SLF001 - see Coordinator
        return () if found is None else (*found.sources, *found.views)

    def _owner(self, caller: Caller, name: RelationName) -> str:
        """The flow that something is, or is to be, defined in."""
        return name.flow or self._flow_of(caller, name) or "default"

    def _owner_or_named(self, caller: Caller, name: RelationName) -> str | None:
        """The flow that has a source or view; if the caller's have none, that which the name says."""
        return self._flow_of(caller, name) or name.flow

    def _require_namespace(self, caller: Caller, parts: tuple[str, ...]) -> None:
        """Refuse to list what is in a schema, or a catalog, that is not the caller's."""
        is_first = parts[0] in self._catalogs()
        caller.require(Right.READ, "list", catalog=parts[0] if is_first else self._catalog())

    def _catalogs(self) -> set[str]:
        return {one.name for one in self._session.catalogs()}

    def _catalog(self) -> str:
        catalog: str = self._session.spark.catalog.currentCatalog()
        return catalog


@dataclass(frozen=True)
class _Inspection:
    """See ``Inspection``: a statement of a caller's on its way to Spark."""

    classifier: Classifier
    caller: Caller
    kind: StatementKind
    params: Params | None

    def sees_flow(self, name: str) -> bool:
        """See ``Inspection``."""
        return self.caller.sees_flow(name)

    def text(self, sql: str) -> None:
        """See ``Inspection``."""
        filled = sql if self.params is None else with_literals(sql, self.params).text
        self.classifier.check_text(self.caller, filled, self.kind)

    def query(self, frame: DataFrame) -> None:
        """See ``Inspection``."""
        self.classifier.check_frame(self.caller, frame)


def _require_plain(caller: Caller, parts: Iterable[str]) -> None:
    """Refuse the name of a table from which a catalog would make a path that leaves its folder, or SQL of its own."""
    odd = next((part for part in parts if not _ODD_IN_NAMES.isdisjoint(part)), None)
    if odd is not None:
        raise NotAllowed(
            f"{caller.name!r} may not name a table {odd!r}: slashes and quotes in names are for admins.",
            hint="read tables and views by their names, not files by their paths",
        )


def _parts(name: RelationName) -> tuple[str, ...]:
    return (name.name,) if name.flow is None else (name.flow, name.name)


def _inner(table: str) -> NotAllowed:
    return NotAllowed(f"{table!r} is one of the server's own tables.")


def _not_there(name: str) -> TableNotFound:
    """As Spark says it of what there is not: what is of others' flows is not there for who has no token for them."""
    return TableNotFound(f"The table or view `{name}` cannot be found.")


def _query_in(sql: str) -> str:
    """The query that ``EXPLAIN`` is about; any other text as it is."""
    lexer = Lexer(sql)
    if not lexer.accept("EXPLAIN"):
        return sql
    return sql[next((one.start for one in lexer if one.plain not in _EXPLAIN_MODES), 0) :]
