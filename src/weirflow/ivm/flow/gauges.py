"""What a flow holds at a moment, for its metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weirflow.ivm.operators.nearest.approximate import ApproximateNearest
from weirflow.observability.metrics import FlowGauges

if TYPE_CHECKING:
    from weirflow.ivm.compiler.program import Program
    from weirflow.ivm.flow.folder.store import FlowStore
    from weirflow.ivm.flow.outputs.publisher import Publisher
    from weirflow.ivm.flow.state import FlowState


def measure(state: FlowState, outputs: Publisher, store: FlowStore | None) -> FlowGauges:
    """The gauges of a flow that nothing changes meanwhile."""
    return FlowGauges(
        epoch=state.epoch,
        state_bytes=state.nbytes,
        view_bytes={name: _view_bytes(state.program, name) for name in state.views},
        waiting=outputs.waiting(),
        recall={name: found for name in state.views if (found := _recall(state.program, name)) is not None},
        log_bytes=None if store is None else store.log_bytes,
    )


def _own(program: Program, name: str) -> set[int]:
    """The nodes between a view and the sources and views it reads, with the view's own."""
    others = {
        number
        for other, relation in program.relations.items()
        if other != name
        for number in (relation.node, *((relation.store.node,) if relation.store else ()))
    }
    relation = program.relations[name]
    ahead = [relation.node, *([relation.store.node] if relation.store else [])]
    own: set[int] = set()
    while ahead:
        number = ahead.pop()
        if number not in own:
            own.add(number)
            ahead += [one for one in program.circuit.nodes[number].inputs if one not in others]
    return own


def _view_bytes(program: Program, name: str) -> int:
    """The state between a view and the sources and views it reads, with the view's own rows."""
    nodes = program.circuit.nodes
    return sum(state.nbytes for number in _own(program, name) for state in nodes[number].operator.states)


def _recall(program: Program, name: str) -> float | None:
    """The least recall of the approximate operators of a view; None if it has none, or none was measured."""
    operators = [program.circuit.nodes[number].operator for number in _own(program, name)]
    found = [one.recall for one in operators if isinstance(one, ApproximateNearest) and one.recall is not None]
    return min(found, default=None)
