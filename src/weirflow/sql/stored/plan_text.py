"""A plan as text: a table of nodes, each behind those inside it, the plan itself last.

A node that is in several places is written once, and is one object again when it is read. Nothing here recurses over
nodes, so that it does not matter how deep a plan is. Equal plans have equal texts, in any process.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import get_args

import pyarrow as pa

from weirflow.sql.plan import Field, Plan, Recursive, Scan
from weirflow.sql.refusal import NotIncremental, Reason
from weirflow.sql.stored.checks import exactly, unreadable
from weirflow.sql.stored.constants import read_type
from weirflow.sql.stored.nodes import POSITION, TableReader, TableWriter, dump
from weirflow.sql.tree import Tree, inner

VERSION = 1


def encode_plan(plan: Plan) -> str:
    """The plan as text; ``NotIncremental`` if there is a constant or type in it that has no such form.

    >>> encode_plan(Scan("t", (Field("a", pa.int32()),)))
    '{"version":1,"types":["int32"],"nodes":[["scan","t",[["a",0]],null]]}'
    """
    writer = TableWriter()
    ahead: list[Tree] = [plan]
    while ahead:
        missing = [one for one in inner(ahead[-1]) if id(one) not in writer.places]
        ahead += missing
        if not missing:
            writer.add(ahead.pop())
    return f'{{"version":{VERSION},"types":[{",".join(writer.types)}],"nodes":[{",".join(writer.nodes)}]}}'


def encode_refusal(refusal: NotIncremental) -> str:
    """In a plan's place: why the query has no delta rule. ``decode_plan`` raises it."""
    position = POSITION.write(refusal.position, TableWriter())
    return dump({"version": VERSION, "refusal": [refusal.reason, refusal.message, refusal.hint, position]})


def decode_plan(text: str) -> Plan:
    """The plan in a text.

    Raises:
        NotIncremental: the text is that of ``encode_refusal``.
        StorageError: the text is damaged, or of another version.
    """
    try:
        found = json.loads(text)
        version = found["version"]
        if version != VERSION:
            raise unreadable(f"its version is {version}, this Weirflow reads {VERSION}")
        if "refusal" in found:
            reason, message, hint, position = found["refusal"]
            place = POSITION.read(position, TableReader([]))
            hint = exactly((str, type(None)), hint)
            refusal = NotIncremental(exactly(str, message), reason=Reason(reason), hint=hint, position=place)
        else:
            reader = TableReader([read_type(one) for one in found["types"]])
            for row in found["nodes"]:
                reader.add(row)
            plan: Plan = reader.node(len(reader.nodes) - 1, get_args(Plan))
            return plan
    except (LookupError, TypeError, ValueError, ArithmeticError, RecursionError, pa.ArrowException) as error:
        raise unreadable(f"it is damaged ({type(error).__name__}: {error})") from error
    raise refusal


@dataclass(frozen=True)
class Outline:
    """What a stored plan reads, by names in lower case, and the columns that it gives."""

    reads: frozenset[str]
    fields: tuple[Field, ...]


@lru_cache(maxsize=16_384)
def outline(text: str) -> Outline | None:
    """The outline of the plan in a text; None if that is a refusal. Errors as ``decode_plan``'s."""
    try:
        plan = decode_plan(text)
    except NotIncremental:
        return None
    return Outline(frozenset(scan.name.casefold() for scan in scans(plan)), plan.fields)


def scans(plan: Plan) -> list[Scan]:
    """The scans of relations in a plan and its subqueries, each once; not those of rows that a recursion has found."""
    found: dict[int, Scan] = {}
    known: set[tuple[int, frozenset[str]]] = set()
    ahead: list[tuple[Tree, frozenset[str]]] = [(plan, frozenset())]
    while ahead:
        node, own = ahead.pop()
        if (id(node), own) in known:
            continue
        known.add((id(node), own))
        if isinstance(node, Scan) and node.name not in own:
            found[id(node)] = node
        if isinstance(node, Recursive):
            ahead += [(node.base, own), (node.step, own | {node.name})]
        else:
            ahead += [(one, own) for one in inner(node)]
    return list(found.values())
