"""What a statement needs: found in how Weirflow and Spark read it, not in its words.

An admin may run all that Spark understands. Others may run what is named here, and nothing else: a kind of statement or
of plan node that nobody has thought of is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from weirflow.errors import NotAllowed, UnsupportedError
from weirflow.server.access.caller import Caller, Right
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
from weirflow.sql.statements.materialized import (
    CreateMaterialized,
    DescribeMaterialized,
    ExplainRefresh,
    ShowMaterialized,
    read_materialized,
)
from weirflow.sql.statements.parameters import with_literals
from weirflow.sql.statements.relation_name import RelationName

if TYPE_CHECKING:
    from weirflow.flows.host import Params
    from weirflow.session.session import Session
    from weirflow.spark.analyzed.reach import Reach
    from weirflow.spark.frames.frame import DataFrame

_INNER = "_weirflow_"

COMMANDS: dict[str, Right] = {
    "DescribeQueryCommand": Right.READ,
    "DescribeRelation": Right.READ,
    "ExplainCommand": Right.READ,
    "ShowCatalogsCommand": Right.READ,
    "ShowColumns": Right.READ,
    "ShowCurrentNamespaceCommand": Right.READ,
    "ShowFunctions": Right.READ,
    "ShowNamespaces": Right.READ,
    "ShowNamespacesCommand": Right.READ,
    "ShowTables": Right.READ,
    "ShowViews": Right.READ,
    "DeleteFromTable": Right.WRITE,
    "InsertIntoStatement": Right.WRITE,
    "MergeIntoTable": Right.WRITE,
    "UpdateTable": Right.WRITE,
}
"""The statements of Spark's that others than admins may run, as its parser calls them."""

LISTINGS = frozenset({"ShowTables", "ShowViews"})
"""Those that name tables of whomever, and what queries have seen of flows is among them."""

QUERY_NODES = frozenset(
    {
        "Aggregate",
        "AsOfJoin",
        "CTERelationDef",
        "CTERelationRef",
        "DataSourceV2Relation",
        "Deduplicate",
        "Distinct",
        "Except",
        "Expand",
        "Filter",
        "Generate",
        "GlobalLimit",
        "HiveTableRelation",
        "InMemoryRelation",
        "Intersect",
        "Join",
        "LateralJoin",
        "LocalLimit",
        "LocalRelation",
        "LogicalRDD",
        "LogicalRelation",
        "Offset",
        "OneRowRelation",
        "Project",
        "Range",
        "RebalancePartitions",
        "Repartition",
        "RepartitionByExpression",
        "ResolvedHint",
        "Sample",
        "Sort",
        "SubqueryAlias",
        "Transpose",
        "Union",
        "UnionLoop",
        "UnionLoopRef",
        "UnresolvedHint",
        "View",
        "Window",
        "WithCTE",
    }
)
"""The nodes of analyzed plans that only read what has a name."""

_EXPRESSIONS = "catalyst.expressions."
_REFUSED_EXPRESSIONS = frozenset({"CallMethodViaReflection", "TryReflect"})
_SCRIPT = "ScriptTransformation"


