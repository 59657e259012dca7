"""Cuts a Spark physical plan at its exchanges into stages, and prints them.

A stage is what Spark runs without moving rows between tasks: one task per partition. Stage 0 makes the
query's result; every other stage feeds stages with smaller numbers through a shuffle, a broadcast or a
subquery. ``partitions`` is the number of tasks of the stage::

    ===============Stage 0 (partitions=4)===============
    SortMergeJoin [name], [name], Inner
      Sort [name ASC NULLS FIRST], false, 0
        ExchangeRead: stage=1, hashpartitioning(name, 4)
      Sort [name ASC NULLS FIRST], false, 0
        ExchangeRead: stage=2, hashpartitioning(name, 4)
    ===============Stage 1 (partitions=2)===============
    Exchange hashpartitioning(name, 4), ENSURE_REQUIREMENTS
      Scan ExistingRDD[id,name]
    ...

Before it ran, an adaptive plan shows what Spark set out to do: it may still merge partitions, reuse exchanges
that are alike and swap joins. The plan behind a cached table is not part of the query that reads it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from math import prod

from weirflow.errors import UnsupportedError
from weirflow.spark.frames.plan_text import PlanNode, parse_plan

_EXCHANGE = re.compile(
    r"(?P<name>\w*Exchange) (?P<partitioning>.*?)(?:, [A-Z_]+(?:, \d+)?)?(?:, \[plan_id=(?P<id>\d+)\])?$"
)
_REUSED_EXCHANGE = re.compile(r"ReusedExchange .*?\], (?P<original>\w*Exchange .*)$")
_SUBQUERY = re.compile(r"(?:ReusedSubquery )?Subquery (?P<name>[\w-]+#\d+), \[id=#\d+\]")
_WIDTH = re.compile(r"\b(\d+)\)$")
_RANGE = re.compile(r"Range \((-?\d+), (-?\d+), step=(-?\d+), splits=(\d+)\)")
_COALESCE = re.compile(r"Coalesce (\d+)")
_OUTER_OF_BUILD_SIDE = re.compile(r"BuildLeft, (LeftOuter|FullOuter)|BuildRight, (RightOuter|FullOuter)")
_SUBQUERIES = ("Subquery", "SubqueryBroadcast", "ReusedSubquery")
_GATHERS = ("TakeOrderedAndProject", "CollectLimit", "CollectTail")
_GATHER = "Exchange SinglePartition"

_PLAN_ID = re.compile(r",? ?\[(?:plan_id=|id=#)\d+\]")
_COLUMN_ID = re.compile(r"(?<=\S)#\d+L?\b")
_EMPTY_FACT = re.compile(r" \w+: \[\],")


class StageKind(StrEnum):
    """What becomes of the rows a stage makes."""

    RESULT = "result"
    SHUFFLE = "shuffle"
    BROADCAST = "broadcast"
    SUBQUERY = "subquery"


@dataclass(frozen=True)
class Stage:
    """A part of a plan that runs without moving rows between tasks.

    Attributes:
        number: 0 for the stage that makes the result; greater than the numbers of all stages it feeds.
        partitions: the number of its tasks, or None where the plan does not tell.
        root: its operators; in place of a stage it reads from stands a leaf such as
            ``ExchangeRead: stage=2, hashpartitioning(name, 4)``.
        children: the numbers of the stages it reads from, in the order the plan names them.
        kind: what becomes of its rows.
        key: what Spark's plan knows it by: ``result``, ``exchange <id>``, a subquery's name, or ``limit <n>`` below
            the plan's n-th limit.
    """

    number: int
    partitions: int | None
    root: PlanNode
    children: tuple[int, ...]
    kind: StageKind
    key: str = field(default="", repr=False, compare=False)


def cut(plan: str, leaf_partitions: Sequence[int | None] = ()) -> tuple[Stage, ...]:
    """The stages of a physical plan, by number; none if ``plan`` holds no plan.

    Args:
        plan: the plan as ``explain()`` prints it.
        leaf_partitions: what the text does not say, one entry for each node of ``partition_sources``: the
            number of its partitions, or None if unknown; for a Union the number of partitions it lines its
            inputs up to, 0 if it just chains them. A sequence of another length belongs to another plan (a
            live adaptive plan changes while it runs) and is ignored.

    Raises:
        UnsupportedError: the plan is hundreds of operators deep.
    """
    try:
        root = parse_plan(plan)
        if root is None:
            return ()
        root = _with_gathers(root)
        sources = partition_sources(root)
        known = leaf_partitions if len(leaf_partitions) == len(sources) else ()
        return _Cutter(root, {id(node): count for node, count in zip(sources, known, strict=False)}).stages()
    except RecursionError:
        raise UnsupportedError(
            "This plan is nested too deeply to be cut into stages.",
            hint="explain it in the mode 'physical', or checkpoint the data between iterations",
        ) from None


def render(stages: Sequence[Stage]) -> str:
    """One block per stage: its heading, then its operators, indented by two below what they feed."""
    lines: list[str] = []
    for stage in stages:
        partitions = "?" if stage.partitions is None else stage.partitions
        heading = f"Stage {stage.number} (partitions={partitions})"
        lines.append(f"{'=' * 15}{heading}{'=' * 15}")
        lines += (f"{'  ' * depth}{node.text}" for depth, node in _outline(stage.root))
    return "\n".join(lines)


def partition_sources(root: PlanNode) -> list[PlanNode]:
    """The nodes whose number of partitions is not given by what they read, in the order they are printed.

    These are the leaves (scans, ranges, local tables), the adaptive shuffle reads, and the unions.
    """
    return [
        node
        for node in _walk(root)
        if node.name in ("AQEShuffleRead", "Union") or (_is_leaf(node) and not node.name.startswith("Reused"))
    ]


def _is_leaf(node: PlanNode) -> bool:
    return all(child.name in _SUBQUERIES for child in node.children)


def _walk(root: PlanNode) -> Iterator[PlanNode]:
    return (node for _, node in _outline(root))


def _outline(root: PlanNode) -> Iterator[tuple[int, PlanNode]]:
    """The nodes in the order they are printed, each with its depth."""
    pending = [(0, root)]
    while pending:
        depth, node = pending.pop()
        yield depth, node
        pending += ((depth + 1, child) for child in reversed(node.children))


def _with_gathers(node: PlanNode, *, last: bool = True) -> PlanNode:
    """The plan with the exchange drawn in that a limit makes by itself wherever it is not the last step."""
    children = tuple(_with_gathers(child, last=node.name == "Subquery") for child in node.children)
    if node.name in _GATHERS and not last:
        children = tuple(PlanNode(_GATHER, (child,)) for child in children)
    unchanged = all(new is old for new, old in zip(children, node.children, strict=True))
    return node if unchanged else PlanNode(node.text, children)


@dataclass(frozen=True)
class _Crossing:
    """A place where a stage reads another one.

    ``key`` tells which, the same for all its readers; ``body`` is its plan; ``label`` says how its rows are
    spread over the reader's tasks.
    """

    key: str
    kind: StageKind
    body: PlanNode
    label: str = ""

    def reference(self, number: int) -> PlanNode:
        if self.kind is StageKind.SHUFFLE:
            return PlanNode(f"ExchangeRead: stage={number}, {_cleaned(self.label, {})}")
        return PlanNode(f"{self.kind.capitalize()}Read: stage={number}")


class _Cutter:
    def __init__(self, root: PlanNode, known: Mapping[int, int | None]) -> None:
        self._result = _Crossing("result", StageKind.RESULT, root)
        self._known = known
        self._counted: dict[int, int | None] = {}
        self._exchanges: dict[str, PlanNode] = {}
        self._subqueries: dict[str, PlanNode] = {}
        for node in _walk(root):
            if node.name == "Subquery" and (found := _SUBQUERY.match(node.text)):
                self._subqueries.setdefault(found["name"], node)
            elif node.children and (found := _EXCHANGE.match(node.text)) and found["id"]:
                self._exchanges.setdefault(found["id"], node)
        limits = (node.children[-1:] for node in _walk(root) if node.name in _GATHERS)
        self._gathers = {id(node): f"limit {place}" for place, gathered in enumerate(limits) for node in gathered}

    def stages(self) -> tuple[Stage, ...]:
        for node in reversed([*_walk(self._result.body)]):
            self._count(node)  # inputs before what reads them, so that counting does not nest
        crossings = self._in_order()
        numbers = {crossing.key: number for number, (crossing, _) in enumerate(crossings)}
        return tuple(
            Stage(
                number=numbers[stage.key],
                partitions=self._tasks(stage),
                root=self._rewritten(stage.body, numbers, inside=stage.kind is not StageKind.RESULT),
                children=tuple(dict.fromkeys(numbers[read.key] for read in reads)),
                kind=stage.kind,
                key=stage.key,
            )
            for stage, reads in crossings
        )

    def _in_order(self) -> list[tuple[_Crossing, list[_Crossing]]]:
        """Every stage with what it reads, readers first; where no stage has two readers, in plan order."""
        finished: list[tuple[_Crossing, list[_Crossing]]] = []
        seen: set[str] = set()
        pending: list[tuple[_Crossing, list[_Crossing], list[_Crossing]]] = []

        def enter(stage: _Crossing) -> None:
            seen.add(stage.key)
            reads = self._reads(stage)
            pending.append((stage, reads, list(reads)))

        enter(self._result)
        while pending:
            stage, reads, unvisited = pending[-1]
            if not unvisited:
                finished.append((stage, reads))
                pending.pop()
            elif (read := unvisited.pop()).key not in seen:
                enter(read)
        return finished[::-1]

    def _reads(self, stage: _Crossing) -> list[_Crossing]:
        reads = []
        pending = [stage.body] if stage.kind is StageKind.RESULT else [*reversed(self._inputs(stage.body))]
        while pending:
            node = pending.pop()
            crossing = self._crossing(node)
            if crossing is None:
                pending += reversed(self._inputs(node))
            else:
                reads.append(crossing)
        return reads

    def _rewritten(self, node: PlanNode, numbers: Mapping[str, int], *, inside: bool = False) -> PlanNode:
        """The node as its stage shows it; ``inside`` for the top of the stage that other stages read."""
        crossing = None if inside else self._crossing(node)
        if crossing is not None:
            return crossing.reference(numbers[crossing.key])
        text = "Subquery" if node.name == "Subquery" else _cleaned(node.text, numbers)
        return PlanNode(text, tuple(self._rewritten(child, numbers) for child in self._inputs(node)))

    def _crossing(self, node: PlanNode) -> _Crossing | None:
        """The stage that begins (seen from its reader) at ``node``; None where the reader's stage goes on."""
        if found := _SUBQUERY.match(node.text):
            body = self._subqueries.get(found["name"], node)
            return _Crossing(found["name"], StageKind.SUBQUERY, body)
        if node.name == "AQEShuffleRead" and len(node.children) == 1:
            how = node.text.removeprefix("AQEShuffleRead").strip()
            return self._exchange(node.children[0], f", {how}" if how else "")
        return self._exchange(node)

    def _exchange(self, node: PlanNode, how_read: str = "") -> _Crossing | None:
        reused = _REUSED_EXCHANGE.match(node.text)
        original = PlanNode(reused["original"]) if reused else node
        found = _EXCHANGE.match(original.text)
        if found is None:
            return None
        body = self._exchanges.get(found["id"] or "", original)
        key = f"exchange {found['id']}" if found["id"] else self._gathers.get(id(node), f"exchange {id(node)}")
        if "Broadcast" in found["name"]:
            return _Crossing(key, StageKind.BROADCAST, body)
        return _Crossing(key, StageKind.SHUFFLE, body, found["partitioning"] + how_read)

    def _inputs(self, node: PlanNode) -> tuple[PlanNode, ...]:
        """What the node reads; a limit over one partition needs no exchange after all."""
        return tuple(
            child.children[0] if child.text == _GATHER and self._count(child.children[0]) == 1 else child
            for child in node.children
        )

    def _tasks(self, stage: _Crossing) -> int | None:
        if stage.kind is StageKind.RESULT:
            return self._count(stage.body)
        inputs = self._inputs(stage.body)
        return self._count(inputs[0]) if len(inputs) == 1 else None

    def _count(self, node: PlanNode) -> int | None:
        """The partitions of the rows ``node`` makes, or None if the plan does not tell."""
        if id(node) not in self._counted:
            self._counted[id(node)] = self._counted_anew(node)
        return self._counted[id(node)]

    def _counted_anew(self, node: PlanNode) -> int | None:
        known = self._known.get(id(node))
        if node.name == "AQEShuffleRead":
            return known
        if (crossing := self._exchange(node)) is not None:
            return _width(crossing.label)
        if _is_leaf(node):
            return _leaf_count(node.text) if known is None else known
        counts = [self._count(child) for child in self._inputs(node) if self._feeds_tasks(child)]
        return _combined(node, counts, lined_up=known)

    def _feeds_tasks(self, child: PlanNode) -> bool:
        """Whether a node's tasks follow this input; subqueries and broadcasts are the same for every task."""
        if child.name in _SUBQUERIES:
            return False
        crossing = self._crossing(child)
        return crossing is None or crossing.kind is not StageKind.BROADCAST


