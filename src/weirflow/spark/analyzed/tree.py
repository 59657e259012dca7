"""``AnalyzedQuery``: how Spark reads a query, on a classic session: its JSON for the structure, objects for the rest.

Spark writes a tree as a list of nodes, each followed by its children; a field that is itself a tree is such a list
again. Enumerations and some products come as null: those that are known are read from the object, any other null is
``OMITTED``, and whoever meets it does not know what the node means.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Self

from pyspark.sql.types import StructType

from weirflow.spark.analyzed.omitted import OMISSIONS, literal_value, local_rows, pivot_values
from weirflow.spark.analyzed.outside import outside, replaced
from weirflow.spark.analyzed.remote import Remote
from weirflow.sql.resolved.node import OMITTED, Node
from weirflow.stack import grows

_PACKAGE = "org.apache.spark.sql."
_TABLES = {"LogicalRelation", "HiveTableRelation", "DataSourceV2Relation", "LogicalRDD"}


class AnalyzedQuery:
    """What Spark's analyzer made of a query.

    Args:
        native: a classic session of PySpark's.
        plan: the plan, an object of its JVM's.
    """

    def __init__(self, native: Any, plan: Any) -> None:
        self._plan = plan
        self._text: str = plan.toJSON()
        self._nodes: list[dict[str, Any]] = json.loads(self._text)
        jvm = native._jvm  # noqa: SLF001 - no public way
        self._command = jvm.java.lang.Class.forName(_PACKAGE + "catalyst.plans.logical.Command")

    @classmethod
    def of_sql(cls, native: Any, sql: str) -> Self:
        """That of a text. Nothing is run, also if it is no query; Spark raises what is wrong with it."""
        jvm, session = native._jvm, native._jsparkSession  # noqa: SLF001 - no public way
        state = session.sessionState()
        skipped = jvm.org.apache.spark.sql.execution.CommandExecutionMode.SKIP()
        with _active(jvm, session):
            execution = state.executePlan(state.sqlParser().parsePlan(sql), skipped)
            execution.assertAnalyzed()
            return cls(native, execution.analyzed())

    @classmethod
    def of_frame(cls, native_df: Any) -> Self:
        """That behind a classic frame."""
        execution = native_df._jdf.queryExecution()  # noqa: SLF001 - no public way
        return cls(native_df.sparkSession, execution.analyzed())

    @property
    def is_query(self) -> bool:
        """Whether it is a query and nothing that changes something."""
        kinds = {node["class"] for node in self._nodes}
        loader = self._plan.getClass().getClassLoader()
        return not any(self._command.isAssignableFrom(loader.loadClass(kind)) for kind in kinds)

    @property
    def schema(self) -> Any:
        """Its columns, as PySpark's."""
        return StructType.fromJson(json.loads(self._plan.schema().json()))

    @property
    def reads(self) -> frozenset[str]:
        """The names of the temporary views that it reads."""
        return frozenset(_views(self._nodes))

    @property
    def reads_others(self) -> bool:
        """Whether it reads tables or files, which are no temporary views."""
        return any(_reads_others(node) for node in _nodes(self._nodes))

    @property
    def plan(self) -> Node:
        """The tree of its nodes."""
        return self.plan_over("", {})

    def outside(self, own: str) -> list[tuple[str, ...]]:
        """The names of tables and views that it reads besides relations with the mark ``own``; see ``outside``."""
        return [one.parts for one in outside(self._nodes, Remote(lambda: self._plan), own)]

    def plan_over(self, own: str, names: Mapping[tuple[str, ...], str]) -> Node:
        """The tree of its nodes, with relations of these names in the places of what is ``outside``."""
        nodes, top = json.loads(self._text), Remote(lambda: self._plan)  # which takes what it reads apart
        if names:
            replaced(outside(nodes, top, own), names)
        return _tree(nodes, top)


def expression_node(expression: Any) -> Node:
    """The tree of an expression, an object of the JVM's."""
    return _tree(json.loads(expression.toJSON()), Remote(lambda: expression))


@contextlib.contextmanager
def _active(jvm: Any, session: Any) -> Iterator[None]:
    """Have Spark's parser go by the settings of this session; it asks the thread for one, not whoever calls it."""
    sessions = jvm.org.apache.spark.sql.classic.SparkSession
    before = sessions.getActiveSession()
    sessions.setActiveSession(session)
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


def _views(written: Any) -> Iterator[str]:
    for node in _nodes(written):
        if node["class"].endswith(".View") and node["isTempView"]:
            yield node["desc"]["identifier"]["table"]


def _reads_others(node: dict[str, Any]) -> bool:
    kind = node["class"].rpartition(".")[2]
    return kind in _TABLES or kind.startswith("Streaming") or (kind == "View" and not node["isTempView"])


def _nodes(written: Any) -> Iterator[dict[str, Any]]:
    """All nodes, those of trees inside of others too."""
    for node in written if isinstance(written, list) else written.values():
        if isinstance(node, dict) and "class" in node:
            yield node
        if isinstance(node, dict | list):
            yield from _nodes(node)


def _tree(nodes: list[dict[str, Any]], top: Remote) -> Node:
    return _node(iter(nodes), top)


@grows
def _node(nodes: Iterator[dict[str, Any]], remote: Remote) -> Node:
    written = next(nodes)
    kind = written.pop("class").removeprefix(_PACKAGE)
    count = written.pop("num-children")
    children = tuple(_node(nodes, remote.child(index)) for index in range(count))
    fields = {name: _field(value, remote.field(name)) for name, value in written.items()}
    for name, read in OMISSIONS.get(kind.rpartition(".")[2], {}).items():
        if fields.get(name) is OMITTED:
            fields[name] = read(remote)
    if kind.endswith(".Literal"):
        fields["value"] = literal_value(written["value"], written["dataType"], remote)
    if kind.endswith(".LocalRelation"):
        fields["data"] = local_rows(written["output"], remote)
    if kind.endswith(".PivotFirst"):
        fields["pivotColumnValues"] = pivot_values(remote)
    if kind.endswith(".Expand") and fields["projections"] is OMITTED:  # as lists of some kinds are
        fields["projections"] = _projections(remote.get())
    return Node(kind, fields, children, partial(_shown, kind, remote), remote)


def _projections(expand: Any) -> tuple[tuple[Node, ...], ...]:
    lists = [expand.projections().apply(place) for place in range(expand.projections().size())]
    return tuple(tuple(expression_node(one.apply(at)) for at in range(one.size())) for one in lists)


def _shown(kind: str, remote: Remote) -> str:
    node = remote.get()
    return f"{node.prettyName()}()" if ".expressions." in kind else str(node.nodeName())


def _field(value: Any, remote: Remote) -> Any:
    if value is None:
        return OMITTED
    if isinstance(value, list):
        if value and isinstance(value[0], dict) and "class" in value[0]:
            return _tree(value, remote)
        return tuple(_field(one, remote.at(index)) for index, one in enumerate(value))
    if isinstance(value, dict):
        return _product(value, remote)
    return value


def _product(value: dict[str, Any], remote: Remote) -> Any:
    """A case class: an id as its number, an object as its name, a pair as a tuple, others as a dict."""
    if "object" in value:
        return value["object"].rpartition(".")[2].removesuffix("$")
    kind = value.pop("product-class", "").rpartition(".")[2]
    if kind == "ExprId":
        return value["id"]
    fields = {name: _field(one, remote.field(name)) for name, one in value.items()}
    return tuple(fields.values()) if kind.startswith("Tuple") else fields
