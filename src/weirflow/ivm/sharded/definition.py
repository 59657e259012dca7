"""``Definition``: what a partitioned flow is made of, in the order in which it was filled; the same on every shard."""

from __future__ import annotations

import hashlib
from functools import cached_property, lru_cache, reduce
from typing import TYPE_CHECKING

import msgspec

from weirflow.checkpoint.sealed import FORMAT
from weirflow.errors import ConfigError
from weirflow.ivm.circuit.circuit import ancestors
from weirflow.ivm.compiler.program import Program
from weirflow.ivm.durability.manifest import MOVED, PLANNED
from weirflow.ivm.durability.records import (
    DefinePlannedView,
    DefineSource,
    DefineView,
)
from weirflow.ivm.flow.evolution.plan import lets_go
from weirflow.ivm.flow.folder.entries import entry_source, entry_view
from weirflow.ivm.sharded.plan.policies import EVEN, SpreadPolicy, spread_policy
from weirflow.ivm.sharded.plan.source_columns import source_columns
from weirflow.ivm.sharded.plan.spread import Spread
from weirflow.types import SourceSpread

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from weirflow.ivm.flow.source import Source

SPREAD = 5
"""The format of commits of a flow with a spread policy, whose rows versions before would look for elsewhere."""


class FillGroup(msgspec.Struct, frozen=True):
    """Sources and views that were filled together, views behind those they read.

    Attributes:
        recomputed: what the circuit sees of those views that are recomputed: rows come in as they do for a source.
        spread: how the rows of sources are spread over the shards, where that is not by their use.
        movable: whether all state is where its own rows tell, so that it can be moved to other shards; left out if not.
    """

    sources: tuple[DefineSource, ...]
    views: tuple[DefineView | DefinePlannedView, ...]
    recomputed: tuple[DefineSource, ...] = ()
    spread: dict[str, SourceSpread] = {}
    movable: bool | msgspec.UnsetType = msgspec.UNSET

    def with_others(self, other: FillGroup) -> FillGroup:
        """This group and another one, which may read it, as one."""
        return FillGroup(
            (*self.sources, *other.sources),
            (*self.views, *other.views),
            (*self.recomputed, *other.recomputed),
            {**self.spread, **other.spread},
        )


class Definition(msgspec.Struct, frozen=True, dict=True):
    """All groups, and the columns by which what comes into the circuit is partitioned.

    Attributes:
        forced: whether every view is recomputed, later ones too.
        policy: which shard a row goes to; left out if it is as even as hashes are.
    """

    groups: tuple[FillGroup, ...] = ()
    columns: dict[str, tuple[int, ...]] = {}
    forced: bool = False
    policy: str | msgspec.UnsetType = msgspec.UNSET

    @cached_property
    def digest(self) -> str:
        """Equal for equal definitions."""
        return hashlib.sha256(self.encoded).hexdigest()[:32]

    @cached_property
    def encoded(self) -> bytes:
        """The definition as bytes."""
        return msgspec.json.encode(self)

    @cached_property
    def sources(self) -> dict[str, Source]:
        """The sources by name."""
        return {entry.name: entry_source(entry) for group in self.groups for entry in group.sources}

    @cached_property
    def recomputed(self) -> dict[str, Source]:
        """The views that are recomputed, as the circuit sees them, each behind those it reads."""
        order = [entry.name for group in self.groups for entry in group.views]
        found = {entry.name: entry_source(entry) for group in self.groups for entry in group.recomputed}
        return {name: found[name] for name in order if name in found}

    @cached_property
    def inputs(self) -> dict[str, Source]:
        """All whose rows come into the circuit: sources and views that are recomputed."""
        return {**self.sources, **self.recomputed}

    @cached_property
    def spread(self) -> dict[str, SourceSpread]:
        """How the rows of sources are spread over the shards, where that is not by their use."""
        return {name: how for group in self.groups for name, how in group.spread.items()}

    def is_everywhere(self, name: str) -> bool:
        """Whether every shard gets all rows of what comes into the circuit."""
        return self.spread.get(name) is SourceSpread.EVERYWHERE

    @property
    def views(self) -> dict[str, DefineView]:
        """The views by name."""
        return {entry.name: entry for group in self.groups for entry in group.views}

    @property
    def keeps_all_rows(self) -> bool:
        """Whether the sources have all rows that the views are made of, so that these can be filled anew."""
        views = {name: entry_view(one) for name, one in self.views.items()}
        return not any(lets_go(source, views) for source in self.sources.values())

    @property
    def spread_policy(self) -> SpreadPolicy:
        """Which shard a row goes to; ``ConfigError`` if what says so is not installed here."""
        return spread_policy(self.policy or EVEN)

    @property
    def empty(self) -> Definition:
        """Of the same flow, without sources and views."""
        return Definition(forced=self.forced, policy=self.policy)

    @property
    def is_moved(self) -> bool:
        """Whether state of it was moved to other shards."""
        return any(group.movable is True for group in self.groups)

    @property
    def commit_format(self) -> int:
        """The format of commits that are made of it."""
        if self.is_moved:
            return MOVED
        if self.policy:
            return SPREAD
        return PLANNED if any(isinstance(view, DefinePlannedView) for view in self.views.values()) else FORMAT

    def with_group(self, group: FillGroup) -> Definition:
        """The definition with a new group at the end; it is decided by which columns new sources are partitioned."""
        wider = Definition((*self.groups, group), self.columns, self.forced, self.policy)
        program = Program()
        for one in wider.groups:
            wider.add(one, program)
            program.settle()
        new = {entry.name: wider._columns_of(entry.name, program) for entry in (*group.sources, *group.recomputed)}
        return Definition(wider.groups, {**self.columns, **new}, self.forced, self.policy)

    def moved(self, spread: Mapping[str, SourceSpread], policy: str | msgspec.UnsetType) -> Definition:
        """The definition of the same flow whose state is moved to other shards.

        Args:
            spread: how the rows of some sources are to be spread.
            policy: which shard a row is to go to.
        """
        known = {**self.spread, **spread}
        groups = [
            msgspec.structs.replace(
                group,
                spread={one.name: known[one.name] for one in group.sources if _is_chosen(known.get(one.name))},
                movable=True,
            )
            for group in self.groups
        ]
        wider = Definition(tuple(groups), self.columns, self.forced, policy)
        program = Program()
        for group in groups:
            wider.add(group, program)
            program.settle()
        new = {
            name: wider._columns_of(name, program) for name, how in spread.items() if how is not self.spread_of(name)
        }
        return Definition(wider.groups, {**self.columns, **new}, self.forced, policy)

    def spread_of(self, name: str) -> SourceSpread:
        """How the rows of a source are spread over the shards."""
        return self.spread.get(name, SourceSpread.BY_USE)

    def _columns_of(self, name: str, program: Program) -> tuple[int, ...]:
        """The columns by which the rows of an input are to be partitioned."""
        source = self.inputs[name]
        key = [source.schema.names.index(column) for column in source.key]
        if name in self.spread:
            return tuple(key or range(len(source.schema)))
        return source_columns(program.circuit, name, key)

    def without(self, name: str) -> Definition:
        """The definition without a source or view, which nothing reads."""
        groups = [
            FillGroup(
                tuple(one for one in group.sources if one.name != name),
                tuple(one for one in group.views if one.name != name),
                tuple(one for one in group.recomputed if one.name != name),
                {source: how for source, how in group.spread.items() if source != name},
                group.movable,
            )
            for group in self.groups
        ]
        columns = {source: places for source, places in self.columns.items() if source != name}
        left = tuple(group for group in groups if group.sources or group.views)
        return Definition(left, columns, self.forced, self.policy)

    def together(self) -> FillGroup:
        """All that there is as one group."""
        return reduce(FillGroup.with_others, self.groups, FillGroup((), ()))

    def add(self, group: FillGroup, program: Program) -> None:
        """Compile a group."""
        for entry in (*group.sources, *group.recomputed):
            add_input(self.inputs[entry.name], program, everywhere=self.is_everywhere(entry.name))
        recomputed = {entry.name for entry in group.recomputed}
        program.add_views({entry.name: entry_view(entry) for entry in group.views if entry.name not in recomputed})


