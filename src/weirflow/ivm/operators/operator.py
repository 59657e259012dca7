"""What every operator of a circuit is: a function of input deltas and its own old state, in two phases.

``step`` only reads state and stages what shall change; ``commit`` applies it. A tick that fails anywhere discards what
was staged everywhere, so nothing has changed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from weirflow.ivm.zset.batch import Batch

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.ivm.kernel.frontier import Frontier
    from weirflow.ivm.kernel.runs.run import Run
    from weirflow.ivm.kernel.state import State


class Operator(ABC):
    """A node of a circuit.

    ``start`` is called once, before anything else. In a tick ``step`` is called at most once, then either ``commit``
    or ``discard``.

    Attributes:
        types: the types of the output columns.
        nothing: no rows of these types.
        consolidated: whether what ``step`` returns holds each row once, with a weight that is not zero.
    """

    consolidated = False

    def __init__(self, types: Sequence[pa.DataType]) -> None:
        self.types = tuple(types)
        self.nothing = Batch.empty(self.types)
        self._staged: list[Callable[[], None]] = []

    @property
    def states(self) -> Sequence[State]:
        """The operator's own state; none for most."""
        return ()

    def maintain(self, fuel: int) -> int:
        """Between ticks: tidy up about ``fuel`` rows of each state, and return how many were."""
        return sum([state.maintain(fuel) for state in self.states])

    @property
    def note(self) -> str:
        """What there is to say of the operator now, for people, behind its label."""
        return ""

    def start(self) -> Batch:
        """The output over empty inputs, which is not always empty."""
        return self.nothing

    @abstractmethod
    def step(self, deltas: Sequence[Batch]) -> Batch:
        """This tick's output delta. Reads old state only, stages changes, may raise ``DataError``."""

    def evaluate(self, rows: Batch) -> None:  # noqa: B027 - most operators have no expressions of one input's rows
        """Compute the operator's expressions for rows of its one input; raises as ``step`` would for them alone."""

    def advance(self, inputs: Sequence[Frontier]) -> Frontier:  # noqa: ARG002 - what most operators know
        """Between ticks: time has come so far at the inputs. State that cannot change any more may go.

        Returns how far time has come at the output.
        """
        return {}

    def adopt(self, runs: Sequence[Sequence[Run]]) -> None:
        """Between ticks: be the operator whose states had these runs, each its own."""
        for state, own in zip(self.states, runs, strict=True):
            state.adopt(own)

    @property
    def is_staged(self) -> bool:
        """Whether ``step`` has staged changes."""
        return bool(self._staged)

    def mark(self) -> Any:
        """What ``commit`` may change, as it is now; ``rewind`` brings it back."""
        return [(state, state.mark()) for state in self.states]

    def rewind(self, mark: Any) -> None:
        """Be as at a mark. May be repeated, so that it can be done again if something interrupts it."""
        for state, held in mark:
            state.rewind(held)

    def commit(self) -> None:
        """Apply what ``step`` staged. What raises may have applied a part of it: ``rewind`` takes that back."""
        staged, self._staged = self._staged, []
        for change in staged:
            change()

    def discard(self) -> None:
        """Forget what ``step`` staged."""
        self._staged = []

    def _stage(self, change: Callable[[], None]) -> None:
        self._staged.append(change)