def _combined(node: PlanNode, counts: list[int | None], *, lined_up: int | None) -> int | None:
    """The partitions of an operator over inputs with these; ``lined_up`` is what is known of a union."""
    known = [count for count in counts if count is not None]
    complete = len(known) == len(counts)
    agreed = known[0] if len(set(known)) == 1 else None
    match node.name:
        case "Union" if lined_up:
            return lined_up
        case "Union":
            # Spark lines up inputs that are partitioned alike, which it decides by more than the text shows.
            return sum(known) if complete and (lined_up == 0 or agreed is None) else None
        case "CartesianProduct":
            return prod(known) if complete else None
        case "Coalesce" if found := _COALESCE.match(node.text):
            limit = int(found[1])
            return limit if limit == 1 else min(limit, agreed) if agreed is not None else None
        case "BroadcastNestedLoopJoin" if _OUTER_OF_BUILD_SIDE.search(node.text):
            return None
        case _:
            return agreed


def _leaf_count(text: str) -> int | None:
    if found := _RANGE.match(text):
        start, end, step, splits = map(int, found.groups())
        return splits if (end - start) * step > 0 else 0
    return 1 if text.startswith("Scan OneRowRelation") else None


def _width(partitioning: str) -> int | None:
    """How many partitions a partitioning such as ``hashpartitioning(name, 4)`` has."""
    if partitioning == "SinglePartition":
        return 1
    found = _WIDTH.search(partitioning)
    return int(found[1]) if found else None


def _cleaned(text: str, numbers: Mapping[str, int]) -> str:
    """An operator's line without the ids that mean nothing to a reader; subqueries by stage number."""
    if numbers:
        text = _SUBQUERY.sub(lambda found: _named(found, numbers), text)
    if "Scan" in text.partition(" ")[0]:
        text = _EMPTY_FACT.sub("", text)
    return _COLUMN_ID.sub("", _PLAN_ID.sub("", text))


def _named(subquery: re.Match[str], numbers: Mapping[str, int]) -> str:
    number = numbers.get(subquery["name"])
    return subquery.group() if number is None else f"subquery(stage={number})"
