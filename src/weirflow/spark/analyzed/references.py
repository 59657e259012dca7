"""Where a text names tables, as Spark's parser reads it; nothing is looked up."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from weirflow.errors import UnsupportedError
from weirflow.spark.analyzed.remote import Remote
from weirflow.sql.statements.table_references import TableReference
from weirflow.stack import grows


def spark_references(native: Any, sql: str) -> list[TableReference]:
    """The tables that are named in ``sql``, without names of its own common tables, on a classic session.

    Raises:
        UnsupportedError: it reads one as a stream, or as it was before.
    """
    parsed = native._jsparkSession.sessionState().sqlParser().parsePlan(sql)  # noqa: SLF001 - no public way
    found: dict[int, TableReference] = {}
    ctes: set[str] = set()
    for node, above, remote in _nodes(json.loads(parsed.toJSON()), Remote(lambda: parsed)):
        kind = _kind(node)
        if kind == "UnresolvedWith":
            ctes |= {one["_1"].casefold() for one in node["cteRelations"]}
        if kind == "UnresolvedRelation":
            reference = _reference(remote.get(), aliased=above == "SubqueryAlias")
            found[reference.start] = reference
            if node.get("isStreaming"):
                raise UnsupportedError(
                    f"A view cannot read {reference.parts[-1]!r} as a stream.",
                    hint="flow.attach(stream, source) ticks a source with its rows",
                )
        if kind == "RelationTimeTravel":
            raise UnsupportedError(
                "A view reads a table as it is, not as it was at an earlier version or time.",
                hint="CREATE VIEW for that version in Spark's SQL, and read it",
            )
    return [one for one in found.values() if len(one.parts) > 1 or one.parts[0].casefold() not in ctes]


def _reference(relation: Any, *, aliased: bool) -> TableReference:
    parts = relation.multipartIdentifier()
    names = tuple(parts.apply(index) for index in range(parts.size()))
    origin = relation.origin()
    return TableReference(names, origin.startIndex().get(), origin.stopIndex().get() + 1, aliased=aliased)


def _kind(node: dict[str, Any]) -> str:
    kind: str = node["class"].rpartition(".")[2]
    return kind


Found = tuple[dict[str, Any], str, Remote]
"""A node as JSON, the kind of the node above, and the object."""


def _nodes(written: list[dict[str, Any]], top: Remote) -> Iterator[Found]:
    yield from _below(iter(written), "", top)


@grows
def _below(nodes: Iterator[dict[str, Any]], above: str, remote: Remote) -> list[Found]:
    node = next(nodes)
    found: list[Found] = [(node, above, remote)]
    for index in range(node["num-children"]):
        found += _below(nodes, _kind(node), remote.child(index))
    for name, value in node.items():
        found += _inside(value, remote.field(name))
    return found


def _inside(value: Any, remote: Remote) -> list[Found]:
    """The trees in a field: sequences and tuples may hold them, too."""
    if isinstance(value, list) and value and isinstance(value[0], dict) and "class" in value[0]:
        return _below(iter(value), "", remote)
    if isinstance(value, list):
        return [one for index, part in enumerate(value) for one in _inside(part, remote.at(index))]
    if isinstance(value, dict):
        return [
            one for name, part in value.items() if name != "product-class" for one in _inside(part, remote.field(name))
        ]
    return []
