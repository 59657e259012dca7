"""``force_diff_based``: views that are recomputed from now on, in the same flow, with the same deltas."""

import pytest
from support import shop_flow
from support.flow_engine import FlowEngine

from weirflow.errors import ConfigError, EngineMissing, TableNotFound
from weirflow.ivm.flow import IncrementalFlow
from weirflow.ivm.zset.rows import group_rows


def shop(**options):
    flow = IncrementalFlow("shop", engine=FlowEngine(), **options)
    shop_flow.declare(flow)
    return flow


def kinds(flow):
    return {one.name: one.kind for one in flow.describe().relations if one.kind != "source"}


ALL = dict.fromkeys(shop_flow.VIEWS, "diff")


def deltas(watch):
    found = []
    while len(watch):
        found.append(watch.get(0))
    return found


def canonical(delta):
    """The delta's rows by their hash."""
    order = group_rows(delta.batch.columns, len(delta)).order
    return delta.to_arrow().take(order)


@pytest.mark.parametrize("before", [0, 1, 5])
def test_a_forced_flow_gives_the_deltas_of_one_that_is_not(before):
    plain, forced = shop(), shop()
    for flow in (plain, forced):
        shop_flow.run(flow, before)
    watches = [{name: flow.watch_output(name) for name in shop_flow.VIEWS} for flow in (plain, forced)]
    forced.force_diff_based()
    assert kinds(forced) == ALL
    for number in range(before + 1, 13):
        for flow in (plain, forced):
            flow.tick(shop_flow.delta(number))
        for name in shop_flow.VIEWS:
            one, other = (deltas(watch[name]) for watch in watches)
            assert [canonical(delta) for _, delta in one] == [delta.to_arrow() for _, delta in other]
    assert shop_flow.contents(forced) == shop_flow.contents(plain)


def test_one_view_is_forced_by_name_and_the_others_stay():
    flow = shop()
    shop_flow.run(flow, 4)
    before = flow.epoch
    flow.force_diff_based("totals")
    assert kinds(flow) == {**dict.fromkeys(shop_flow.VIEWS, "incremental"), "totals": "diff"}
    assert flow.epoch == before + 1
    flow.force_diff_based("totals")
    assert flow.epoch == before + 1
    unforced = shop()
    for one in (flow, unforced):
        shop_flow.run(one, 9)
    assert shop_flow.contents(flow) == shop_flow.contents(unforced)


def test_views_of_a_forced_flow_are_forced_when_they_come():
    flow = IncrementalFlow(engine=FlowEngine())
    flow.register_view("early", "SELECT COUNT(*) AS n FROM orders")
    flow.force_diff_based()
    flow.register_source("orders", "customer STRING, amount BIGINT")
    flow.register_view("late", "SELECT SUM(amount) AS total FROM orders", mode="incremental")
    flow.tick("orders", [{"customer": "ann", "amount": 3}])
    assert kinds(flow) == {"early": "diff", "late": "diff"}
    flow.replace_view("late", "SELECT MAX(amount) AS most FROM orders")
    assert kinds(flow)["late"] == "diff"
    assert flow.snapshot("late").to_pylist() == [{"most": 3}]


def test_rows_that_were_wrong_are_put_right_for_watchers_too():
    class Other(FlowEngine):
        def run(self, sql, tables):
            return super().run(sql.replace("SUM(amount)", "SUM(amount) + 1"), tables)

    flow = IncrementalFlow(engine=Other())
    flow.register_source("orders", "customer STRING, amount BIGINT")
    flow.register_view("total", "SELECT SUM(amount) AS total FROM orders")
    flow.tick("orders", [{"customer": "ann", "amount": 3}])
    with flow.watch_output("total") as watch:
        flow.force_diff_based()
        ((epoch, delta),) = deltas(watch)
    assert (epoch, delta.inserts().to_pylist(), delta.retractions().to_pylist()) == (2, [{"total": 4}], [{"total": 3}])
    assert flow.snapshot("total", epoch=1).to_pylist() == [{"total": 3}]


