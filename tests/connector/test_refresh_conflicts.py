"""Somebody else writes to a view, or to what it reads, at any moment of its refresh: the view equals its query over the
snapshots that it names, or its next refresh knows that it does not."""

import random
import time
from collections import Counter
from threading import Thread, get_ident

import pytest
from support import lake as shop
from support.connectors import require_connectors
from support.generator.campaign import seeds, shown

from weirflow.errors import SinkConflict, WeirflowError
from weirflow.failpoints import watch_failpoints
from weirflow.flows.own_session import be_active
from weirflow.materialized.target import Target

ACTS = {
    "adds rows to it": lambda lake, view, _: lake.sql(f"INSERT INTO {view} VALUES ('mars', 'eve', 666, 1)"),
    "deletes rows of it": lambda lake, view, _: lake.sql(f"DELETE FROM {view} WHERE customer <> 'bob'"),
    "refreshes it": lambda lake, view, _: lake.session.materialized(view).refresh(),
    "refreshes it in full": lambda lake, view, _: lake.session.materialized(view).refresh(full=True),
    "compacts it": lambda lake, view, _: lake.compact(view),
    "rolls it back": lambda lake, view, chosen: lake.roll_back(view, chosen.choice(lake.versions(view)[:3])),
    "sets a property": lambda lake, view, chosen: lake.sql(
        f"ALTER TABLE {view} SET TBLPROPERTIES ('number' = '{chosen.random()}')"
    ),
    "adds rows to its table": lambda lake, *_: lake.sql("INSERT INTO {orders} VALUES (0, 'bob', 1)"),
    "compacts its table": lambda lake, *_: lake.compact(lake.orders),
}
SOME = (4, 28)
"""A full refresh between look and commit, and rows that are deleted right before it: both are refused, at any speed."""
MOMENTS = ("any", "before the commit", "once it was looked at", "behind the commit")


class Rival:
    """Does something to a view while it is refreshed: in a thread of its own, with all else standing still meanwhile.

    Only at ``any`` moment, some of the time that refreshes take from their beginning, nothing waits for it.
    """

    def __init__(self, lake, view, act, moment, chosen):
        self.lake, self.view, self.act, self.moment, self.chosen = lake, view, ACTS[act], moment, chosen
        self.refreshes = get_ident()
        self.thread = None
        self.looks = 0

    def begin(self, patch, seconds):
        look = Target._commits

        def commits(target):
            if get_ident() == self.refreshes:
                self.looks += 1
                if self.looks == 2:
                    self.reached("behind the commit")
            found = look(target)
            if get_ident() == self.refreshes and self.looks == 1:
                self.reached("once it was looked at")
            return found

        patch.setattr(Target, "_commits", commits)
        watch_failpoints(lambda point: point == "refresh.before_commit" and self.reached("before the commit"))
        if self.moment == "any":
            self.thread = Thread(target=self.run, args=(self.chosen.random() * seconds,))
            self.thread.start()

    def reached(self, moment):
        if get_ident() == self.refreshes and moment == self.moment:
            self.thread = Thread(target=self.run)
            self.thread.start()
            self.thread.join()

    def run(self, delay=0.0):
        time.sleep(delay)
        be_active(self.lake.session.spark)
        try:
            self.act(self.lake, self.view, self.chosen)
        except WeirflowError:
            """It was the other one that came too late."""

    def end(self):
        watch_failpoints(None)
        if self.thread is not None:
            self.thread.join()


@pytest.fixture
def lake(session, request):
    require_connectors("iceberg", "delta")
    opened = shop.Lake(session, request.param)
    opened.fill()
    yield opened
    opened.close()


def refreshed_beside(view, rival, path, seconds):
    """How a refresh ended that has a rival."""
    with pytest.MonkeyPatch.context() as patch:
        shop.go(path, patch)
        rival.begin(patch, seconds)
        try:
            return view.refresh().mode
        except SinkConflict:
            return "refused"
        finally:
            rival.end()


@pytest.mark.parametrize(
    ("lake", "rounds"),
    [
        ("iceberg", SOME),
        *(pytest.param(kind, seeds(60), marks=pytest.mark.campaign) for kind in ("iceberg", "delta")),
    ],
    indirect=["lake"],
    ids=["a few", "iceberg", "delta"],
)
def test_a_view_that_others_write_to_meanwhile_holds_what_it_names_or_says_so(lake, rounds, capsys):
    show, outcomes = shown(capsys), Counter()
    view = lake.view(shop.TOTALS)
    view.refresh()
    seconds = 1.0
    for seed in rounds:
        chosen = random.Random(seed)
        act, moment, path = chosen.choice(list(ACTS)), chosen.choice(MOMENTS), chosen.choice(list(shop.PATHS))
        lake.change(chosen, seed)
        how = refreshed_beside(view, Rival(lake, view.name, act, moment, chosen), path, seconds)
        outcomes[how] += 1
        found = shop.holding_of(lake.session, view.name)
        about = f"seed {seed}: somebody {act}, {moment}; {path}: {how}, {found}"
        if found.obstacle is None:
            assert shop.holds_what_it_names(lake.session, view.name), about
        else:
            assert found.obstacle.code == "TARGET_CHANGED", about
        again = view.refresh()
        seconds = again.cost.seconds
        assert shop.is_current(lake.session, view.name), about
        if len(rounds) > 10:
            show(f"seed {seed}: somebody {act}, {moment}; {path}: {how}, then {again.mode} {again.code}")
    assert outcomes["refused"], outcomes
