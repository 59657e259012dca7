"""Checkpoints: what they hold, what they notice, and restoring into a flow that has changed."""

import shutil
from pathlib import Path

import pytest
from support import shop_flow

from weirflow import DeltaBatch
from weirflow.errors import ConfigError, FlowError, ObjectNotFound, StorageError
from weirflow.failpoints import watch_failpoints
from weirflow.ivm.flow import IncrementalFlow


def shop(ticks, **options):
    flow = IncrementalFlow("shop", **options)
    shop_flow.declare(flow)
    shop_flow.run(flow, ticks)
    return flow


def files(folder):
    return sorted(path for path in Path(folder).rglob("*") if path.is_file() and path.name != "lock")


@pytest.mark.parametrize("uri", ["memory://shop", "file"])
def test_a_restored_flow_goes_on_as_the_first_would_have(tmp_path, uri):
    uri = str(tmp_path) if uri == "file" else uri
    flow = shop(10)
    flow.checkpoint(uri)
    restored = IncrementalFlow("shop")
    restored.restore(uri)
    assert (restored.epoch, shop_flow.contents(restored)) == (10, shop_flow.contents(flow))
    for one in (flow, restored):
        shop_flow.run(one, 20)
    assert shop_flow.contents(restored) == shop_flow.contents(flow)


def test_a_checkpoint_writes_only_what_is_new(tmp_path):
    flow = IncrementalFlow()
    flow.register_source("t", "k BIGINT, v BIGINT")
    flow.register_view("s", "SELECT k, SUM(v) AS v FROM t GROUP BY k")
    flow.load("t", {"k": list(range(20_000)), "v": list(range(20_000))})
    flow.checkpoint(tmp_path)
    first = sum(path.stat().st_size for path in files(tmp_path))
    flow.tick("t", [{"k": 1, "v": 1}])
    flow.checkpoint(tmp_path)
    assert sum(path.stat().st_size for path in files(tmp_path)) - first < first / 10


def test_a_full_checkpoint_needs_no_older_file(tmp_path):
    flow = shop(5)
    flow.checkpoint(tmp_path)
    old = files(tmp_path)
    shop_flow.run(flow, 10)
    flow.checkpoint_full(tmp_path)
    for path in old:
        path.unlink()
    restored = IncrementalFlow()
    restored.restore(tmp_path)
    assert shop_flow.contents(restored) == shop_flow.contents(flow)


def test_an_earlier_epoch_is_restored_by_number(tmp_path):
    flow = shop(4)
    flow.checkpoint(tmp_path)
    earlier = shop_flow.contents(flow)
    shop_flow.run(flow, 8)
    flow.checkpoint(tmp_path)
    restored = IncrementalFlow()
    restored.restore(tmp_path, epoch=4)
    assert shop_flow.contents(restored) == earlier
    with pytest.raises(ObjectNotFound, match="epoch 5"):
        restored.restore(tmp_path, epoch=5)


def test_nowhere_to_restore_from(tmp_path):
    with pytest.raises(ObjectNotFound, match="no checkpoint"):
        IncrementalFlow().restore(tmp_path / "nothing")


# Damage


@pytest.fixture
def reached():
    """The failpoints that were come to."""
    points = set()
    watch_failpoints(points.add)
    yield points
    watch_failpoints(None)


