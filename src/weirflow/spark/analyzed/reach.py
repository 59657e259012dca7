"""``Reach``: what a statement does and reads, as Spark's own parser and analyzer see it; nothing is run to find out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

_PACKAGE = "org.apache.spark.sql."
_RELATIONS = frozenset(
    {"LogicalRelation", "HiveTableRelation", "DataSourceV2Relation", "LogicalRDD", "InMemoryRelation"}
)
_REFLECTION = ("reflect", "java_method", "try_reflect")

_NAMESPACE = "UnresolvedNamespace"
_MAY_HAVE_OPTIONS = re.compile(r"\bwith(?=[^\w`'\"]*?(?:\(|/\*|--))", re.IGNORECASE)
"""What a table's options begin with, and perhaps other texts: ``WITH (``, with comments between them."""

HARDENED = {"spark.sql.runSQLOnFiles": "false", "spark.sql.variable.substitute": "false"}
"""Spark's configuration where statements come from others: a path in the place of a table is not read, and no variable
of the environment, of Java's or of the configuration takes the place of ``${...}``; some of them are secrets."""
_EXTERNAL_DTD = "javax.xml.accessExternalDTD"
EXECUTORS_WITHOUT_DTDS = f"-D{_EXTERNAL_DTD}="
"""The option of executors' Java for what ``without_external_dtds`` is in the driver's."""


@dataclass(frozen=True)
class Reach:
    """What a plan is made of.

    Attributes:
        top: the class of the statement itself, without its package, such as ``Project`` or ``SetCommand``.
        classes: the classes of all nodes and expressions, those of Spark without the package they share.
        views: the temporary views that are read, also those that others read.
        catalogs: the catalogs whose tables and views are read.
        has_nameless: whether something is read that is neither a table of a catalog nor behind a temporary view.
        tables: all parts of the names of tables and views that are read.
        names: of a text that is not analyzed, the names of tables and views in it, those of its CTEs included.
        namespaces: of such a text, the schemas and catalogs whose content is listed.
        has_options: whether such a text has options for a table (``WITH (...)`` behind its name), which say how and
            where it is read.
        calls: of such a text, the functions that it calls, without what is before their names and in lower case, each
            with the number of its arguments.
    """

    top: str
    classes: frozenset[str]
    views: frozenset[str] = frozenset()
    catalogs: frozenset[str] = frozenset()
    has_nameless: bool = False
    tables: frozenset[str] = frozenset()
    names: frozenset[tuple[str, ...]] = frozenset()
    calls: frozenset[tuple[str, int]] = frozenset()
    namespaces: frozenset[tuple[str, ...]] = frozenset()
    has_options: bool = False


def parsed_reach(native: Any, sql: str) -> Reach:
    """That of a text which is parsed and not analyzed, so that not even a constant is computed.

    Raises Spark's own error if the text is not SQL.
    """
    plan = native._jsparkSession.sessionState().sqlParser().parsePlan(sql)  # noqa: SLF001 - no public way
    nodes = json.loads(plan.toJSON())
    identified = [(_split(node["multipartIdentifier"] or ""), _is_namespace(node)) for node in _identified(nodes)]
    namespaces = frozenset(parts for parts, is_namespace in identified if is_namespace)
    names = frozenset(parts for parts, is_namespace in identified if not is_namespace)
    top = _short(nodes[0]["class"]).rpartition(".")[2]
    calls, options = frozenset(_calls(nodes)), _has_options(native, sql)
    return Reach(top, _classes(nodes), names=names, calls=calls, namespaces=namespaces, has_options=options)


def frame_reach(native_df: Any) -> Reach:
    """That of a classic frame, which is analyzed."""
    nodes = json.loads(native_df._jdf.queryExecution().analyzed().toJSON())  # noqa: SLF001 - no public way
    found = _Relations()
    found.read(nodes, behind_view=False)
    top = _short(nodes[0]["class"]).rpartition(".")[2]
    views, catalogs, tables = (frozenset(one) for one in (found.views, found.catalogs, found.tables))
    return Reach(top, _classes(nodes), views, catalogs, found.has_nameless, tables)


def without_reflection(native: Any) -> None:
    """Take the functions that call any method of Java's from all sessions of a driver, those to come included."""
    jvm = native._jvm  # noqa: SLF001 - no public way
    identifier = jvm.org.apache.spark.sql.catalyst.FunctionIdentifier
    shared = jvm.org.apache.spark.sql.catalyst.analysis.FunctionRegistry.builtin()
    own = native._jsparkSession.sessionState().functionRegistry()  # noqa: SLF001 - as above
    for name in _REFLECTION:
        for registry in (shared, own):
            registry.dropFunction(identifier(name))


def without_external_dtds(native: Any) -> None:
    """Have the functions of XML read no document that another document names: it may be any file, or any server's."""
    native._jvm.java.lang.System.setProperty(_EXTERNAL_DTD, "")  # noqa: SLF001 - no public way


