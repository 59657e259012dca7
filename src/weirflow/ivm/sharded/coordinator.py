"""``Coordinator``: the one who runs a partitioned flow's ticks and publishes what they did."""

from __future__ import annotations

import logging
import uuid
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import msgspec

from weirflow.checkpoint.sealed import FORMAT, refused
from weirflow.errors import ConfigError, LeaseLost, StorageError
from weirflow.ivm.flow.source import LATE
from weirflow.ivm.sharded.commits import SHARED, Commit, CommitFiles, CommittedTick, GivenTick, PendingTick
from weirflow.ivm.sharded.definition import Blueprint, Definition, FillGroup, decode_definition
from weirflow.ivm.sharded.jobs import FlowJobs, PendingCommit, after, part_of_commit
from weirflow.ivm.sharded.ledger import ChangeNotice, Ledger
from weirflow.ivm.sharded.plan.policies import EVEN
from weirflow.ivm.sharded.plan.recomputing import chosen
from weirflow.ivm.sharded.recent_ticks import RecentTicks, recent_ticks
from weirflow.ivm.sharded.saved import Restoring
from weirflow.ivm.sharded.worker.files import flow_files
from weirflow.ivm.sharded.worker.relation_rows import relation_rows
from weirflow.ivm.sharded.worker.reports import RefusedDelta
from weirflow.ivm.zset.rows import consolidate
from weirflow.sql.clock.relation import CLOCK
from weirflow.types import SourceSpread

if TYPE_CHECKING:
    from weirflow.ivm.durability.checkpoints import Checkpoints
    from weirflow.ivm.durability.manifest import Manifest
    from weirflow.ivm.durability.records import DefineView
    from weirflow.ivm.kernel.deadline import Deadline
    from weirflow.ivm.sharded.executor import StageExecutor
    from weirflow.ivm.sharded.saved import Declared, RestoredShards
    from weirflow.ivm.sharded.worker.reports import RowsRef, ShardReport
    from weirflow.ivm.zset.batch import Batch
    from weirflow.metadata import Lease

_log = logging.getLogger(__name__)

_KEPT_COMMITS = 16
"""How many commits back a reader may be that has not finished."""
_SWEEP_EVERY = 64
_TOKENS = 1000
_OTHER_VERSION = "open it with the version of Weirflow that wrote it, or make it again from its sources"