class Classifier:
    """Says what a statement needs, and refuses it to who has not got it."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def check(
        self, caller: Caller, sql: str, kind: StatementKind, params: Params | None
    ) -> Callable[[str], None] | None:
        """Refuse a statement that is not Spark's; for one that is, return what looks at the text that Spark gets.

        Raises:
            NotAllowed: the caller may not run it.
        """
        if kind.about is About.CATALOGS:
            is_list = isinstance(read_catalog_statement(sql, params), ShowCatalogs)
            caller.require(Right.READ if is_list else Right.ADMIN, "add or drop catalogs")
        elif kind.about is About.MATERIALIZED:
            self._check_materialized(caller, sql if params is None else with_literals(sql, params).text)
        elif kind.about in (About.FLOWS, About.TARGET):
            self._check_flows(caller, sql if params is None else with_literals(sql, params).text, kind)
        if caller.role.has(Right.ADMIN):
            return None
        return lambda text: self._check_text(caller, text if params is None else with_literals(text, params).text, kind)

    def check_frame(self, caller: Caller, frame: DataFrame) -> None:
        """Refuse a query that is analyzed and reads, or does, what the caller may not; nothing of it has run."""
        if caller.role.has(Right.ADMIN):
            return
        from weirflow.spark.analyzed.reach import frame_reach  # noqa: PLC0415 - imports pyspark's plans

        reach = frame_reach(frame.spark)
        self._check_classes(caller, reach)
        if reach.has_nameless:
            raise NotAllowed(f"{caller.name!r} may not read files by their paths.", hint="read tables and views")
        for catalog in sorted(reach.catalogs):
            caller.require(Right.READ, "read", catalog=catalog)
        shown = self._session._flows_sql().flow_of if self._session._has_flows() else None  # noqa: SLF001 - see Coordinator
        for view in sorted(reach.views):
            flow = shown(view) if shown is not None else None
            if flow is not None:
                caller.require(Right.READ, "read", flow=flow)

    def check_query(self, caller: Caller, sql: str, flow: str | None = None) -> None:
        """A query inside a statement about flows: which others it reads is known from its text."""
        if caller.role.has(Right.ADMIN):
            return
        reach = self._parsed(sql)
        self._check_classes(caller, reach, analyzed=False)
        self._check_names(caller, reach, flow)

    # Statements that are not Spark's

    def _check_materialized(self, caller: Caller, sql: str) -> None:
        statement = read_materialized(sql)
        if isinstance(statement, ShowMaterialized | DescribeMaterialized | ExplainRefresh):
            return
        caller.require(Right.OPERATE, "make, refresh or drop materialized views")
        if isinstance(statement, CreateMaterialized):
            self.check_query(caller, statement.query.text)

    def _check_flows(self, caller: Caller, sql: str, kind: StatementKind) -> None:  # noqa: C901 - one for each statement
        if kind.target is not None and self._flow_of(kind.target) is None:
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
                caller.require(Right.READ, "explain", flow=self._flow_of(name))
            case Describe(name=name):
                caller.require(Right.READ, "describe", flow=self._flow_of(name))
            case Insert() | Update() | Delete() | Merge():
                target = statement.target if isinstance(statement, Insert) else statement.target.name
                owner = self._flow_of(target)
                caller.require(Right.WRITE, "change sources", flow=owner)
                self.check_query(caller, sql, owner)
            case CreateSource() | CreateView() | Drop() | Refresh():
                owner = self._owner(statement.name)
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

    def _check_names(self, caller: Caller, reach: Reach, flow: str | None = None) -> None:
        """The tables and views that a text names: those of flows, and those of catalogs.

        A name that ``flow`` has, which the text is about, is that flow's.
        """
        own = set() if flow is None else {name.casefold() for name in self._relations(flow)}
        for parts in sorted(reach.names):
            if len(parts) > 1 or parts[0].casefold() not in own:
                self._check_reference(caller, parts)

    def _check_reference(self, caller: Caller, parts: tuple[str, ...]) -> None:
        relation = RelationName.of(*parts)
        flow = None if relation is None else self._flow_of(relation)
        if flow is not None:
            caller.require(Right.READ, "read", flow=flow)
            return
        if parts[-1].casefold().startswith(_INNER):
            raise NotAllowed(f"{parts[-1]!r} is one of the server's own tables.")
        is_qualified = len(parts) > 2  # noqa: PLR2004 - catalog, schema, table
        caller.require(Right.READ, "read", catalog=parts[0] if is_qualified else self._catalog())

    # Statements of Spark's

    def _check_text(self, caller: Caller, text: str, kind: StatementKind) -> None:
        """What Spark is about to get. A query is looked at again when it is analyzed."""
        reach = self._parsed(text)
        if kind.about is About.QUERY:
            if "Command" in reach.top or reach.top in COMMANDS:  # what the lexer took for a query is none for Spark
                caller.require(Right.ADMIN, f"run {reach.top}")
            self._check_classes(caller, reach, analyzed=False)
            return
        caller.require(COMMANDS.get(reach.top, Right.ADMIN), f"run what Spark calls {reach.top}")
        if reach.top in LISTINGS and "*" not in caller.flows:
            raise NotAllowed(
                f"The token of {caller.name!r} is not for all flows, and {reach.top} would name what is theirs."
            )
        self._check_classes(caller, reach, analyzed=False)
        self._check_names(caller, reach)

    def _check_classes(self, caller: Caller, reach: Reach, *, analyzed: bool = True) -> None:
        names = {one.rpartition(".")[2] for one in reach.classes}
        if _SCRIPT in names:
            raise NotAllowed(f"{caller.name!r} may not run scripts.", hint="TRANSFORM is for admins")
        if names & _REFUSED_EXPRESSIONS:
            raise NotAllowed(f"{caller.name!r} may not call methods of Java's.")
        if analyzed:
            unknown = sorted(_unknown(reach.classes))
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

    def _flow_of(self, name: RelationName) -> str | None:
        """The flow that has a source or view, or None."""
        found = self._session._flows_sql().flows.find(name)  # noqa: SLF001 - see Coordinator
        return None if found is None else found[0].name

    def _relations(self, flow: str) -> tuple[str, ...]:
        found = self._session._flows_sql().flows.named(flow)  # noqa: SLF001 - see Coordinator
        return () if found is None else (*found.sources, *found.views)

    def _owner(self, name: RelationName) -> str:
        """The flow that something is, or is to be, defined in."""
        return name.flow or self._flow_of(name) or "default"

    def _catalog(self) -> str:
        catalog: str = self._session.spark.catalog.currentCatalog()
        return catalog


def _unknown(classes: Iterable[str]) -> Iterable[str]:
    for name in classes:
        short = name.rpartition(".")[2]
        if not name.startswith(_EXPRESSIONS) and short not in QUERY_NODES:
            yield short
