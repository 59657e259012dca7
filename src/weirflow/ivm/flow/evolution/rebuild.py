"""Rebuilding a view of a living flow, with all that reads it: to compute something else, or to compute it afresh."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weirflow.ivm.compiler.reads import with_readers
from weirflow.ivm.flow.evolution.plan import EvolutionPlan, restore
from weirflow.ivm.flow.folder.entries import manifest_of

if TYPE_CHECKING:
    from weirflow.ivm.compiler.view import View
    from weirflow.ivm.flow.state import FlowState
    from weirflow.ivm.zset.batch import Batch


@dataclass(frozen=True)
class Rebuilt:
    """A state one epoch further, which shares what is unchanged with the state it was made from.

    Attributes:
        plan: what was kept and what was built anew.
        changed: how rebuilt views differ from what they were; None for views whose readers cannot be told, because
            their columns are others now or their rows are not kept.
    """

    state: FlowState
    plan: EvolutionPlan
    changed: Mapping[str, Batch | None]

    @property
    def differences(self) -> dict[str, Batch]:
        """What readers have to apply."""
        return {name: rows for name, rows in self.changed.items() if rows is not None}


def rebuild(state: FlowState, name: str, view: View, others: Mapping[str, View] | None = None) -> Rebuilt:
    """The state with ``view`` under the name of one that it has. If that is the same, nothing of it is trusted.

    ``others`` are views that it has, with other plans than before.
    ``state`` is left as it is. Raises what declaring the view raises, and so for views that read it.
    """
    state.fill()
    view = state.effective(name, view)
    stale = with_readers(name, state.views) if state.views[name] == view else set[str]()
    manifest = manifest_of(state, flow="", identity="", record=0, fence=0)
    wanted = (state.sources, {**state.declared, **(others or {}), name: view})
    restored = restore(manifest, state.program.states(), wanted, state.engine, stale=stale)
    for one, reason in restored.state.reasons.items():
        if one not in state.waiting:
            raise reason
    restored.state.fill()
    restored.state.epoch += 1
    ended = [one for one in restored.plan.rebuilt if not _comparable(state, restored.state, one)]
    return Rebuilt(restored.state, restored.plan, {**restored.differences, **dict.fromkeys(ended)})


def _comparable(old: FlowState, new: FlowState, name: str) -> bool:
    before, after = old.program.relations[name], new.program.relations[name]
    return before.store is not None and after.store is not None and before.fields == after.fields
