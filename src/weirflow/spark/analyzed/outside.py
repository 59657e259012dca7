"""What a frame reads that is no relation of a flow: tables and views of a Session, by their names.

The relations that a flow gives to frames are marked in their columns' metadata, for a temporary view of the Session may
have the name of one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weirflow.errors import ConfigError

if TYPE_CHECKING:
    from weirflow.spark.analyzed.remote import Remote

MARK = "weirflow"
"""The key of the metadata that says whose relation it is."""

_TABLES = {"LogicalRelation", "HiveTableRelation", "DataSourceV2Relation", "View"}
_NAMELESS = {"LogicalRelation", "HiveTableRelation", "DataSourceV2Relation", "LogicalRDD", "InMemoryRelation"}
Nodes = list[dict[str, Any]]


@dataclass(frozen=True)
class Outside:
    """A relation in the JSON of a plan.

    Attributes:
        parts: its name.
        remote: the object.
        nodes: the tree that it is in.
        start: where in it.
        end: where what belongs to it ends.
    """

    parts: tuple[str, ...]
    remote: Remote
    nodes: Nodes
    start: int
    end: int


def outside(nodes: Nodes, top: Remote, own: str) -> list[Outside]:
    """The relations in a plan that are not of the flow with the mark ``own``.

    Raises:
        ConfigError: one is of another flow, or has no name.
    """
    return list(_outside(nodes, top, own))


def replaced(found: list[Outside], names: Mapping[tuple[str, ...], str]) -> None:
    """Let relations of a flow, of these names, take their places in the JSON."""
    for one in reversed(found):  # so that places stay what they are
        output = one.remote.get().output()
        columns = [json.loads(output.apply(index).toJSON()) for index in range(output.size())]
        view = {"class": "org.apache.spark.sql.catalyst.plans.logical.View", "num-children": 1, "child": 0}
        view |= {"desc": {"identifier": {"table": names[one.parts]}}, "isTempView": True}
        one.nodes[one.start : one.end] = [view, {"class": "Snapshot", "num-children": 0, "output": columns}]


def _outside(nodes: Nodes, top: Remote, own: str) -> Iterator[Outside]:
    remotes = _remotes(nodes, top)
    at = 0
    while at < len(nodes):
        node, kind = nodes[at], _kind(nodes[at])
        is_view = kind == "View" and node["isTempView"]
        if is_view and _mark(node) == own:
            at = _end(nodes, at)
            continue
        parts = _named(nodes, at, remotes[at])
        if parts is not None:
            end = _end(nodes, at)
            yield Outside(parts, remotes[at], nodes, at, end)
            at = end
            continue
        if kind in _NAMELESS:
            raise ConfigError(
                "A view cannot be made of a frame with rows or files that have no name.",
                hint="give them a name: session.register(name, frame), and use session.read_table(name)",
            )
        for name, value in node.items():
            yield from _inside(value, remotes[at].field(name), own)
        at += 1


def _inside(value: Any, remote: Remote, own: str) -> Iterator[Outside]:
    """Those in trees inside a field."""
    if isinstance(value, list) and value and isinstance(value[0], dict) and "class" in value[0]:
        yield from _outside(value, remote, own)
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from _inside(part, remote.at(index), own)


def _named(nodes: Nodes, at: int, remote: Remote) -> tuple[str, ...] | None:
    """The name of the table that a node stands for; None if it stands for none."""
    node, kind = nodes[at], _kind(nodes[at])
    if kind == "View" and node["isTempView"]:
        if _mark(node) is not None:
            raise ConfigError(
                f"The frame reads {node['desc']['identifier']['table']!r} of another flow.",
                hint="make it of this flow's table(name)",
            )
        return (node["desc"]["identifier"]["table"],)
    is_table = kind == "SubqueryAlias" and node["identifier"]["qualifier"] and _kind(nodes[at + 1]) in _TABLES
    if not is_table:
        return None
    name = remote.get().identifier()
    qualifier = name.qualifier()
    return (*(qualifier.apply(index) for index in range(qualifier.size())), name.name())


def _mark(view: dict[str, Any]) -> str | None:
    fields = view["desc"]["schema"]["fields"]
    mark: str | None = fields[0]["metadata"].get(MARK) if fields else None
    return mark


def _remotes(nodes: Nodes, top: Remote) -> list[Remote]:
    """The object of each node of a tree, each of which is followed by its children."""
    found: list[Remote] = []
    ahead = [top]
    for node in nodes:
        remote = ahead.pop()
        found.append(remote)
        ahead += [remote.child(index) for index in reversed(range(node["num-children"]))]
    return found


def _end(nodes: Nodes, start: int) -> int:
    """Where the tree of a node ends."""
    left, at = 1, start
    while left:
        left += nodes[at]["num-children"] - 1
        at += 1
    return at


def _kind(node: dict[str, Any]) -> str:
    kind: str = node["class"].rpartition(".")[2]
    return kind
