"""Damaged flows: what is whole is told, and the flow opens at the last whole epoch, whatever was damaged."""

import random
import shutil

import pytest
from support.damaged_flow import Damage, best, choose, contents, digests, names, tick, write

from weirflow.errors import StorageError
from weirflow.ivm.durability.checkup import check_flow
from weirflow.ivm.flow import IncrementalFlow

SHAPES = {
    "two checkpoints": {"ticks": 14, "checkpoints": (3, 6, 10)},
    "no checkpoint": {"ticks": 6},
    "a checkpoint at the end": {"ticks": 6, "checkpoints": (6,)},
    "never synced": {"ticks": 8, "checkpoints": (3,), "fsync": 0},
}


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    folder = tmp_path_factory.mktemp("originals")
    return {name: write(folder / name.replace(" ", "_"), **shape) for name, shape in SHAPES.items()}


def copied(original, path):
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(original.path, path)


def opened(path):
    return IncrementalFlow("shop", path=path, checkpoint_every=0)


def salvaged_as_expected(original, damages, path):
    """Damage a copy, salvage it and compare it with what must be left; returns how many records are."""
    copied(original, path)
    for damage in damages:
        if (path / damage.file).exists():
            damage.apply(path)
    found = {name: (path / name).read_bytes() for name in names(path)}
    expected = best(original, damages)
    before = digests(path)
    checkup = check_flow(path)
    assert digests(path) == before, "a check has changed something"
    if expected == 0:
        with pytest.raises(StorageError, match="Nothing whole is left"):
            IncrementalFlow.salvage(path)
        return 0
    last = original.records[expected - 1]
    assert checkup.epoch == last.epoch
    flow, repair = IncrementalFlow.salvage(path, checkpoint_every=0)
    with flow:
        assert (flow.epoch, contents(flow)) == (last.epoch, last.contents)
        assert (repair.epoch, repair.was_whole) == (last.epoch, checkup.is_whole)
    kept = {(repair.aside / name).read_bytes() for name in names(repair.aside)} if repair.aside else set()
    for name in (*repair.moved, *repair.rewritten):
        assert found[name] in kept, f"{name} was not put aside"
    assert len(kept) == len({found[name] for name in (*repair.moved, *repair.rewritten)})
    again = check_flow(path)
    assert again.is_whole, [file for file in again.files if file.trouble]
    goes_on(path, last.epoch)
    return expected


def goes_on(path, epoch):
    """A flow that was repaired opens, ticks and opens again, and another repair has nothing to do."""
    with opened(path) as flow:
        assert flow.epoch == epoch
        if not flow.views:
            return
        for number in (101, 102):
            tick(flow, number)
        expected = contents(flow)
    with opened(path) as flow:
        assert (flow.epoch, contents(flow)) == (epoch + 2, expected)
    before = digests(path)
    flow, repair = IncrementalFlow.salvage(path, checkpoint_every=0)
    flow.close()
    assert repair.was_whole
    assert digests(path) == before


@pytest.mark.parametrize("shape", SHAPES)
def test_a_whole_flow_is_left_as_it_is(originals, tmp_path, shape):
    assert salvaged_as_expected(originals[shape], [], tmp_path / "flow") == len(originals[shape].records)


@pytest.mark.parametrize("shape", SHAPES)
def test_every_file_may_be_missing(originals, tmp_path, shape):
    for name in originals[shape].files():
        salvaged_as_expected(originals[shape], [Damage(name, "delete", 0)], tmp_path / "flow")


@pytest.mark.parametrize("shape", SHAPES)
def test_some_damage_of_every_kind(originals, tmp_path, shape):
    chosen = random.Random(shape)
    for _ in range(8):
        damages = [choose(originals[shape], chosen) for _ in range(chosen.choice([1, 1, 2]))]
        salvaged_as_expected(originals[shape], damages, tmp_path / "flow")


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(3))
def test_damage_anywhere(originals, tmp_path, seed):
    chosen = random.Random(seed)
    for _ in range(100):
        shape = chosen.choice(list(SHAPES))
        damages = [choose(originals[shape], chosen) for _ in range(chosen.choice([1, 1, 2, 3]))]
        try:
            salvaged_as_expected(originals[shape], damages, tmp_path / "flow")
        except BaseException as error:
            error.add_note(f"{shape}: {damages}")
            raise