def truncate(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def cut_last_byte(path):
    path.write_bytes(path.read_bytes()[:-1])


def lengthen(path):
    path.write_bytes(path.read_bytes() + b"\0")


DAMAGES = [truncate, flip, cut_last_byte, lengthen, Path.unlink]


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("kind", ["manifests", "packs"])
def test_damage_of_a_checkpoint_is_noticed_and_the_one_before_restores(tmp_path, kind, damage):
    flow = shop(4)
    flow.checkpoint_full(tmp_path)
    earlier = shop_flow.contents(flow)
    before = set(files(tmp_path))
    shop_flow.run(flow, 8)
    flow.checkpoint_full(tmp_path)
    (victim,) = [path for path in files(tmp_path) if path not in before and kind in path.parts]
    damage(victim)
    restored = IncrementalFlow()
    if damage is Path.unlink and kind == "manifests":
        restored.restore(tmp_path)  # what has no manifest was never published
        assert shop_flow.contents(restored) == earlier
        return
    with pytest.raises(StorageError) as error:
        restored.restore(tmp_path)
    assert victim.name in str(error.value) or kind in str(error.value)
    restored.restore(tmp_path, epoch=4)
    assert shop_flow.contents(restored) == earlier


def contents_or_error(path):
    try:
        with IncrementalFlow("shop", path=path) as flow:
            return shop_flow.contents(flow)
    except StorageError as error:
        return error


def swap(path):
    """Change places with the next file of its kind, if there is one."""
    kind = [one for one in files(path.parent) if (one.parent, one.suffix) == (path.parent, path.suffix)]
    other = kind[kind.index(path) - 1]
    content = path.read_bytes()
    path.write_bytes(other.read_bytes())
    other.write_bytes(content)


@pytest.mark.parametrize("damage", [*DAMAGES, swap])
def test_every_file_of_a_durable_flow_is_missed_when_it_is_damaged(tmp_path, damage, reached):
    shop(18, path=tmp_path / "flow", checkpoint_every=5, fsync=0).close()
    assert "compact.after_pack" in reached, "runs that were moved have to be among the damaged"
    undamaged = contents_or_error(tmp_path / "flow")
    names = [path.relative_to(tmp_path / "flow") for path in files(tmp_path / "flow")]
    kinds = {name.parts[0] for name in names}
    assert kinds == {"identity", "log", "manifests", "packs"}
    for name in names:
        copy = tmp_path / "copy"
        shutil.copytree(tmp_path / "flow", copy)
        damage(copy / name)
        found = contents_or_error(copy)
        if isinstance(found, StorageError):
            assert str(copy) in str(found), name
        else:
            # Nothing is lost: an older checkpoint and the whole log since stood in, or nothing needed the file.
            assert found == undamaged, name
        shutil.rmtree(copy)


def test_log_files_that_changed_places_are_noticed(tmp_path):
    shop(12, path=tmp_path / "flow", checkpoint_every=5, fsync=0).close()
    one, other = sorted((tmp_path / "flow" / "log").glob("*.log"))[-2:]
    content = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(content)
    with pytest.raises(StorageError, match="another place"):
        IncrementalFlow("shop", path=tmp_path / "flow")


def test_one_process_at_a_time(tmp_path):
    with shop(1, path=tmp_path / "flow"), pytest.raises(FlowError, match="open in another"):
        IncrementalFlow("shop", path=tmp_path / "flow")
    IncrementalFlow("shop", path=tmp_path / "flow").close()


def test_files_do_not_pile_up(tmp_path):
    with shop(60, path=tmp_path / "flow", checkpoint_every=3, fsync=0):
        assert len(files(tmp_path / "flow")) < 40


# Evolution

FIVE = {
    "a": "SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer",
    "b": "SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer",
    "c": "SELECT MAX(amount) AS most FROM orders",
    "d": "SELECT * FROM b ORDER BY total DESC, customer LIMIT 2",
    "e": "SELECT DISTINCT customer FROM orders",
}


def five(**changed):
    flow = IncrementalFlow()
    flow.register_source("orders", "customer STRING, amount BIGINT")
    for name, sql in {**FIVE, **changed}.items():
        flow.register_view(name, sql)
    return flow


def orders(*rows):
    return [{"customer": customer, "amount": amount} for customer, amount in rows]


def test_only_the_changed_view_is_rebuilt_and_its_watchers_see_the_difference(tmp_path):
    flow = five()
    flow.tick("orders", orders(("ann", 5), ("ann", 7), ("bob", 1)))
    flow.checkpoint(tmp_path)
    changed = five(c="SELECT MAX(amount) + 1 AS most FROM orders")
    watches = {name: changed.watch_output(name) for name in FIVE}
    plan = changed.restore(tmp_path)
    assert (plan.kept, plan.rebuilt) == (("a", "b", "d", "e"), ("c",))
    assert watches["c"].get(0)[1] == DeltaBatch.from_updates([{"most": 7}], [{"most": 8}])
    assert [name for name, watch in watches.items() if watch.get(0)] == []
    for one in (flow, changed):
        one.tick("orders", orders(("bob", 20)))
    assert changed.snapshot("c").to_pylist() == [{"most": 21}]
    for name in ("a", "b", "d", "e"):
        assert sorted(map(str, changed.snapshot(name).to_pylist())) == sorted(map(str, flow.snapshot(name).to_pylist()))


def test_a_view_over_a_changed_view_is_rebuilt_too(tmp_path):
    flow = five()
    flow.tick("orders", orders(("ann", 5)))
    flow.checkpoint(tmp_path)
    changed = five(b="SELECT customer, SUM(amount) * 2 AS total FROM orders GROUP BY customer")
    assert changed.restore(tmp_path).rebuilt == ("b", "d")
    assert changed.snapshot("d").to_pylist() == [{"customer": "ann", "total": 10}]


def test_the_plan_is_printed_before_anything_is_done():
    flow, other = five(), five(c="SELECT MIN(amount) AS least FROM orders")
    other.drop("e")
    other.register_view("f", "SELECT COUNT(*) AS n FROM orders")
    assert str(flow.plan(other)).splitlines() == ["keep     a, b, d", "rebuild  c", "add      f", "drop     e"]


def test_a_source_of_another_shape_is_refused_with_the_choices(tmp_path):
    flow = five()
    flow.checkpoint(tmp_path)
    changed = IncrementalFlow()
    changed.register_source("orders", "customer STRING, amount STRING")
    with pytest.raises(ConfigError, match="amount was bigint, is string") as error:
        changed.restore(tmp_path)
    assert "another name" in error.value.hint


def test_an_epoch_may_have_several_checkpoints(tmp_path):
    flow = five()
    flow.tick("orders", orders(("ann", 5)))
    flow.checkpoint(tmp_path)
    flow.register_view("f", "SELECT COUNT(*) AS n FROM orders")
    flow.checkpoint(tmp_path)
    flow.checkpoint_full(tmp_path)
    restored = IncrementalFlow()
    restored.restore(tmp_path)
    assert restored.snapshot("f").to_pylist() == [{"n": 1}]


def test_a_checkpoint_that_fails_does_not_fail_the_tick(tmp_path, monkeypatch, caplog):
    with shop(3, path=tmp_path / "flow", checkpoint_every=100) as flow:
        monkeypatch.setattr(flow._backend, "_checkpoint_every", 1)
        (tmp_path / "flow" / "packs").write_text("in the way of a folder")
        assert flow.tick(shop_flow.delta(4)).epoch == 4
        assert "continues without a checkpoint" in caplog.text
    with IncrementalFlow("shop", path=tmp_path / "flow") as flow:
        assert flow.epoch == 4


def test_a_path_that_cannot_be_used_is_a_typed_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="file"):
        IncrementalFlow(path=tmp_path / "file" / "flow")
