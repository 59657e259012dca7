"""A plan as text: a table of nodes, each behind those inside it, the plan itself last.

A node that is in several places is written once, and is one object again when it is read. Nothing here recurses over
nodes, so that it does not matter how deep a plan is. Equal plans have equal texts, in any process.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import get_args

import pyarrow as pa

from weirflow.errors import NotIncremental, Reason
from weirflow.sql.plan import Field, Plan, Recursive, Scan
from weirflow.sql.stored.checks import exactly, unreadable
from weirflow.sql.stored.constants import read_type
from weirflow.sql.stored.nodes import POSITION, TableReader, TableWriter, dump
from weirflow.sql.tree import Tree, inner

VERSION = 1
WITH_QUERY = 2
"""The version of a text that also says what to run, which versions before that must not take for one that does not."""


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


def encode_refusal(refusal: NotIncremental, reads: Iterable[str] | None = None) -> str:
    """In a plan's place: why the query has no delta rule, and what it reads, if known. ``decode_plan`` raises it."""
    position = POSITION.write(refusal.position, TableWriter())
    names = None if reads is None else sorted({name.casefold() for name in reads})
    return dump(
        {"version": VERSION, "refusal": [refusal.reason, refusal.message, refusal.hint, position], "reads": names}
    )


def with_query(text: str, query: str) -> str:
    """The text of a plan or refusal, which also says what is run in place of the view's SQL when it is recomputed."""
    return dump({**json.loads(text), "version": WITH_QUERY, "query": query})


def decode_plan(text: str) -> Plan:
    """The plan in a text.

    Raises:
        NotIncremental: the text is that of ``encode_refusal``.
        StorageError: the text is damaged, or of another version.
    """
    found = _read(text)
    if isinstance(found, _Refused):
        raise found.why
    return found


@dataclass(frozen=True)
class Outline:
    """What a stored plan says of itself; None where it is silent.

    Attributes:
        reads: what it reads, by names in lower case.
        fields: the columns that it gives.
        query: what is run in place of the view's SQL when it is recomputed.
    """

    reads: frozenset[str] | None
    fields: tuple[Field, ...] | None
    query: str | None = None


@lru_cache(maxsize=16_384)
def outline(text: str) -> Outline:
    """The outline of the plan or refusal in a text; ``StorageError`` as ``decode_plan``."""
    found = _read(text)
    query = json.loads(text).get("query")
    if isinstance(found, _Refused):
        return Outline(found.reads, None, query)
    return Outline(frozenset(scan.name.casefold() for scan in scans(found)), found.fields, query)


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


@dataclass(frozen=True)
class _Refused:
    why: NotIncremental
    reads: frozenset[str] | None


def _read(text: str) -> Plan | _Refused:
    try:
        found = json.loads(text)
        version = found["version"]
        if version not in (VERSION, WITH_QUERY):
            raise unreadable(f"its version is {version}, this Weirflow reads {VERSION} and {WITH_QUERY}")
        if version == WITH_QUERY:
            exactly(str, found["query"])
        reader = TableReader([read_type(one) for one in found.get("types", ())])
        if "refusal" in found:
            reason, message, hint, position = found["refusal"]
            place = POSITION.read(position, reader)
            hint = exactly((str, type(None)), hint)
            why = NotIncremental(exactly(str, message), reason=Reason(reason), hint=hint, position=place)
            names = found["reads"]
            return _Refused(why, None if names is None else frozenset(exactly(str, name) for name in names))
        for row in found["nodes"]:
            reader.add(row)
        plan: Plan = reader.node(len(reader.nodes) - 1, get_args(Plan))
    except (LookupError, TypeError, ValueError, ArithmeticError, RecursionError, pa.ArrowException) as error:
        raise unreadable(f"it is damaged ({type(error).__name__}: {error})") from error
    return plan
