"""Flows in shards: what is whole is told, and the flow goes back to its newest whole commit."""

import random
import shutil
from collections import Counter

import pyarrow as pa
import pytest
from support.sunk_shop import declare, order
from typer.testing import CliRunner

from weirflow.checkpoint import open_checkpoint_storage
from weirflow.cli.app import app
from weirflow.errors import ObjectNotFound, SinkConflict, StorageError
from weirflow.ivm.sharded.checkup import check_shards, repair_shards
from weirflow.ivm.sharded.executor import InThisProcess
from weirflow.ivm.sharded.flow import PartitionedFlow


def opened(path):
    return PartitionedFlow(str(path), 2, InThisProcess())


def contents(flow):
    return {name: Counter(map(str, flow.snapshot(name).to_pylist())) for name in ("orders", "totals")}


class Frame:
    """Rows that are taken in through files, as those of a Spark frame are."""

    def __init__(self, customer, amount):
        self.mapInArrow = None
        self.to_batches = pa.table({"customer": [customer], "amount": pa.array([amount], pa.int64())}).to_batches


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """The folder of a flow of 6 ticks, and what was in it after each."""
    path = tmp_path_factory.mktemp("shards") / "shop"
    after = {}
    with declare(opened(path)) as flow:
        flow.sink("totals", lambda *_: None, name="told")
        for number in range(1, 7):
            if number == 4:
                flow.tick("orders", Frame("eve", 40))
            else:
                order(flow, number, f"c{number % 3}")
            after[flow.epoch] = contents(flow)
    return path, after


@pytest.fixture
def shop(original, tmp_path):
    path = tmp_path / "shop"
    shutil.copytree(original[0], path)
    return path


def files(path):
    return sorted(str(one.relative_to(path)) for one in path.rglob("*") if one.is_file())


def flip(path, at=None):
    data = bytearray(path.read_bytes())
    data[len(data) // 2 if at is None else at] ^= 1
    path.write_bytes(data)


def test_a_whole_flow_is_left_as_it_is(original, shop):
    storage = open_checkpoint_storage(shop)
    before = {name: (shop / name).read_bytes() for name in files(shop)}
    assert (check_shards(storage).is_whole, check_shards(storage).epoch) == (True, 6)
    assert repair_shards(storage).was_whole
    assert {name: (shop / name).read_bytes() for name in files(shop)} == before


def test_any_damaged_file_is_told_and_the_flow_goes_on_from_its_newest_whole_commit(original, shop, tmp_path):
    _, after = original
    chosen = random.Random(1)
    some = chosen.sample(files(shop), 12)
    for name in (max(one for one in files(shop) if one.startswith("commits/")), "sinks/told.json", *some):
        path = tmp_path / "copy"
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(shop, path)
        data = (path / name).read_bytes()
        flip(path / name, chosen.randrange(len(data)))
        damaged = (path / name).read_bytes()
        storage = open_checkpoint_storage(path)
        found = check_shards(storage)
        known = {file.name: file.trouble for file in found.files}
        assert found.is_whole == (known.get(name) is None), name
        if name.startswith("definitions/") and found.newest is None:
            with pytest.raises(StorageError, match="No commit"):
                repair_shards(storage)
            continue
        done = repair_shards(storage)
        if not done.was_whole:
            assert check_shards(storage).is_whole, [file for file in check_shards(storage).files if file.trouble]
            if name in done.moved:
                (aside,) = path.glob("damaged-*")
                assert (aside / name).read_bytes() == damaged
        with opened(path) as flow:
            assert (flow.epoch, contents(flow)) == (done.epoch, after[done.epoch]), name
            order(flow, 100, "new")
            last = contents(flow)
        with opened(path) as flow:
            assert (flow.epoch, contents(flow)) == (done.epoch + 1, last)


def test_the_newest_commit_is_lost_and_a_sink_is_ahead(original, shop):
    _, after = original
    ticked = sorted(one for one in files(shop) if one.startswith("commits/"))
    flip(shop / ticked[-1])
    done = repair_shards(open_checkpoint_storage(shop))
    assert (done.epoch, done.ahead) == (5, ("told",))
    assert done.moved == (ticked[-1],)
    with opened(shop) as flow:
        assert contents(flow) == after[5]
        with pytest.raises(SinkConflict, match="resync=True"):
            flow.sink("totals", lambda *_: None, name="told")


def test_the_command_looks_at_flows_in_shards_too(shop, tmp_path):
    def run(*arguments):
        return CliRunner().invoke(app, ["flow", *map(str, arguments)])

    assert run("check", shop).exit_code == 0
    flip(max((shop / "commits").iterdir()))
    result = run("check", shop)
    assert result.exit_code == 1
    assert "whole up to epoch 5" in result.stdout
    assert run("repair", shop, "--dry-run").exit_code == 1
    assert run("check", shop).exit_code == 1
    assert "The flow opens at epoch 5." in run("repair", shop).stdout
    assert run("check", shop.as_uri()).exit_code == 0
    (tmp_path / "empty" / "commits").mkdir(parents=True)
    assert run("check", tmp_path / "empty").exit_code == 2
    with pytest.raises(ObjectNotFound):
        check_shards(open_checkpoint_storage(tmp_path / "empty"))