def _is_chosen(how: SourceSpread | None) -> bool:
    return how not in (None, SourceSpread.BY_USE)


def add_input(source: Source, program: Program, *, everywhere: bool = False) -> None:
    """Compile what comes into the circuit."""
    program.add_source(source.name, source.schema, key=source.key, keeps=source.keeps, everywhere=everywhere)


class Blueprint:
    """A definition compiled and cut into stages.

    Attributes:
        begins: the number of the first node of each group, and of the one that would come next.
        keys: what all state is stored under.
        keys_of_stage: for each stage, what the state is stored under that it keeps or probes.
    """

    def __init__(self, definition: Definition) -> None:
        self.definition = definition
        self.program = Program()
        self.spread = Spread(self.program, definition.columns, definition.spread_policy)
        self.begins = [0]
        for group in definition.groups:
            definition.add(group, self.program)
            self.spread.extend(movable=group.movable is True)
            self.program.settle()
            self.begins.append(len(self.spread.nodes))
        keys = {
            number: self.spread.key(number) for number, node in enumerate(self.spread.nodes) if node.operator.states
        }
        self.keys = frozenset(keys.values())
        self._key_of = keys
        self.keys_of_stage = [
            frozenset(keys[number] for number in (*self.spread.kept(stage), *self.spread.probed(stage)))
            for stage in range(self.spread.depth)
        ]

    def schema(self, name: str) -> pa.Schema:
        """The columns of a source or view."""
        return self.program.relations[name].schema

    def require_own_state(self, group: int) -> None:
        """Refuse views of a group that would fill state of older views from a source that has let go of rows."""
        first, nodes, relations = self.begins[group], self.spread.nodes, self.spread.relations
        filled = {key for number, key in self._key_of.items() if number >= first}
        shared = {number for number, key in self._key_of.items() if number < first and key in filled}
        if not shared:
            return
        read = {name: ancestors(nodes, [relations[name]]) for name in (*self.definition.inputs, *self.definition.views)}
        for source in self.definition.inputs.values():
            begin = {one for one in read[source.name] if not nodes[one].inputs}
            lost = {one for one in shared if not source.keeps and begin & ancestors(nodes, [one])}
            view = next((name for name in self.definition.views if lost & read[name]), None)
            if view is not None:
                raise ConfigError(
                    f"In shards, a view cannot share what is computed for {view!r} any more: the source "
                    f"{source.name!r} has freed rows that it was computed from.",
                    hint=f"select from {view!r} instead, or register both views before the first tick",
                )


@lru_cache(maxsize=8)
def blueprint_of(data: bytes) -> Blueprint:
    """The blueprint of an encoded definition, to look at: its operators are shared and hold nothing."""
    return Blueprint(decode_definition(data))


def decode_definition(data: bytes) -> Definition:
    """The definition in bytes."""
    return msgspec.json.decode(data, type=Definition)