def is_classic(native: Any) -> bool:
    """Whether plans can be looked at: the driver is this machine's, not behind Spark Connect."""
    return hasattr(native, "_jsparkSession")


def _has_options(native: Any, sql: str) -> bool:
    """Whether a text has options for a table, as Spark's own lexer sees it: what is parsed does not show them."""
    if _MAY_HAVE_OPTIONS.search(sql) is None:
        return False
    jvm = native._jvm  # noqa: SLF001 - no public way
    parser = jvm.org.apache.spark.sql.catalyst.parser
    content = jvm.org.antlr.v4.runtime.CharStreams.fromString(sql)
    tokens = parser.SqlBaseLexer(parser.UpperCaseCharStream(content)).getAllTokens()
    kinds = [token.getType() for token in tokens if not token.getChannel()]
    options = (parser.SqlBaseLexer.WITH, parser.SqlBaseLexer.LEFT_PAREN)
    return options in pairwise(kinds)


class _Relations:
    """Gathers what plans read. A plan is a list of nodes, each followed by its children; some are inside of fields."""

    def __init__(self) -> None:
        self.views: set[str] = set()
        self.catalogs: set[str] = set()
        self.tables: set[str] = set()
        self.has_nameless = False

    def read(self, nodes: list[dict[str, Any]], *, behind_view: bool) -> None:
        """Gather from a list of nodes, and from the lists inside it."""
        views_left: list[int] = []  # how many nodes are left of each temporary view around
        for at, node in enumerate(nodes):
            kind = node["class"].rpartition(".")[2]
            inside = behind_view or bool(views_left)
            if kind == "View" and node["isTempView"]:
                self.views.add(node["desc"]["identifier"]["table"])
            elif kind in _RELATIONS and not inside and not self._catalog(nodes[at - 1] if at else {}):
                self.has_nameless = True
            self._take_catalog(node, nodes[at + 1] if at + 1 < len(nodes) else {})
            for value in node.values():
                self._inside(value, behind_view=inside)
            views_left = _stepped(views_left, node["num-children"])
            if kind == "View" and node["isTempView"] and node["num-children"]:
                views_left.append(node["num-children"])

    def _take_catalog(self, node: dict[str, Any], below: dict[str, Any]) -> None:
        catalog = self._catalog(node)
        kind = str(below.get("class", "")).rpartition(".")[2]
        if catalog and (kind in _RELATIONS or kind == "View"):
            self.catalogs.add(catalog)
            self.tables.update((node["identifier"]["name"], *_split(node["identifier"]["qualifier"])))

    def _inside(self, value: Any, *, behind_view: bool) -> None:
        if isinstance(value, list) and value and isinstance(value[0], dict) and "class" in value[0]:
            self.read(value, behind_view=behind_view)
        elif isinstance(value, list):
            for part in value:
                self._inside(part, behind_view=behind_view)

    @staticmethod
    def _catalog(node: dict[str, Any]) -> str:
        """The first part of the name that an alias gives to a table; Spark writes lists of names as one text."""
        if str(node.get("class", "")).rpartition(".")[2] != "SubqueryAlias":
            return ""
        return _split(node["identifier"].get("qualifier") or "")[0]


def _stepped(left: list[int], children: int) -> list[int]:
    """The subtrees around the next node, when one node with so many children was read."""
    stepped = [count + children - 1 for count in left]
    return [count for count in stepped if count > 0]


def _split(names: str | list[str]) -> tuple[str, ...]:
    """The parts of a name, which Spark writes as one text: ``[lake, sales, orders]``."""
    return tuple(names) if isinstance(names, list) else tuple(names.removeprefix("[").removesuffix("]").split(", "))


def _identified(written: Any) -> Iterator[dict[str, Any]]:
    """The nodes at any depth that have the name of something that is looked up."""
    if isinstance(written, dict) and "multipartIdentifier" in written:
        yield written
    for value in written.values() if isinstance(written, dict) else written:
        if isinstance(value, dict | list):
            yield from _identified(value)


def _is_namespace(node: dict[str, Any]) -> bool:
    return str(node.get("class", "")).rpartition(".")[2] == _NAMESPACE


def _calls(written: Any) -> Iterator[tuple[str, int]]:
    if isinstance(written, dict) and "nameParts" in written and "num-children" in written:
        yield _split(written["nameParts"] or "")[-1].casefold(), written["num-children"]
    for value in written.values() if isinstance(written, dict) else written:
        if isinstance(value, dict | list):
            yield from _calls(value)


def _classes(nodes: Any) -> frozenset[str]:
    return frozenset(_short(one) for one in _all_classes(nodes))


def _all_classes(written: Any) -> Iterator[str]:
    values = written.values() if isinstance(written, dict) else written
    if isinstance(written, dict) and "class" in written:
        yield written["class"]
    for value in values:
        if isinstance(value, dict | list):
            yield from _all_classes(value)


def _short(name: str) -> str:
    return name.removeprefix(_PACKAGE)
