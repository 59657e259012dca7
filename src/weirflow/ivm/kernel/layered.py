"""``Layered``: state with a layer on top for what the running tick has brought so far.

An operator that is stepped several times within one tick reads what its earlier steps brought, while the state below
stays as it was until the tick is kept. The layers are read as one: state is a set of immutable runs, and adds up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

from weirflow.ivm.kernel.additive import AdditiveArrangement
from weirflow.ivm.kernel.arrangement import Arrangement

if TYPE_CHECKING:
    from collections.abc import Iterable

    from weirflow.ivm.kernel.run import Run

AnyState = TypeVar("AnyState", Arrangement, AdditiveArrangement)

# As for any state: enough to keep the number of runs logarithmic.
_FUEL_PER_ROW = 12
_LEAST_FUEL = 8192


class Layered(Generic[AnyState]):
    """A state and what is to be added to it.

    Args:
        of_runs: makes a state of the given runs.

    Attributes:
        stored: the state before the tick.
        view: the state with all changes of the tick so far; only to be read.
    """

    def __init__(self, of_runs: Callable[[Iterable[Run]], AnyState]) -> None:
        self._of_runs = of_runs
        self.stored = of_runs(())
        self.forget()

    def change(self, add: Callable[[AnyState], None], rows: int) -> None:
        """Let ``add``, which adds about ``rows`` rows to the state it is given, be seen in the view."""
        add(self._layer)
        self._layer.maintain(max(_LEAST_FUEL, _FUEL_PER_ROW * rows))
        self._changes.append(add)
        self.view = self._of_runs((*self.stored.runs, *self._layer.runs))

    def keep(self) -> None:
        """Make the changes part of the state. Does not fail: the layer has taken them already."""
        for add in self._changes:
            add(self.stored)
        self.forget()

    def forget(self) -> None:
        """Drop the changes: the view is the state again."""
        self._layer = self._of_runs(())
        self._changes: list[Callable[[AnyState], None]] = []
        self.view = self.stored
