"""Damaged files of a partitioned flow are refused by name; what opens all the same has lost nothing."""

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from support import partitioned_shop, shop_flow

from weirflow.checkpoint import open_checkpoint_storage
from weirflow.errors import StorageError
from weirflow.failpoints import watch_failpoints
from weirflow.ivm.flow import IncrementalFlow
from weirflow.ivm.sharded.commits import CommitFiles, commit_name

KINDS = {"commits", "definitions", "packs", "pending", "rows"}


class Killed(BaseException):
    pass


class Frame:
    """Rows that are taken in through files, as those of a Spark frame are."""

    def __init__(self, rows):
        self.mapInArrow = None
        self.to_batches = pa.Table.from_pylist(rows, schema=shop_flow._ORDERS).to_batches


def orders(number):
    return [shop_flow._order(number, place) for place in range(3)]


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """A flow of 5 ticks whose sixth was begun: its folder, what is in it before and after the sixth."""

    def die(name):
        if name == "partitioned.before_commit":
            raise Killed

    path = tmp_path_factory.mktemp("whole") / "shop"
    flow = partitioned_shop.open_shop(path)
    shop_flow.declare(flow)
    shop_flow.run(flow, 4)
    flow.tick("orders", Frame(orders(50)))
    watch_failpoints(die)
    try:
        with pytest.raises(Killed):
            flow.tick("orders", Frame(orders(60)))
        with pytest.raises(Killed):  # as one who lives on, it would find out what became of the tick
            flow.close()
    finally:
        watch_failpoints(None)
    found = []
    with IncrementalFlow("shop") as whole:
        shop_flow.declare(whole)
        shop_flow.run(whole, 4)
        for number in (50, 60):
            whole.tick("orders", orders(number))
            found.append(shop_flow.contents(whole))
    return path, *found


def files(path):
    return sorted(one for one in path.rglob("*") if one.is_file())


def truncate(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def swap(path):
    """Change places with another file of its kind, or get one from elsewhere."""
    others = [one for one in files(path.parent) if one != path]
    content = path.read_bytes()
    path.write_bytes(others[0].read_bytes() if others else b"{}")
    if others:
        others[0].write_bytes(content)


def contents_or_error(path):
    try:
        with partitioned_shop.open_shop(path) as flow:
            return shop_flow.contents(flow)
    except StorageError as error:
        return error


def needed(path):
    """The files that the flow cannot be opened without: those of the last commit and of the tick that was begun."""
    commits = CommitFiles(open_checkpoint_storage(str(path)))
    commit = commits.newest()
    pending = commits.pending(commit, 0)
    deltas = {ref.file for shards in pending.deltas.values() for refs in shards.values() for ref in refs}
    begun = f"pending/{pending.epoch:020d}-{pending.fence:020d}.json"
    return {commit_name(commit.number), f"definitions/{commit.definition}.json", begun} | set(commit.packs) | deltas


@pytest.mark.parametrize("damage", [truncate, flip, swap, Path.unlink])
def test_a_file_that_is_damaged_is_refused_by_name(begun, tmp_path, damage):
    path, before, _ = begun
    names = sorted(needed(path))
    assert {name.partition("/")[0] for name in names} == KINDS
    for number, name in enumerate(names):
        copy = tmp_path / str(number)
        shutil.copytree(path, copy)
        damage(copy / name)
        found = contents_or_error(copy)
        if damage is Path.unlink and name.startswith("pending/"):
            assert found == before  # this is how to give up a tick
            continue
        kind = {str(one.relative_to(path)) for one in files(path / name.partition("/")[0])}
        assert isinstance(found, StorageError), name
        # Of two that have changed places either may be missed; without its commit a tick is.
        expected = kind if damage is swap else {name} | {one for one in names if one.startswith("pending/")}
        assert found.uri.removeprefix(f"file://{copy}/") in expected, name
        assert found.hint or damage is Path.unlink, name


def test_a_file_that_nothing_needs_is_not_missed(begun, tmp_path):
    path, _, after = begun
    for number, name in enumerate({str(one.relative_to(path)) for one in files(path)} - needed(path)):
        if number % 4 == 0:
            shutil.copytree(path, tmp_path / str(number))
            (tmp_path / str(number) / name).unlink()
            assert contents_or_error(tmp_path / str(number)) == after, name


def test_a_flow_whose_commits_are_all_gone_is_no_new_flow(begun, tmp_path):
    shutil.copytree(begun[0], tmp_path / "shop")
    shutil.rmtree(tmp_path / "shop" / "commits")
    assert "has files but no commits" in str(contents_or_error(tmp_path / "shop"))
