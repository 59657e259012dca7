"""Which state of one circuit goes on in which node of another one, when a flow changes its shards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING

from weirflow.errors import ConfigError
from weirflow.ivm.compiler.marks import marks_of
from weirflow.ivm.flow.evolution.plan import not_moved
from weirflow.ivm.operators.nearest.approximate import ApproximateNearest
from weirflow.ivm.operators.nearest.operator import Nearest
from weirflow.ivm.sharded.plan.held import Share

if TYPE_CHECKING:
    from weirflow.ivm.sharded.definition import Blueprint


class Arrival(Enum):
    """What becomes of state where it arrives."""

    AS_IT_IS = auto()
    """It goes on."""
    ADDED_UP = auto()
    """What the shards had seen, each of its own rows, becomes one."""
    SEARCHED = auto()
    """Queries, whose nearest rows are found anew among those that are there then."""


@dataclass(frozen=True)
class Move:
    """State that goes on elsewhere.

    Attributes:
        target: the node of the new circuit that has it.
        source: the node of the old one that had it.
    """

    target: int
    source: int
    arrival: Arrival


def moves_of(old: Blueprint, new: Blueprint) -> list[Move]:
    """Where each node of a new circuit has its state from, but for later steps, whose state the earlier ones make.

    Raises:
        ConfigError: a view has state that cannot be moved, or the old circuit had none for it.
    """
    marks = marks_of(old.program)
    held: dict[tuple[str, Share], int] = {}
    for number, origin in old.spread.origins.items():
        held.setdefault((marks[origin.number], origin.share), number)
    moves = []
    for number, mark in wanted(new):
        own, parts = held.get((mark, Share.OWN)), held.get((mark, Share.PARTS))
        source = parts if own is None else own
        if source is None:
            raise not_found(new, number)
        as_it_is = Arrival.ADDED_UP if own is None else Arrival.AS_IT_IS
        moves.append(Move(number, source, Arrival.SEARCHED if is_searched(new, number) else as_it_is))
    return moves


def wanted(new: Blueprint) -> Iterator[tuple[int, str]]:
    """The nodes of a circuit whose state is to come from elsewhere, each with its operator's mark.

    Raises:
        ConfigError: a view has state that cannot be moved.
    """
    marks = marks_of(new.program)
    for number, origin in new.spread.origins.items():
        if isinstance(new.program.circuit.nodes[origin.number].operator, ApproximateNearest):
            raise ConfigError(
                f"The view {_view(new, number)!r} lists some of the nearest rows, which another search might not find "
                "again: its lists cannot be moved to other shards.",
                hint="drop the view, and register it again afterwards; or keep the rows of all sources",
            )
        if origin.share in (Share.OWN, Share.PARTS):
            yield number, marks[origin.number]


def is_searched(new: Blueprint, number: int) -> bool:
    """Whether a node lists the nearest rows of those on its shard."""
    return isinstance(new.spread.nodes[number].operator, Nearest)


def later_steps(new: Blueprint) -> dict[int, int]:
    """The nodes whose state is made of what others let through an exchange, each with that other node."""
    nodes, found = new.spread.nodes, {}
    for number, origin in new.spread.origins.items():
        if origin.share in (Share.FIRSTS, Share.SUMS):
            (exchange,) = nodes[number].inputs
            (found[number],) = nodes[exchange].inputs
    return found


def not_found(new: Blueprint, number: int) -> ConfigError:
    """For a node whose state is nowhere."""
    return not_moved(_view(new, number))


def _view(new: Blueprint, number: int) -> str:
    """A view that a node is for."""
    views = [name for name in new.definition.views if number in new.spread.beneath(name)]
    assert views, "all that has state is for a view, or the store of a source"
    return views[0]