class Coordinator:
    """Runs changes of a flow one after the other, each as one job, and commits what the job reports.

    Not for several threads at once. What raises has changed nothing that others can see, unless the exception came
    while the change was published: then ``is_settled`` is false until ``settle`` has found out.

    Args:
        uri: the flow's storage, which the executors reach too.
        shards: how many a new flow has; one that is there has its own.
        executor: what runs stages.
        lease: says that this is still the flow's coordinator, and with which token. Without one the commits alone tell
            two coordinators apart.
        at: the number of the commit to go on from, which is kept; what came behind it is undone. None for the last.
        policy: which shard a row goes to; a flow that is there has its own, which None takes.

    Attributes:
        recent: what ticks before this coordinator's changed, as far as it is kept.
    """

    def __init__(
        self,
        uri: str,
        shards: int,
        executor: StageExecutor,
        lease: Lease | None = None,
        *,
        at: int | None = None,
        policy: str | None = None,
    ) -> None:
        self.uri = uri
        self.files = flow_files(uri)
        self.commits = CommitFiles(self.files.storage)
        self._executor = executor
        self._jobs = FlowJobs(uri, executor)
        self._lease = lease
        self._ledger = Ledger(self.commits, lease)
        self._pinned: Counter[int] = Counter([] if at is None else [at])
        self._chores = ThreadPoolExecutor(1, thread_name_prefix="weirflow-partitioned")
        self._written: Future[None] | None = None
        try:
            self._take_over(shards, at, policy)
        except LeaseLost:
            if lease is None:
                raise
            # The one before had a last commit on its way when the lease changed hands; there cannot be another.
            self._take_over(shards, at, policy)

    @property
    def reports(self) -> Sequence[ShardReport]:
        """Of the tasks of the last job."""
        return self._jobs.reports

    @property
    def commit(self) -> Commit:
        """What the flow is now."""
        return self._ledger.commit

    @property
    def blueprint(self) -> Blueprint:
        """The flow's circuit, cut into stages."""
        return self._ledger.blueprint

    @property
    def pending(self) -> PendingTick | None:
        """A tick that was begun and not committed, maybe by a coordinator before this one."""
        return self._ledger.pending

    @property
    def untold(self) -> ChangeNotice | None:
        """What the last change did, until it is told."""
        return self._ledger.untold

    def told(self) -> None:
        """Everyone knows what the last change did."""
        self._ledger.untold = None

    @property
    def is_settled(self) -> bool:
        """Whether it is known what the flow is, and everyone was told."""
        return self._ledger.is_settled and self._ledger.untold is None

    def settle(self) -> None:
        """Find out what became of a change that an exception came into; fails like ``Ledger.settle``."""
        self._ledger.settle()

    @property
    def definition(self) -> Definition:
        """What the flow is made of."""
        return self.blueprint.definition

    # Changes

    def define(self, group: FillGroup) -> None:
        """Add sources and views, and fill the views from the rows that are there."""
        before, commit = self.definition, self.commit
        # As long as no row has come, nor waits to, where rows go is for all that reads them to decide.
        if not commit.epoch and self.pending is None:
            group = before.together().with_others(group)
            before = before.empty
            commit = msgspec.structs.replace(commit, states={}, versions={}, packs={}, released={})
        blueprint = Blueprint(before.with_group(group))
        self._require_fillable(blueprint)
        filled = self._jobs.fill(blueprint, commit, len(blueprint.definition.groups) - 1)
        self._redefine("define", blueprint, filled)

    def require_definable(self, group: FillGroup) -> None:
        """Raise what ``define`` would raise for sources and views, without filling them."""
        definition = self.definition.with_group(group)
        if self.commit.epoch:
            self._require_fillable(Blueprint(definition))

    def _require_fillable(self, blueprint: Blueprint) -> None:
        if self.commit.epoch:
            blueprint.require_own_state(len(blueprint.definition.groups) - 1)

    def drop(self, name: str) -> None:
        """Remove a source or view that nothing reads."""
        blueprint = Blueprint(self.definition.without(name))
        gone = ChangeNotice(self.commit.epoch, ended=(name, f"{name}{LATE}"))
        self._redefine("drop", blueprint, _left(self.commit, blueprint), gone)

    def rescale(self, shards: int, spread: Mapping[str, SourceSpread]) -> None:
        """Spread the flow over another number of shards, and some sources in another way.

        Rows go to their new places and fill all views; where not all rows are kept, all state goes to its new place.

        Raises:
            ConfigError: not all rows are kept, and the state of a view cannot be moved.
        """
        if not self.definition.keeps_all_rows:
            blueprint = Blueprint(self.definition.moved(spread, self.definition.policy))
            self._redefine("rescale", blueprint, self._jobs.carried(self.blueprint, blueprint, self.commit, shards))
            return
        known = {**self.definition.spread, **spread}
        spread_otherwise = {name: how for name, how in known.items() if how is not SourceSpread.BY_USE}
        group = msgspec.structs.replace(self.definition.together(), spread=spread_otherwise)
        blueprint = Blueprint(self.definition.empty.with_group(group))
        self._redefine("rescale", blueprint, self._jobs.move(self.blueprint, blueprint, self.commit, shards))

    def restore(
        self,
        manifest: Manifest,
        checkpoints: tuple[Checkpoints, str],
        wanted: Declared | None,
        spread: Mapping[str, SourceSpread],
    ) -> RestoredShards:
        """Go on from a checkpoint; the flow has had no tick. See ``Restoring.restored`` for the arguments."""
        restoring = Restoring(self.uri, self.blueprint, self.commit, self._jobs, self._executor)
        restored = restoring.restored(manifest, checkpoints, wanted, spread)
        self._redefine("restore", restored.blueprint, restored.commit)
        return restored

    def force(self, names: Collection[str], *, later: bool) -> None:
        """Have views recomputed from now on, and with ``later`` those to come, too.

        What the first comparison finds to be different is a tick; nothing is to be expected.
        """
        before = msgspec.structs.replace(self.definition.empty, forced=self.definition.forced or later)
        known = {*names, *self.definition.recomputed}
        blueprint = Blueprint(
            before.with_group(chosen(before, self.definition.together(), self._executor, forced=known))
        )
        self._redefine("force", blueprint, self._jobs.move(self.blueprint, blueprint, self.commit, self.commit.shards))
        stepped = self._jobs.tick(blueprint, self.commit, self.commit.epoch + 1, {}, list(names))
        if stepped.changed and self.commit.epoch:
            self._commit_ticks(stepped, self.commit.epoch + 1)

    def replace(self, view: str, views: Sequence[DefineView]) -> None:
        """Have a view compute something else, or the same afresh, as one epoch.

        Args:
            view: its name.
            views: what is rebuilt: this view and those that read it; and those that it reads, if nothing is trusted.
                Each is behind those that it reads. All others stay as they are.
        """
        before, old = self.commit, self.blueprint
        rebuilt = [one.name for one in views]
        rest = self.definition
        for name in reversed(rebuilt):
            rest = rest.without(name)
        forced = [name for name in self.definition.recomputed if name != view]
        group = chosen(rest, FillGroup((), tuple(views)), self._executor, forced=forced)
        blueprint = Blueprint(rest.with_group(group))
        left = _left(before, Blueprint(rest))
        filled = self._jobs.fill(blueprint, left, len(blueprint.definition.groups) - 1)
        ended = [name for name in rebuilt if not _comparable(old, blueprint, name)]
        found = {
            name: self._jobs.difference((old, before), (blueprint, filled), name)
            for name in rebuilt
            if name not in ended
        }
        outputs = {name: refs for name, refs in found.items() if refs}
        filled = msgspec.structs.replace(filled, epoch=before.epoch + 1)
        # What was told of a view with other columns is of no use for those who come back.
        ticked = ChangeNotice(filled.epoch, (), outputs, tuple(ended))
        self._redefine("replace" if ended else "tick", blueprint, filled, ticked)

    @property
    def shares_jobs(self) -> bool:
        """Whether one job can run several ticks: nothing has to come together here between two of them."""
        sources = self.definition.sources.values()
        return not self.definition.recomputed and all(one.lateness is None and one.name != CLOCK for one in sources)

    def begin(
        self, given: GivenTick, *, position: tuple[str, str, str] | None = None, more: Sequence[GivenTick] = ()
    ) -> PendingTick:
        """Remember a tick, so that it can be run, and run again, by this coordinator or the next.

        Args:
            given: what it brings.
            position: where the stream is that brings it.
            more: ticks of others for the epochs behind, to be run in the same job; the flow ``shares_jobs``.
        """
        self._require_leader()
        pending = PendingTick(
            self.commit.identity,
            self.commit.epoch + 1,
            self._token,
            given.token,
            position,
            given.deltas,
            given.digests,
            format=SHARED if more else FORMAT,
            more=list(more),
        )
        self._ledger.pending = pending
        # It is on the disk before the tick is committed; until then nobody has been told that it happened.
        self._written = self._chores.submit(self.commits.put_pending, pending)
        return pending

    def part(self) -> None:
        """Leave the tick that was begun without those of others: they are to be begun anew, each for itself."""
        pending = self.pending
        if pending is not None and pending.more:
            self._ledger.pending = pending.alone
            self._written = None
            self._chores.submit(self.commits.put_pending, pending.alone).result()

    def discard(self) -> None:
        """Give up the tick that was begun."""
        pending = self.pending
        if pending is not None:
            self._written = None
            # Behind the one that writes it, which may not have come to it yet.
            self._chores.submit(self.commits.drop_pending, pending.epoch, pending.fence).result()
            self._ledger.pending = None

    def close(self) -> None:
        """Finish what is done in the background."""
        self._chores.shutdown()

    def tick(self, deadline: Deadline) -> ChangeNotice:
        """Run the tick that was begun, and those of others behind it, and commit all of them together.

        Raises:
            DataError: a row breaks a rule of a view; the tick stays begun. Or a delta is no change of its source, as it
                retracts a row that is not there; the tick is given up, unless others are behind it.
            TickTimeout: its jobs are not done by the deadline; the tick stays begun.
            LeaseLost: another coordinator has taken over.
            StorageError: the storage failed; ``settle`` finds out whether the tick has happened.
        """
        pending = self.pending
        assert pending is not None
        self._require_leader()
        try:
            with deadline:
                if pending.more:
                    deltas = [one.deltas for one in pending.given]
                    stepped = self._jobs.ticks(self.blueprint, self.commit, pending.epoch, deltas)
                else:
                    stepped = self._jobs.tick(self.blueprint, self.commit, pending.epoch, pending.deltas)
        except RefusedDelta as refused:
            if not pending.more:
                self.discard()
            raise refused.error from refused
        self._await_written()
        return self._commit_ticks(stepped, pending.epoch, pending, **self._remembered(pending))

    def tidy(self, done: PendingTick) -> None:
        """Behind a tick: have what nobody can need any more deleted in the background."""
        self._chores.submit(self._tidy, done, frozenset(self._pinned))

    # Reading

    def rows(self, name: str, shard: int) -> Iterator[Batch]:
        """The rows of a source or view that one shard keeps now, in batches; the files are open when this returns."""
        return relation_rows(self.blueprint, self.uri, self.commit, name, shard)

    def part_of_commit(self, name: str) -> Commit:
        """The commit, as far as it is about the rows of one source or view."""
        return part_of_commit(self.blueprint, self.commit, name)

    def pin(self, number: int) -> None:
        """Keep a commit and its files until ``unpin`` is called as often."""
        self._pinned[number] += 1

    def unpin(self, number: int) -> None:
        """See ``pin``."""
        self._pinned[number] -= 1
        if not self._pinned[number]:
            del self._pinned[number]

    def changed(self, refs: Sequence[RowsRef]) -> Batch:
        """What a tick changed in a view, on all shards together."""
        return consolidate(self.files.read_rows(refs))

    # Inner workings

    def _take_over(self, shards: int, at: int | None, policy: str | None) -> None:
        """Become the one whose commits count, and take the tick that the one before has begun."""
        found = self._found(at)
        before = 0 if found is None else found.fence
        self._token = before + 1 if self._lease is None else self._lease.token
        if found is None:
            definition = Definition(policy=policy if policy not in (None, EVEN) else msgspec.UNSET)
            definition.spread_policy  # noqa: B018 - refuses one that is not there before anything is written
            self.commits.put_definition(definition.digest, definition.encoded)
            found = Commit(uuid.uuid4().hex, 0, 0, 0, "open", definition.digest, shards)
        else:
            definition = decode_definition(self.commits.definition(found.definition))
            if policy is not None and policy != (definition.policy or EVEN):
                raise ConfigError(
                    f"The rows of the flow at {self.uri} are spread by {definition.policy or EVEN!r}, not {policy!r}.",
                    hint="leave out spread_policy=, or restore a checkpoint of the flow into a new flow",
                )
        if self._token <= before:
            raise LeaseLost(
                f"The flow at {self.uri} was last run with the fencing token {before}, but this one has {self._token}.",
                uri=self.uri,
                name=found.identity,
                hint="the leases of a flow must come from the same metadata store all the time",
            )
        kept = self.commits.kept()
        self.recent = recent_ticks(kept) if at is None else RecentTicks(found.epoch, ())
        self._ledger.begin(found, kept, Blueprint(definition), self._token)
        if not self.blueprint.keys <= found.states.keys():
            raise refused(self.uri, "its state is not that of the operators that it has now", _OTHER_VERSION)
        begun = self.commits.pending(found, before) if at is None else None
        if begun is not None:
            # Under our own token the one after us finds it too, if we do not come to commit it.
            begun = msgspec.structs.replace(begun, fence=self._token)
            self.commits.put_pending(begun)
        # From here on commits of the one before are refused: the next number is ours.
        opened = msgspec.structs.replace(found, kind="open")
        self._ledger.publish(opened, self.blueprint, pending=begun)
        if at is not None:
            self.commits.drop_all_pending(self._token)

    def _found(self, at: int | None) -> Commit | None:
        """The last commit; or what the flow was at another one, under the last number."""
        newest = self.commits.newest()
        if at is None:
            return newest
        named = self.commits.at(at)
        assert newest is not None
        return msgspec.structs.replace(named, number=newest.number, fence=newest.fence)

    def _remembered(self, pending: PendingTick) -> dict[str, Any]:
        """Tokens, positions and digests after what was begun."""
        commit = self.commit
        tokens, positions, digests = dict(commit.tokens), dict(commit.positions), dict(commit.digests)
        if pending.position is not None:
            stream, origin, at = pending.position
            positions[stream] = (origin, at, pending.epoch)
        for epoch, tick in enumerate(pending.given, pending.epoch):
            if tick.token is not None:
                tokens[tick.token] = epoch
            for name, digest in tick.digests.items():
                digests[name] = [*digests.get(name, []), digest][-self.definition.sources[name].dedup :]
        tokens = dict([*tokens.items()][-_TOKENS:])
        return {"tokens": tokens, "positions": positions, "digests": digests}

    def _evicted(self, pending: PendingTick) -> int:
        """How many digests are forgotten for those of what was begun."""
        added = Counter(name for tick in pending.given for name in tick.digests)
        room = {name: self.definition.sources[name].dedup - len(self.commit.digests.get(name, ())) for name in added}
        return sum(max(count - room[name], 0) for name, count in added.items())

    def _redefine(self, kind: str, blueprint: Blueprint, filled: Commit, untold: ChangeNotice | None = None) -> None:
        """Commit that the flow is made of something else now."""
        definition = blueprint.definition
        self.commits.put_definition(definition.digest, definition.encoded)
        commit = msgspec.structs.replace(filled, kind=kind, definition=definition.digest)
        self._ledger.publish(commit, blueprint, untold=untold, pending=self.pending)

    def _commit_ticks(
        self, stepped: PendingCommit, first: int, begun: PendingTick | None = None, **remembered: Any
    ) -> ChangeNotice:
        *earlier, last = [CommittedTick(epoch, outputs) for epoch, outputs in enumerate(stepped.outputs, first)]
        evicted = 0 if begun is None else self._evicted(begun)
        ticked = ChangeNotice(last.epoch, stepped.reports, last.outputs, (), tuple(earlier), begun, evicted)
        commit = msgspec.structs.replace(stepped.commit, kind="tick", epoch=last.epoch, **remembered)
        self._ledger.publish(commit, self.blueprint, untold=ticked)
        return ticked

    def _require_leader(self) -> None:
        self._ledger.require_leader()

    def _await_written(self) -> None:
        written, self._written = self._written, None
        if written is not None:
            written.result()

    def _tidy(self, done: PendingTick, pinned: Collection[int]) -> None:
        """Delete what nobody can need any more; once in a while also what nobody knows of."""
        try:
            self.commits.drop_pending(done.epoch, done.fence)
            self._ledger.trail.collect(_KEPT_COMMITS, pinned)
            if done.last // _SWEEP_EVERY > (done.epoch - 1) // _SWEEP_EVERY:
                self._ledger.trail.sweep()
        except StorageError as error:
            _log.warning("files of the flow at %s will be deleted later: %s", self.uri, error.message)
        except Exception:  # noqa: BLE001 - nobody waits for it; what is left is found by the next sweep
            _log.exception("files of the flow at %s will be deleted later", self.uri)


def _left(commit: Commit, blueprint: Blueprint) -> Commit:
    """What is left of a flow that is made of less now."""
    sources = blueprint.definition.sources
    return msgspec.structs.replace(
        after(blueprint, commit, ()),
        watermarks={name: mark for name, mark in commit.watermarks.items() if name in sources},
        digests={name: seen for name, seen in commit.digests.items() if name in sources},
        versions={},  # what tasks have at hand of this definition may be left over from before a view was dropped
    )


def _comparable(old: Blueprint, new: Blueprint, name: str) -> bool:
    """Whether one can tell how a view differs from what it was."""
    kept = old.spread.store(name) is not None and new.spread.store(name) is not None
    return kept and old.schema(name) == new.schema(name)
