"""Graphs of views: what is refreshed at the same time, behind what, and what is left out."""

import threading
from types import SimpleNamespace

import pytest

from weirflow.errors import SinkConflict
from weirflow.materialized.graph import ViewGraph, in_reading_order
from weirflow.materialized.note import SourceMark
from weirflow.materialized.pins import Pins
from weirflow.materialized.together import Outcome, in_waves

READS = {"top": ("left", "right"), "left": ("base",), "right": ("base",), "base": (), "other": ()}
DONE = object()


def graph(reads):
    views = {name: SimpleNamespace(table=name, name=name) for name in reads}
    return ViewGraph(tuple(views[name] for name in in_reading_order(reads)), reads)


@pytest.mark.parametrize("parallel", [1, 2, 8])
def test_each_view_is_refreshed_once_behind_those_that_it_reads(parallel):
    order, lock = [], threading.Lock()

    def refresh(view):
        with lock:
            assert set(READS[view.name]) <= set(order)
        with lock:
            order.append(view.name)
        return Outcome(view.name, DONE)

    outcomes = in_waves(graph(READS), refresh, parallel)
    assert [one.view for one in outcomes] == in_reading_order(READS)
    assert sorted(order) == sorted(READS)


def test_views_that_do_not_read_each_other_are_refreshed_at_the_same_time():
    together = threading.Barrier(2)

    def refresh(view):
        if view.name in ("left", "right"):
            together.wait(30)
        return Outcome(view.name, DONE)

    assert all(one.record is DONE for one in in_waves(graph(READS), refresh, 2))


def test_a_failure_stops_only_what_reads_the_view_that_failed():
    def refresh(view):
        failed = SinkConflict("no") if view.name == "left" else None
        return Outcome(view.name, None if failed else DONE, failed)

    found = {one.view: one for one in in_waves(graph({**READS, "above": ("top",)}), refresh, 2)}
    assert {name for name, one in found.items() if one.record is DONE} == {"base", "right", "other"}
    assert (found["top"].behind, found["above"].behind) == ("left", "top")


def test_an_interrupt_ends_what_was_not_begun():
    begun = []

    def refresh(view):
        begun.append(view.name)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        in_waves(graph(READS), refresh, 1)
    assert not {"left", "right", "top"} & set(begun)


def test_all_refreshes_read_the_versions_that_were_found_first():
    pins, old, new, none = Pins(), SourceMark("a", "1"), SourceMark("a", "2"), SourceMark("b", None)
    assert pins.pin({"orders": old, "empty": none}) == {"orders": old, "empty": none}
    assert pins.pin({"orders": new, "empty": new}) == {"orders": old, "empty": new}
