"""``SeenFlows``: the flows of a Session that somebody may see."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from weirflow.errors import NotAllowed

if TYPE_CHECKING:
    from weirflow.flows.registry import Flow, FlowRegistry
    from weirflow.sql.statements.relation_name import RelationName


class SeenFlows:
    """A registry as it is for somebody who may see some flows only: the others are not there, nor told of in errors.

    Args:
        flows: all of them.
        sees: says of which, by their names, there is something to be seen.
    """

    def __init__(self, flows: FlowRegistry, sees: Callable[[str], bool]) -> None:
        self._flows = flows
        self._sees = sees

    def open(self, name: str, *, partitions: int | None = None) -> Flow:
        """See ``FlowRegistry``."""
        if not self._sees(name):
            raise NotAllowed(f"The flow {name!r} is not one of yours.")
        return self._flows.open(name, partitions=partitions)

    @property
    def opened(self) -> tuple[Flow, ...]:
        """See ``FlowRegistry``."""
        return tuple(flow for flow in self._flows.opened if self._sees(flow.name))

    def named(self, name: str) -> Flow | None:
        """See ``FlowRegistry``."""
        return self._flows.named(name) if self._sees(name) else None

    def all(self) -> tuple[Flow, ...]:
        """See ``FlowRegistry``."""
        return tuple(flow for flow in self._flows.all() if self._sees(flow.name))

    def find(self, name: RelationName) -> tuple[Flow, str] | None:
        """See ``FlowRegistry``."""
        return self._flows.find(name, self._sees)

    @property
    def unopened(self) -> str | None:
        """Nothing: what it would tell is of others' flows, too."""
        return None
