"""Refreshes of a materialized view in a process that is killed.

As a script it is one life: ``refresh_lives.py <kind> <folder> [<failpoint>]``. It looks whether the view equals its
query over the snapshots that its own commit names, changes rows of the tables, and refreshes. With ``on <seed>``
instead of a failpoint it goes on and on, and says before each refresh that it begins, and behind it how it went.
"""

from __future__ import annotations

import itertools
import os
import random
import signal
import sys
from pathlib import Path

import pytest
from support.lake import PATHS, TOTALS, Lake, go, holding_of, holds_what_it_names, is_current

from weirflow import Session
from weirflow.failpoints import watch_failpoints

BEGINS, ENDED = "refresh begins", "refresh ended"
_VIEW = "view"


def opened(kind: str, folder: Path) -> Session:
    """A Session on what is kept in a folder."""
    return Session.single_node(folder, packages=[kind], cores=2, driver_memory="1g", progress="off")


def lake_of(session: Session, kind: str) -> Lake:
    """The tables and the view, made by the first life."""
    lake = Lake(session, kind)
    if not session.spark.catalog.tableExists(lake.name(_VIEW)):
        for name in (lake.orders, lake.customers):
            session.spark.sql(f"DROP TABLE IF EXISTS {name}")
        lake.fill()
        lake.view(TOTALS, _VIEW)
    return lake


def is_as_named(lake: Lake) -> bool:
    """Whether the view holds what it names, or is as empty as before its first refresh."""
    view = lake.name(_VIEW)
    if holding_of(lake.session, view).note is None:
        return lake.session.table(view).count() == 0
    return holds_what_it_names(lake.session, view)


def live(kind: str, folder: Path, point: str) -> None:
    """One life, to its end or to the failpoint."""

    def die(reached: str) -> None:
        if reached == point:
            os.kill(os.getpid(), signal.SIGKILL)

    with opened(kind, folder) as session:
        lake = lake_of(session, kind)
        view = session.materialized(lake.name(_VIEW))
        assert is_as_named(lake), "what the life before left"
        lake.change(random.Random(len(view.history())), len(view.history()))
        watch_failpoints(die)
        done = view.refresh()
        assert is_current(session, view.name)
        sys.stdout.write(f"refreshed: {done.mode} {done.code}\n")


def live_on(kind: str, folder: Path, seed: int) -> None:
    """One life, until it is killed from outside."""
    chosen = random.Random(seed)
    with opened(kind, folder) as session:
        lake = lake_of(session, kind)
        assert is_as_named(lake), "what the life before left"
        view = session.materialized(lake.name(_VIEW))
        for number in itertools.count(seed * 10):
            lake.change(chosen, number)
            path = chosen.choice(list(PATHS))
            with pytest.MonkeyPatch.context() as ways:
                go(path, ways)
                _say(f"{BEGINS}, {path}")
                done = view.refresh()
                _say(f"{ENDED}: {done.mode} {done.code}")
            assert is_current(session, view.name)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    if sys.argv[3:4] == ["on"]:
        live_on(sys.argv[1], Path(sys.argv[2]), int(sys.argv[4]))
    else:
        live(sys.argv[1], Path(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else "")
