"""Views of a living flow that are recomputed from now on, whatever their mode says."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from weirflow.errors import ConfigError
from weirflow.ivm.compiler.missing_engine import no_engine
from weirflow.ivm.compiler.user_functions import recomputes
from weirflow.ivm.flow.evolution.plan import restore
from weirflow.ivm.flow.evolution.rebuild import Rebuilt
from weirflow.ivm.flow.folder.entries import manifest_of

if TYPE_CHECKING:
    from weirflow.ivm.flow.state import FlowState


def is_forced(state: FlowState, name: str | None) -> bool:
    """Whether the view is recomputed already; for None, whether all are and will be.

    Raises:
        TableNotFound: there is no such view.
        ConfigError: it is a source.
    """
    if name is None:
        return state.forced
    if name not in state.waiting and state.relation(name) in state.inputs:
        raise ConfigError(f"{name!r} is a source, not a view.")
    return state.declared[name].forced


def force_diff(state: FlowState, name: str | None) -> Rebuilt:
    """The state with a view recomputed, or with all of them and those to come for None; ``state`` is left as it is.

    It is an epoch further if the flow has begun to tick and views had to be built anew. A rebuilt view differs from
    what it was only if the two ways of computing it do.

    Raises:
        EngineMissing: nothing can recompute views here.
        ConfigError: a view reads another one whose rows are not kept.
    """
    if not recomputes(state.engine):
        raise no_engine()
    state.fill()
    views = {one: replace(view, forced=view.forced or name in (None, one)) for one, view in state.declared.items()}
    manifest = manifest_of(state, flow="", identity="", record=0, fence=0)
    restored = restore(manifest, state.program.states(), (state.sources, views), state.engine)
    restored.state.forced = state.forced or name is None
    if state.epoch and restored.plan.rebuilt:
        restored.state.epoch += 1
    return Rebuilt(restored.state, restored.plan, {**restored.differences, **dict.fromkeys(restored.reshaped)})