@pytest.mark.parametrize("checkpointed", [False, True])
@pytest.mark.parametrize("view", [None, "totals"])
def test_a_durable_flow_stays_forced(tmp_path, view, checkpointed):
    with shop(path=tmp_path / "flow") as flow:
        shop_flow.run(flow, 4)
        flow.force_diff_based(view)
        epoch, wanted = flow.epoch, kinds(flow)
        if checkpointed:
            flow.checkpoint()
        shop_flow.run(flow, 6)
    with shop(path=tmp_path / "flow") as flow:  # declares what it is made of again, as any program does
        assert (flow.epoch, kinds(flow)) == (epoch + 2, wanted)
        flow.force_diff_based(view)
        assert flow.epoch == epoch + 2
        flow.register_view("more", "SELECT COUNT(*) AS n FROM orders")
        assert kinds(flow)["more"] == ("diff" if view is None else "incremental")
        shop_flow.run(flow, 9)
        unforced = shop()
        shop_flow.run(unforced, 9)
        assert shop_flow.contents(flow) == shop_flow.contents(unforced)


def test_a_checkpoint_is_restored_as_the_flow_it_goes_to_is(tmp_path):
    flow = shop()
    shop_flow.run(flow, 4)
    flow.checkpoint(tmp_path / "plain")
    flow.force_diff_based()
    flow.checkpoint(tmp_path / "forced")
    forced, plain, empty = shop(), shop(), IncrementalFlow(engine=FlowEngine())
    forced.force_diff_based()
    forced.restore(tmp_path / "plain")
    plain.restore(tmp_path / "forced")
    empty.restore(tmp_path / "forced")
    assert kinds(forced) == kinds(empty) == ALL
    assert kinds(plain) == dict.fromkeys(shop_flow.VIEWS, "incremental")
    for one in (forced, plain, empty):
        assert shop_flow.contents(one) == shop_flow.contents(flow)
        one.register_view("more", "SELECT COUNT(*) AS n FROM orders")
    assert [kinds(one)["more"] for one in (forced, plain, empty)] == ["diff", "incremental", "diff"]


def test_without_a_session_nothing_can_be_forced():
    flow = IncrementalFlow()
    shop_flow.declare(flow)
    shop_flow.run(flow, 3)
    for view in (None, "totals"):
        with pytest.raises(EngineMissing, match="no Session") as error:
            flow.force_diff_based(view)
        assert error.value.code == "ENGINE_MISSING"
    assert kinds(flow) == dict.fromkeys(shop_flow.VIEWS, "incremental")
    assert flow.epoch == 3


def test_what_is_no_view_is_refused():
    flow = shop()
    with pytest.raises(TableNotFound, match="totls") as error:
        flow.force_diff_based("totls")
    assert "totals" in error.value.hint
    with pytest.raises(ConfigError, match="is a source"):
        flow.force_diff_based("orders")


def test_a_view_over_rows_that_are_not_kept_cannot_be_forced_alone():
    flow = IncrementalFlow(engine=FlowEngine())
    flow.register_source("orders", "customer STRING, amount BIGINT")
    flow.register_view("big", "SELECT * FROM orders WHERE amount > 10", materialized=False)
    flow.register_view("count", "SELECT COUNT(*) AS n FROM big")
    flow.tick("orders", [{"customer": "ann", "amount": 30}])
    with pytest.raises(ConfigError, match="not kept"):
        flow.force_diff_based("count")
    assert kinds(flow) == {"big": "incremental", "count": "incremental"}
    flow.force_diff_based()
    assert kinds(flow) == {"big": "diff", "count": "diff"}
    flow.tick("orders", [{"customer": "bob", "amount": 40}])
    assert flow.snapshot("count").to_pylist() == [{"n": 2}]
