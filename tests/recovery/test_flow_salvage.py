"""Damaged flows: what is whole is told, and the flow opens at the last whole epoch, whatever was damaged."""

import random
import shutil
import threading

import pytest
from support.damaged_flow import DEFINITIONS, Damage, best, choose, contents, digests, names, tick, write

from weirflow.errors import SinkConflict, StorageError
from weirflow.failpoints import REPAIR_POINTS, watch_failpoints
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
    for _ in range(5):
        damages = [choose(originals[shape], chosen) for _ in range(chosen.choice([1, 1, 2]))]
        salvaged_as_expected(originals[shape], damages, tmp_path / "flow")


class Killed(BaseException):
    """Ends a repair in the middle; nothing catches it."""


@pytest.fixture
def killed_at():
    """Ends what is done at the next hit of a failpoint but some."""

    def arm(point, nth):
        left = [nth]

        def hit(name):
            if name == point:
                left[0] -= 1
                if left[0] == 0:
                    watch_failpoints(None)
                    raise Killed

        watch_failpoints(hit)

    yield arm
    watch_failpoints(None)


@pytest.mark.parametrize("point", REPAIR_POINTS)
def test_a_repair_that_was_killed_is_done_again(originals, tmp_path, killed_at, point):
    original, path = originals["two checkpoints"], tmp_path / "flow"
    newest, pack = max(original.checkpoints), max(original.checkpoints[max(original.checkpoints)][1])
    older = original.checkpoints[min(original.checkpoints)][0]
    damages = [
        Damage(original.records[older + 2].file, "flip", original.records[older + 2].end - 1),
        Damage(newest, "cut", 30),
        Damage(pack, "flip", 10),
        Damage("sinks/told.json", "flip", 5),
    ]
    expected = original.records[best(original, damages) - 1]
    for nth in (1, 2, 5):
        copied(original, path)
        for damage in damages:
            damage.apply(path)
        killed_at(point, nth)
        try:
            flow, _ = IncrementalFlow.salvage(path, checkpoint_every=0)
        except Killed:
            flow, _ = IncrementalFlow.salvage(path, checkpoint_every=0)
        else:
            watch_failpoints(None)
            assert nth > 1, "the failpoint was not reached"
        with flow:
            assert (flow.epoch, contents(flow)) == (expected.epoch, expected.contents)
        assert check_flow(path).is_whole
        goes_on(path, expected.epoch)


def test_a_flow_that_ticks_and_saves_is_never_taken_for_damaged(tmp_path):
    with IncrementalFlow("shop", path=tmp_path / "flow", checkpoint_every=5, fsync=2) as flow:
        for define in DEFINITIONS:
            define(flow)
        done = threading.Event()

        def work():
            for number in range(1, 80):
                tick(flow, number)
            done.set()

        ticking = threading.Thread(target=work)
        ticking.start()
        checks = 0
        while not done.is_set():
            found = check_flow(tmp_path / "flow")
            assert found.is_whole, [file for file in found.files if file.trouble]
            checks += 1
        ticking.join()
        assert checks > 0


def test_a_sink_ahead_of_a_salvaged_flow_says_what_to_do(originals, tmp_path):
    original, path = originals["no checkpoint"], tmp_path / "flow"
    copied(original, path)
    Damage(original.records[-1].file, "cut", original.records[-2].end - 1).apply(path)
    flow, repair = IncrementalFlow.salvage(path)
    with flow:
        assert (repair.ahead, repair.lost.epochs) == (("told",), (flow.epoch + 1, original.records[-1].epoch))
        with pytest.raises(SinkConflict, match="resync=True"):
            flow.sink("totals", lambda *_: None, name="told")
        seen = []
        flow.sink("totals", lambda epoch, _: seen.append(epoch), name="told", resync=True)
        tick(flow, 50)
        assert seen == [flow.epoch - 1, flow.epoch]


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


@pytest.mark.parametrize("kind", ["flip", "cut", "delete"])
@pytest.mark.parametrize("shape", ["two checkpoints", "no checkpoint", "a checkpoint at the end"])
def test_an_open_finds_everything_or_names_the_commands(originals, tmp_path, shape, kind):
    original, path = originals[shape], tmp_path / "flow"
    named = 0
    for name in original.files():
        copied(original, path)
        Damage(name, kind, (original.path / name).stat().st_size // 2).apply(path)
        before = digests(path)
        try:
            with opened(path) as flow:
                assert contents(flow) == original.records[-1].contents, name
        except StorageError as error:
            named += 1
            assert f"weirflow flow check {path}" in error.hint, name  # noqa: PT017 - it may open as well
            assert f"weirflow flow repair {path}" in error.hint, name  # noqa: PT017 - as above
            assert digests(path) == before, f"an open that failed has changed something: {name}"
    assert named > 0


@pytest.mark.parametrize("folders", [["log"], ["log", "manifests"]])
@pytest.mark.parametrize("shape", ["two checkpoints", "a checkpoint at the end"])
def test_whole_folders_that_are_gone_are_missed(originals, tmp_path, shape, folders):
    original, path = originals[shape], tmp_path / "flow"
    copied(original, path)
    for folder in folders:
        shutil.rmtree(path / folder)
    assert not check_flow(path).is_whole
    with pytest.raises(StorageError, match=r"missing|no checkpoint") as error:
        opened(path)
    assert f"weirflow flow repair {path}" in error.value.hint
    if "manifests" in folders:
        with pytest.raises(StorageError, match="Nothing whole is left"):
            IncrementalFlow.salvage(path)
        return
    left = original.records[max(record for record, _ in original.checkpoints.values()) - 1]
    flow, repair = IncrementalFlow.salvage(path, checkpoint_every=0)
    with flow:
        assert (flow.epoch, contents(flow)) == (left.epoch, left.contents)
    last = original.records[-1].epoch
    assert (None if repair.lost is None else repair.lost.epochs) == (
        (left.epoch + 1, last) if last > left.epoch else None
    )
    assert check_flow(path).is_whole
    goes_on(path, left.epoch)
