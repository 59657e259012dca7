"""The nodes of Spark's plans that others than admins may have: kinds that nobody has thought of are in no list."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from weirflow.server.access.caller import Right

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

PARSED_NODES = frozenset(
    {
        "Pivot",
        "UnresolvedWith",
        "Unpivot",
        "WithWindowDefinition",
    }
)
"""The other nodes of queries that are parsed and not analyzed, beside those whose names begin with Unresolved."""

CHANGES = frozenset(
    f"catalyst.plans.logical.{name}"
    for name in (
        *("Assignment", "DeleteAction", "DeleteFromTable", "InsertAction", "InsertIntoStatement", "InsertStarAction"),
        *("MergeIntoTable", "UpdateAction", "UpdateStarAction", "UpdateTable"),
    )
)
"""The nodes of changes of sources, which are no statements of Spark's."""

PARTS_OF_CHANGES = frozenset(name for name in CHANGES if name.rpartition(".")[2] not in COMMANDS)

_EXPRESSIONS = "catalyst.expressions."
_PARTS = (_EXPRESSIONS, "catalyst.analysis.", "types.")
_COMPUTED_STATEMENT = "UnresolvedExecuteImmediate"


def commands_in(classes: Iterable[str]) -> Iterator[str]:
    """The nodes of a plan that is parsed which are none of a query's."""
    for name in classes:
        short = name.rpartition(".")[2]
        is_part = name.startswith(_PARTS) and short != _COMPUTED_STATEMENT
        if not is_part and short not in QUERY_NODES and short not in PARSED_NODES:
            yield short


def unknown_in(classes: Iterable[str]) -> Iterator[str]:
    """The nodes of a plan that is analyzed which are not known only to read what has a name."""
    for name in classes:
        short = name.rpartition(".")[2]
        if not name.startswith(_EXPRESSIONS) and short not in QUERY_NODES:
            yield short
