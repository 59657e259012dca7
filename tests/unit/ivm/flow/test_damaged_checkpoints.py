"""A flow one of whose checkpoints is damaged goes on, and goes on making checkpoints."""

from pathlib import Path

import pytest
from support import shop_flow

from weirflow.ivm.flow import IncrementalFlow


def opened(path):
    flow = IncrementalFlow("shop", path=path)
    shop_flow.declare(flow)
    return flow


def contents(path):
    with opened(path) as flow:
        return shop_flow.contents(flow)


def manifests(path):
    return sorted((path / "manifests").iterdir())


def packs(path):
    return {one.name for one in (path / "packs").iterdir()}


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def expected(ticks):
    flow = IncrementalFlow("model")
    shop_flow.declare(flow)
    shop_flow.run(flow, ticks)
    return shop_flow.contents(flow)


def test_a_damaged_older_manifest_is_reported_and_kept_and_the_next_checkpoint_succeeds(tmp_path, caplog):
    with opened(tmp_path) as flow:
        for ticks in (4, 8):
            shop_flow.run(flow, ticks)
            flow.checkpoint()
        older, newer = manifests(tmp_path)
        flip(newer)
        shop_flow.run(flow, 12)
        flow.checkpoint()
        assert newer.name in caplog.text
        assert older in manifests(tmp_path)
        assert newer in manifests(tmp_path)
        last = manifests(tmp_path)[-1]
        shop_flow.run(flow, 14)
    flip(last)
    assert contents(tmp_path) == expected(14)  # from the oldest one, and all of the log


def test_a_damaged_manifest_keeps_the_packs_that_it_may_have_named(tmp_path):
    with opened(tmp_path) as flow:
        for ticks in (4, 8):
            shop_flow.run(flow, ticks)
            flow.checkpoint()
        damaged = manifests(tmp_path)[-1]
        whole, before = damaged.read_bytes(), packs(tmp_path)
        flip(damaged)
        shop_flow.run(flow, 12)
        flow.checkpoint()
        assert before <= packs(tmp_path)
    newest = manifests(tmp_path)[-1]
    flip(newest)
    damaged.write_bytes(whole)  # as from a copy
    assert contents(tmp_path) == expected(12)


def test_damaged_manifests_do_not_pile_up(tmp_path):
    with opened(tmp_path) as flow:
        for ticks in range(1, 20):
            shop_flow.run(flow, ticks)
            flow.checkpoint()
            if ticks % 5 == 0:
                flip(manifests(tmp_path)[-1])
        assert len(manifests(tmp_path)) <= 3
        assert len(list((tmp_path / "log").glob("*.log"))) <= 4


@pytest.mark.parametrize("kind", ["manifests", "packs"])
def test_a_flow_whose_newest_checkpoint_is_damaged_makes_it_again(tmp_path, kind):
    with opened(tmp_path) as flow:
        for ticks in (4, 8):
            shop_flow.run(flow, ticks)
            flow.checkpoint()
    victims = sorted((tmp_path / kind).iterdir())
    flip(victims[-1])
    with opened(tmp_path) as flow:
        assert flow.epoch == 8
        flow.checkpoint()
        shop_flow.run(flow, 9)
    assert contents(tmp_path) == expected(9)
    for log in Path(tmp_path / "log").glob("*.log"):
        assert int(log.stem) > 1


def test_sinks_catch_up_past_a_damaged_checkpoint(tmp_path):
    seen = []

    def told(epoch, _):
        seen.append(epoch)

    with opened(tmp_path) as flow:
        view = flow.views[0]
        flow.sink(view, told, name="told")
        shop_flow.run(flow, 4)
        flow.checkpoint()
        shop_flow.run(flow, 6)
    with opened(tmp_path) as flow:
        shop_flow.run(flow, 10)
        flow.checkpoint()
    flip(manifests(tmp_path)[-1])
    before = list(seen)
    with IncrementalFlow("shop", path=tmp_path, history=1) as flow:
        flow.sink(view, told, name="told")
    assert [epoch for epoch in seen if epoch not in before] == seen[len(before) :]
    assert max(seen) == 10
