"""The incremental flows of a Session, in one process or in shards: opened by name, visible to its SQL."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Collection, Iterable
from contextlib import ExitStack
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any

from weirflow.errors import ConfigError, FlowError, MetadataError, StorageError, WeirflowError, did_you_mean
from weirflow.flows.kept_flows import KeptFlows
from weirflow.flows.local import SessionFlow
from weirflow.flows.sharded import PartitionedIncrementalFlow
from weirflow.ivm.flow.backend import Capability
from weirflow.types import Placement

if TYPE_CHECKING:
    from weirflow.flows.host import FlowSession
    from weirflow.sql.statements.relation_name import RelationName

_OWN = {"engine", "lease", "name", "partitions", "temporary"}
"""What flows are given by their Session."""
_FOLDER_NAME = re.compile(r"[\w][\w .-]*")

Flow = SessionFlow | PartitionedIncrementalFlow
"""A flow of either kind."""


class FlowRegistry:
    """The flows that a Session has opened. A name is that of one flow, whatever its kind."""

    def __init__(self, session: FlowSession) -> None:
        self._session = session
        self._kept = KeptFlows(session)
        self._lock = threading.Lock()
        self._flows: dict[str, Flow] = {}
        self._unopened: dict[str, WeirflowError] = {}

    def open(self, name: str, *, partitions: int | None = None, options: dict[str, Any] | None = None) -> Flow:
        """The flow of this name: the open one, the one that a durable Session keeps, or a new one.

        It is in shards if ``partitions`` says so, and in a distributed Session.

        Raises:
            ConfigError: the flow of this name is of the other kind, or has another number of partitions.
        """
        wanted = options or {}
        with self._lock:
            spread = partitions is not None or self._session.settings.placement is Placement.DISTRIBUTED
            flow = self._flows.get(name)
            if flow is not None and not flow.closed:
                if (Capability.SHARDS in flow.capabilities) is not spread:
                    raise _other_kind(name, flow.partitions, spread=not spread)
                if partitions not in (None, flow.partitions):
                    raise ConfigError(
                        f"The flow {name!r} is open with {flow.partitions} partitions, not {partitions}.",
                        hint=f"use flow.rescale({partitions})",
                    )
                return flow
            kept = None if "path" in wanted else self._kept.is_spread(name)
            if kept is not None and kept is not spread:
                raise _other_kind(name, None, spread=kept)
            return self._remember(self._opened(name, partitions, wanted, spread=spread))

    @property
    def opened(self) -> tuple[Flow, ...]:
        """The flows that are open."""
        return tuple(flow for flow in list(self._flows.values()) if not flow.closed)

    @property
    def kept(self) -> tuple[str, ...]:
        """The names of the flows that a durable Session keeps, open or not."""
        return tuple(self._kept_names())

    def named(self, name: str) -> Flow | None:
        """The flow of this name in any case, opened if the Session keeps it; None if there is none."""
        opened = {flow.name: flow for flow in self.opened}
        if name in opened:
            return opened[name]
        kept = self._kept_names()
        for one in sorted((*opened, *kept), key=lambda one: one != name):
            if one.casefold() == name.casefold():
                return opened[one] if one in opened else self._open_kept(one)
        return None

    def all(self) -> tuple[Flow, ...]:
        """All flows, those that a durable Session keeps opened."""
        opened = {flow.name for flow in self.opened}
        for name in self._kept_names():
            if name not in opened:
                self._open_kept(name)
        return self.opened

    def find(self, name: RelationName, sees: Callable[[str], bool] | None = None) -> tuple[Flow, str] | None:
        """The flow that has this source or view, and how it spells the name; None if there is none.

        Flows that ``sees``, given their names, does not let somebody see are not there; None lets all be seen. Those
        that a durable Session keeps are opened if no open one has it; see ``open_kept``.

        Raises:
            ConfigError: several flows have it.
        """
        if name.flow is not None:
            flow = self.named(name.flow) if sees is None or sees(name.flow) else None
            return None if flow is None else _relation(flow, name.name)
        found = self._having(name.name, sees)
        if not found and self.open_kept([name.name]):
            found = self._having(name.name, sees)
        if len(found) > 1:
            raise ambiguous(name.name, [flow for flow, _ in found])
        return found[0] if found else None

    def open_kept(self, wanted: Iterable[str]) -> bool:
        """Open the flows that a durable Session keeps, but for those that cannot be; whether there are more now.

        Of flows in shards, which take Spark and a lease, only those that have one of the ``wanted`` sources and views.
        """
        names = {one.casefold() for one in wanted}
        before = {flow.name for flow in self.opened}
        for name in set(self._kept_names()) - before:
            try:
                if self._may_have(name, names):
                    self._open_kept(name)
            except (ConfigError, FlowError, StorageError, MetadataError) as error:
                self._unopened[name] = error
            else:
                self._unopened.pop(name, None)
        return {flow.name for flow in self.opened} != before

    @property
    def unopened(self) -> str | None:
        """Which flows could not be opened when something was looked for, and why; None if all could."""
        said = [f"the flow {name!r} could not be searched: {error.message}" for name, error in self._unopened.items()]
        return "; ".join(said) or None

    def close(self) -> None:
        """Close all flows, also when a sink of one fails; ``SinkFailed`` then."""
        with ExitStack() as closing:
            for flow in self.opened:
                closing.callback(flow.close)

    # Inner workings

    def _opened(self, name: str, partitions: int | None, options: dict[str, Any], *, spread: bool) -> Flow:
        require_options(name, PartitionedIncrementalFlow if spread else SessionFlow, options)
        if spread:
            return PartitionedIncrementalFlow(self._session, partitions=partitions, name=name, **options)
        if self._kept.folder is not None:
            if not _FOLDER_NAME.fullmatch(name):
                raise ConfigError(
                    f"{name!r} cannot be the name of a durable flow.",
                    hint="use letters, digits, spaces, dots and hyphens, a letter or digit first",
                )
            options = {"path": self._kept.folder / name, **options}
        return SessionFlow(self._session, name, **options)

    def _open_kept(self, name: str) -> Flow:
        """Open a flow that is kept as what it is."""
        spread = bool(self._kept.is_spread(name))
        with self._lock:
            flow = self._flows.get(name)
            if flow is None or flow.closed:
                flow = self._remember(self._opened(name, None, {}, spread=spread))
            return flow

    def _remember(self, flow: Flow) -> Flow:
        """Have a flow by its name until it is closed: then its rows and what it holds of Spark are let go of."""
        self._flows[flow.name] = flow
        flow._when_closed(lambda: self._forget(flow))  # noqa: SLF001 - for the registry alone
        return flow

    def _forget(self, flow: Flow) -> None:
        with self._lock:
            if self._flows.get(flow.name) is flow:  # and not one that was opened since
                del self._flows[flow.name]

    def _kept_names(self) -> list[str]:
        return sorted({*self._kept.local(), *self._kept.spread()})

    def _may_have(self, name: str, wanted: Collection[str]) -> bool:
        """Whether a kept flow is one in this process, or has one of some sources and views."""
        if not self._kept.is_spread(name):
            return True
        return any(one.casefold() in wanted for one in self._kept.relations(name))

    def _having(self, name: str, sees: Callable[[str], bool] | None) -> list[tuple[Flow, str]]:
        flows = (flow for flow in self.opened if sees is None or sees(flow.name))
        return [found for flow in flows if (found := _relation(flow, name)) is not None]


def ambiguous(name: str, flows: Iterable[Flow]) -> ConfigError:
    """The error for a name that several flows have."""
    choices = " or ".join(f"{flow.name}.{name}" for flow in flows)
    return ConfigError(f"Several flows have a source or view {name!r}.", hint=f"say which: {choices}")


def _other_kind(name: str, shards: int | None, *, spread: bool) -> ConfigError:
    """The error for a flow that is asked for as what it is not."""
    if not spread:
        return ConfigError(
            f"The flow {name!r} runs in this process, not in partitions.",
            hint="leave out partitions=, or choose another name",
        )
    return ConfigError(
        f"The flow {name!r} is in partitions, not in this process.",
        hint=f"use session.flow({name!r}, partitions={shards or 'N'}), or choose another name",
    )


def require_options(name: str, kind: type[Flow], options: Collection[str]) -> None:
    """``ConfigError`` for options that flows of this kind do not have."""
    known = _options(kind) - _OWN
    for option in options:
        if option not in known:
            other = PartitionedIncrementalFlow if kind is SessionFlow else SessionFlow
            where = "in shards" if kind is PartitionedIncrementalFlow else "in this process"
            hint = did_you_mean(option, {*known, "partitions"}) or f"there are {', '.join(sorted(known))}"
            if option in _options(other) - _OWN:
                hint = f"flows {'in this process' if kind is PartitionedIncrementalFlow else 'in shards'} have it"
            raise ConfigError(f"The flow {name!r} cannot have the option {option!r}: it is {where}.", hint=hint)


def _options(kind: type[Flow]) -> set[str]:
    """What can be given by name to the constructors of a class."""
    inits = [vars(one)["__init__"] for one in kind.__mro__ if "__init__" in vars(one) and one is not object]
    return {
        parameter.name
        for init in inits
        for parameter in signature(init).parameters.values()
        if parameter.kind is Parameter.KEYWORD_ONLY
    }


def _relation(flow: Flow, name: str) -> tuple[Flow, str] | None:
    for one in (*flow.sources, *flow.views):
        if one.casefold() == name.casefold():
            return flow, one
    return None
