"""What a streaming frame is made of, read from its analysed plan; works alike over Spark Connect."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from weirflow.spark.frames.explain import explain_text
from weirflow.types import ExplainMode

# Spark marks what streams with a tilde; the tables a stream is joined with have none.
_NODE = re.compile(r"^(?:   |:  )*(?:[:+]- )?~(\w+)(.*)$")
_V1_SOURCE = re.compile(r" DataSource\([^,]*,([^,]*),")
_V2_SOURCE = re.compile(r" \S+, ([^,]+),")
_GROUPING = re.compile(r" \[(.*?)\], \[")
_EVENT_TIME = re.compile(r"-T\d+ms\b")
_AGGREGATES = frozenset({"Aggregate", "Distinct"})
_STATEFUL = "TransformWithState"
_BY_CLOCK = ", ProcessingTime,"
_OPTIMISED = "== Optimized Logical Plan =="


@dataclass(frozen=True)
class QueryShape:
    """What matters about a streaming query.

    Attributes:
        sources: the formats it reads as streams.
        operators: the names of the operators that rows of streams pass.
        aggregations: how many of them aggregate.
        final_groups: whether the groups of every aggregation become final, because they hold an event time.
        processes: whether process functions (or any ``transformWithState``) are in it.
        by_clock: whether timers of those go by processing time.
    """

    sources: tuple[str, ...]
    operators: frozenset[str]
    aggregations: int
    final_groups: bool
    processes: bool = False
    by_clock: bool = False


def query_shape(native: Any) -> QueryShape:
    """Read the shape of a native streaming frame; nothing is run."""
    return shape_of(explain_text(native, ExplainMode.LOGICAL))


def shape_of(plans: str) -> QueryShape:
    """The shape of the plan that ``explain`` printed."""
    sources: list[str] = []
    names: list[str] = []
    final = True
    by_clock = False
    for line in plans.partition(_OPTIMISED)[0].splitlines():
        if (match := _NODE.match(line)) is None:
            continue
        name, rest = match.groups()
        names.append(name)
        if name.startswith("StreamingRelation"):
            found = (_V2_SOURCE if name.endswith("V2") else _V1_SOURCE).match(rest)
            sources.append(found.group(1).casefold() if found else "unknown")
        elif name.startswith(_STATEFUL):
            by_clock = by_clock or _BY_CLOCK in rest
        elif name in _AGGREGATES:
            groups = _GROUPING.match(rest)
            final = final and groups is not None and _EVENT_TIME.search(groups.group(1)) is not None
    return QueryShape(
        sources=tuple(sources),
        operators=frozenset(names),
        aggregations=sum(name in _AGGREGATES for name in names),
        final_groups=final,
        processes=any(name.startswith(_STATEFUL) for name in names),
        by_clock=by_clock,
    )
