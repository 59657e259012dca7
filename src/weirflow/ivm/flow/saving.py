"""``Saving``: checkpoints, and going on from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weirflow.arguments import Count, Uri, checked
from weirflow.checkpoint import open_checkpoint_storage
from weirflow.errors import ConfigError, FlowError
from weirflow.ivm.durability.checkpoints import Checkpoints
from weirflow.ivm.flow.core import FlowCore
from weirflow.ivm.flow.evolution import EvolutionPlan, plan_evolution, restore
from weirflow.ivm.flow.persist import manifest_of
from weirflow.ivm.flow.source import LATE
from weirflow.ivm.flow.unfinished import Committed

if TYPE_CHECKING:
    from pathlib import Path


@checked
class Saving(FlowCore):
    """Checkpoints, and going on from them."""

    def checkpoint(self, uri: Uri | None = None) -> str:
        """Save the flow, writing only what the last checkpoint there lacks; returns the checkpoint's name.

        Args:
            uri: where: a folder or a URI such as ``s3://bucket/flows/shop``; None for the flow's own path.
        """
        return self._checkpoint(uri, full=False)

    def checkpoint_full(self, uri: Uri) -> str:
        """Save the flow whole, so that the checkpoint needs no file of earlier ones."""
        return self._checkpoint(uri, full=True)

    def restore(self, uri: Uri, *, epoch: Count | None = None) -> EvolutionPlan:
        """Go on from a checkpoint: the newest, or that of an epoch.

        A flow without sources takes those of the checkpoint. One that has its own keeps the state of views that are
        unchanged, builds changed and new ones from the sources' rows, and gives their watches the difference. On an
        error nothing has changed.

        Raises:
            ObjectNotFound: there is no such checkpoint.
            StorageError: a file of it is damaged or missing.
            ConfigError: a source has other columns than its rows in the checkpoint.
        """
        with self._ticks, self._lock:
            self._require_open()
            self._outputs.telling.require_over("restore the flow")
            if self._store is not None:
                raise FlowError(
                    f"The flow {self.name!r} lives in its own path.",
                    hint="restore into a flow without a path, or open another path",
                )
            if len(self._sinks):
                raise FlowError("A flow with sinks cannot be restored.", hint="close its sinks first")
            checkpoints = self._checkpoints(uri)
            manifest = checkpoints.find(epoch)
            wanted = (self._state.sources, {**self._state.views, **self._state.waiting})
            restored = restore(manifest, checkpoints.load(manifest), wanted if any(wanted) else None, self._engine)
            if any(wanted):
                restored.state.forced = self._state.forced
            epoch = restored.state.epoch
            known = restored.state.program.relations.keys() - set(restored.reshaped)
            publication = self._outputs.publication(epoch, restored.differences)
            self._outputs.expect(epoch)

            def take_over() -> None:
                self._state = restored.state
                self._pending = None
                self._outputs.history.forget(epoch)
                self._outputs.close(lambda view: view.removesuffix(LATE) not in known)

            self._change(lambda: Committed([take_over, publication.run]), None, lambda: None)
            self._afterwards([publication.raise_interrupt])
            return restored.plan

    def plan(self, other: Saving) -> EvolutionPlan:
        """What restoring a checkpoint of this flow into ``other`` would keep, build anew and drop."""
        with self._lock:
            self._ready()
            old = (self._state.sources, {**self._state.views, **self._state.waiting})
            new = (other._state.sources, {**other._state.views, **other._state.waiting})
            return plan_evolution(old, new, set(self._state.program.states()), self._engine)

    def _checkpoint(self, uri: str | Path | None, *, full: bool) -> str:
        with self._lock:
            self._require_open()
            self._ready()
            if uri is None:
                if self._store is None:
                    raise ConfigError("Where shall the checkpoint go?", hint="pass a folder or URI")
                self._sinks.record()
                return self._store.checkpoint(self._state).name
            checkpoints = self._checkpoints(uri)
            number = checkpoints.next_number(self.epoch)
            manifest = manifest_of(self._state, flow=self.name, identity="", record=number, fence=0)
            return checkpoints.save(self._state.program.states(), manifest, full=full).name

    def _checkpoints(self, uri: str | Path) -> Checkpoints:
        where = str(uri)
        if where not in self._saved_to:
            self._saved_to[where] = Checkpoints(open_checkpoint_storage(where), self._metrics)
        return self._saved_to[where]
