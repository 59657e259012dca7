"""The rows of a source or view on one shard, read from the files of a commit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from weirflow.ivm.operators.arrange import Arrange
from weirflow.ivm.sharded.worker.files import flow_files

if TYPE_CHECKING:
    from weirflow.ivm.sharded.commits import Commit
    from weirflow.ivm.sharded.definition import Blueprint
    from weirflow.ivm.zset.batch import Batch


def relation_rows(blueprint: Blueprint, uri: str, commit: Commit, name: str, shard: int) -> Iterator[Batch]:
    """The rows of a source or view that one shard keeps at a commit, in batches, columns in the relation's order.

    Rows that are everywhere are those of the first shard. The files are open when this returns.
    """
    spread = blueprint.spread
    node, arranged = spread.store(name), blueprint.program.relations[name].store
    assert node is not None, f"{name} is not stored"
    assert arranged is not None
    refs = commit.states.get(spread.key(node), {}).get(shard)
    if refs is None or not spread.reports(node, shard):
        return iter(())
    stored = blueprint.program.store(name)
    store = Arrange(stored.types, stored.key_count)
    (runs,) = flow_files(uri).load([refs], commit.packs)
    store.adopt(runs)
    return (batch.select(arranged.positions) for batch in store.arrangement.rows())
