"""Checkpoints of flows in shards: into the same shards, into others, into one process, and from there."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest
from prometheus_client import CollectorRegistry
from support.flow_engine import FlowEngine

from weirflow.errors import ConfigError, FlowError, ObjectNotFound, StorageError
from weirflow.ivm.flow import IncrementalFlow, Lateness
from weirflow.ivm.sharded.executor import InThisProcess
from weirflow.ivm.sharded.flow import PartitionedFlow
from weirflow.ivm.zset import DeltaBatch

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
KINDS = [2, 3, 1, None]
"""Shards; None is a flow in one process."""
VIEWS = {
    "totals": "SELECT customer, sum(amount) AS total, count(*) AS n FROM orders GROUP BY customer",
    "named": "SELECT name, total FROM totals JOIN customers ON customer = customers.id",
    "top": "SELECT id, amount FROM orders ORDER BY amount DESC, id LIMIT 3",
    "all": "SELECT sum(amount) AS total FROM orders",
}


@pytest.fixture
def made(tmp_path):
    """Makes flows of each kind, and closes them."""
    flows = []

    def make(kind, *, declared=True, path=None, **options):
        if kind is None:
            flow = IncrementalFlow(registry=CollectorRegistry(), **options)
        else:
            where = str(path or tmp_path / f"flow-{len(flows)}")
            flow = PartitionedFlow(where, kind, InThisProcess(), registry=CollectorRegistry(), **options)
        flows.append(flow)
        if declared:
            flow.register_source("orders", "id BIGINT, customer BIGINT, amount BIGINT", key="id")
            flow.register_source("customers", "id BIGINT, name STRING")
            for name, sql in VIEWS.items():
                flow.register_view(name, sql)
        return flow

    yield make
    for flow in flows:
        flow.close()


def orders(*ids):
    chance = random.Random(repr(ids))
    return [{"id": one, "customer": one % 5, "amount": chance.randrange(100)} for one in ids]


def filled(flow):
    flow.tick({"customers": [{"id": one, "name": f"c{one % 3}"} for one in range(5)]}, token="first")
    flow.tick({"orders": orders(*range(40))}, token="second")
    flow.tick({"orders": [{"id": 3, "customer": 1, "amount": 9}]})
    return flow


def contents(flow):
    return {
        name: sorted(tuple(row.values()) for row in flow.snapshot(name).to_pylist())
        for name in ("orders", "customers", *VIEWS)
    }


def changed(flow):
    """What later ticks do: rows come, are replaced and go."""
    flow.tick({"orders": orders(1, 2, 50)})
    gone = [row for row in flow.snapshot("orders").to_pylist() if row["id"] in (4, 50)]
    flow.tick({"orders": DeltaBatch.from_deletes(gone), "customers": [{"id": 9, "name": "z"}]})
    return contents(flow)


@pytest.mark.parametrize("after", KINDS)
@pytest.mark.parametrize("before", KINDS)
def test_a_flow_goes_on_from_a_checkpoint_as_if_nothing_had_been(made, tmp_path, before, after):
    one = filled(made(before))
    name = one.checkpoint(tmp_path / "saved")
    expected = contents(one)
    other = made(after, declared=False)
    plan = other.restore(tmp_path / "saved")
    assert set(plan.kept) == set(VIEWS)
    assert name.startswith("manifests/")
    assert (other.epoch, contents(other)) == (3, expected)
    assert other.sources == one.sources
    watch = other.watch_output("totals", from_epoch=3)
    again = other.tick({"orders": orders(*range(40))}, token="second")
    assert (again.epoch, other.epoch) == (2, 3)
    assert changed(other) == changed(one)
    epoch, delta = watch.get(timeout=0)
    assert epoch == 4
    assert delta.num_rows


@pytest.mark.parametrize(("before", "after"), [(2, 3), (2, None), (None, 2)])
def test_what_is_restored_in_shards_is_kept_there(made, tmp_path, before, after):
    one = filled(made(before))
    one.checkpoint(tmp_path / "saved")
    expected = contents(one)
    other = made(after, declared=False, path=tmp_path / "own")
    other.restore(tmp_path / "saved")
    other.checkpoint(tmp_path / "second")
    if after is not None:
        other.close()
        other = made(7, declared=False, path=tmp_path / "own")
        assert other.partitions == after
        assert contents(other) == expected
        other.rescale(4)
        assert contents(other) == expected
    third = made(1, declared=False)
    third.restore(tmp_path / "second")
    assert contents(third) == expected


@pytest.mark.parametrize(("before", "after"), [(2, 2), (2, 3), (2, None), (None, 2)])
def test_a_changed_flow_is_filled_from_the_rows(made, tmp_path, before, after):
    one = filled(made(before))
    one.checkpoint(tmp_path / "saved")
    other = made(after, declared=False)
    other.register_source("orders", "id BIGINT, customer BIGINT, amount BIGINT", key="id")
    other.register_source("pages", "id BIGINT")
    other.register_view("totals", VIEWS["totals"])
    other.register_view("all", "SELECT max(amount) AS total FROM orders")
    other.register_view("read", "SELECT count(*) AS n FROM pages")
    plan = other.restore(tmp_path / "saved")
    assert (plan.kept, plan.rebuilt) == (("totals",), ("all",))
    assert (set(plan.added), set(plan.dropped)) == ({"pages", "read"}, {"customers", "named", "top"})
    assert contents_of(other, "totals") == contents_of(one, "totals")
    assert other.snapshot("all").to_pylist() == [{"total": max(one.snapshot("orders").column("amount").to_pylist())}]
    assert other.snapshot("read").to_pylist() == [{"n": 0}]
    other.tick({"pages": [{"id": 1}]})
    assert other.snapshot("read").to_pylist() == [{"n": 1}]


def contents_of(flow, name):
    return sorted(tuple(row.values()) for row in flow.snapshot(name).to_pylist())


def test_only_what_is_new_is_copied_unless_all_is_asked_for(made, tmp_path):
    flow = filled(made(2))

    def packs():
        return {file.name: file.stat().st_ino for file in (tmp_path / "saved" / "packs").iterdir()}

    flow.checkpoint(tmp_path / "saved")
    first = packs()
    flow.tick({"orders": orders(60)})
    flow.checkpoint(tmp_path / "saved")
    second = packs()
    assert first.items() <= second.items()
    assert len(second) > len(first)
    flow.checkpoint_full(tmp_path / "saved")
    for file in second:
        (tmp_path / "saved" / "packs" / file).unlink()
    other = made(3, declared=False)
    other.restore(tmp_path / "saved")
    assert contents(other) == contents(flow)


def test_an_earlier_epoch_is_restored_and_one_that_is_not_there_refused(made, tmp_path):
    flow = filled(made(2))
    flow.checkpoint(tmp_path / "saved")
    expected = contents(flow)
    flow.tick({"orders": orders(60)})
    flow.checkpoint(tmp_path / "saved")
    other = made(2, declared=False)
    with pytest.raises(ObjectNotFound):
        other.restore(tmp_path / "saved", epoch=2)
    other.restore(tmp_path / "saved", epoch=3)
    assert (other.epoch, contents(other)) == (3, expected)


@pytest.mark.parametrize("after", [2, 3, None])
def test_a_damaged_file_changes_nothing(made, tmp_path, after):
    flow = filled(made(2))
    flow.checkpoint(tmp_path / "saved")
    for file in (tmp_path / "saved" / "packs").iterdir():
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 1
        file.write_bytes(data)
    other = made(after, declared=False)
    with pytest.raises(StorageError):
        other.restore(tmp_path / "saved")
    assert (other.epoch, other.sources) == (0, ())
    other.register_source("t", "a BIGINT")
    other.register_view("v", "SELECT sum(a) AS a FROM t")
    other.tick({"t": [{"a": 1}]})
    assert other.snapshot("v").to_pylist() == [{"a": 1}]


@pytest.mark.parametrize("before", [2, None])
def test_a_flow_with_rows_is_not_restored_into(made, tmp_path, before):
    filled(made(before)).checkpoint(tmp_path / "saved")
    other = filled(made(3))
    expected = contents(other)
    with pytest.raises(FlowError, match="already has ticks"):
        other.restore(tmp_path / "saved")
    assert contents(other) == expected


@pytest.mark.parametrize("after", [2, 3, None])
def test_sources_that_let_go_of_rows_go_on(made, tmp_path, after):
    def declare(flow, keep):
        late = Lateness("at", "10 seconds", keep=keep)
        flow.register_source("clicks", "at TIMESTAMP, page STRING", lateness=late)
        flow.register_view("pages", "SELECT page, count(*) AS n FROM clicks GROUP BY page", materialized=True)

    def clicks(*seconds):
        return [{"at": BEGIN + timedelta(seconds=one), "page": f"p{one % 3}"} for one in seconds]

    flow = made(2, declared=False)
    declare(flow, keep=False)
    flow.tick({"clicks": clicks(*range(0, 600, 7))})
    flow.tick({"clicks": clicks(*range(600, 900, 7))})
    flow.checkpoint(tmp_path / "saved")
    other = made(after, declared=False)
    other.restore(tmp_path / "saved")
    for one in (flow, other):
        one.tick({"clicks": clicks(10, 901, 905)})  # the first is too late
    assert contents_of(other, "pages") == contents_of(flow, "pages")
    assert sum(row["n"] for row in other.snapshot("pages").to_pylist()) == 86 + 43 + 2
    # That rows are kept from now on does not bring back those that are gone.
    changed = made(after, declared=False)
    declare(changed, keep=True)
    with pytest.raises(ConfigError, match="'clicks' does not keep rows"):
        changed.restore(tmp_path / "saved")
    assert changed.epoch == 0


def test_a_checkpoint_without_a_place_is_the_last_commit(made):
    flow = filled(made(2))
    assert flow.checkpoint() == f"commits/{flow._backend.commit_number:020d}.json"


@pytest.mark.parametrize("before", [2, None])
def test_views_that_wait_and_time_and_repeated_content_are_remembered(made, tmp_path, before):
    flow = made(before, declared=False)
    flow.register_source("facts", "at TIMESTAMP, n BIGINT", lateness=Lateness("at", "1 minute"))
    flow.register_source("files", "n BIGINT", dedup="content")
    flow.register_view("sums", "SELECT sum(n) AS n FROM facts")
    flow.register_view("late", "SELECT count(*) AS n FROM pages")
    flow.tick({"facts": [{"at": BEGIN + timedelta(minutes=10), "n": 1}], "files": [{"n": 1}]})
    flow.checkpoint(tmp_path / "saved")
    for kind in (2, 3, None):
        other = made(kind, declared=False)
        other.restore(tmp_path / "saved")
        assert list(other.waiting) == ["late"]
        other.tick({"facts": [{"at": BEGIN, "n": 100}], "files": [{"n": 1}]})
        assert other.snapshot("sums").to_pylist() == [{"n": 1}]
        assert other.snapshot("files").to_pylist() == [{"n": 1}]
        other.register_source("pages", "id BIGINT")
        other.tick({"pages": [{"id": 1}]})
        assert other.snapshot("late").to_pylist() == [{"n": 1}]


@pytest.mark.parametrize("after", [2, 3, None])
@pytest.mark.parametrize("before", [2, None])
def test_views_that_are_recomputed_tables_everywhere_and_the_clock_go_along(tmp_path, before, after):
    def made(kind, name):
        if kind is None:
            return IncrementalFlow(engine=FlowEngine(), clock="manual", registry=CollectorRegistry())
        executor = InThisProcess(FlowEngine())
        return PartitionedFlow(str(tmp_path / name), kind, executor, clock="manual", registry=CollectorRegistry())

    with made(before, "one") as one, made(after, "other") as other:
        one.register_source("orders", "id BIGINT, customer BIGINT, at TIMESTAMP")
        if before is not None:
            one.register_source("names", "id BIGINT, name STRING", spread="everywhere")
        else:
            one.register_source("names", "id BIGINT, name STRING")
        views = {
            "n": "SELECT customer, count(*) AS n FROM orders GROUP BY customer",
            "known": "SELECT name, n FROM n JOIN names ON customer = id",
            "fresh": "SELECT id FROM orders WHERE at > now() - INTERVAL 10 MINUTES",
        }
        for name, sql in views.items():
            one.register_view(name, sql)
        one.force_diff_based("n")
        one.tick({"names": [{"id": n, "name": f"c{n}"} for n in range(3)]})
        one.advance(BEGIN)
        rows = [{"id": n, "customer": n % 4, "at": BEGIN - timedelta(minutes=n)} for n in range(20)]
        one.tick({"orders": rows})
        one.checkpoint(tmp_path / "saved")
        other.restore(tmp_path / "saved")

        def contents(flow):
            return {name: contents_of(flow, name) for name in ("orders", "names", *views)}

        assert (other.epoch, contents(other)) == (one.epoch, contents(one))
        assert len(contents(one)["fresh"]) == 10
        for flow in (one, other):
            flow.tick({"orders": [{"id": 100, "customer": 1, "at": BEGIN}], "names": [{"id": 3, "name": "c3"}]})
            flow.advance(BEGIN + timedelta(minutes=5))
        assert contents(other) == contents(one)
        assert len(contents(other)["fresh"]) == 6
        assert other.epoch == one.epoch
