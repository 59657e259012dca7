"""Refreshes of materialized views whose executors are killed at any moment: they end well, or the view is as it was."""

import random
import time
from collections import Counter
from threading import Thread

import psutil
import pytest
from support import lake as shop
from support.connectors import require_connectors
from support.generator.campaign import seeds, shown
from support.processes import alive, descendants, java_children, wait_until

from weirflow import Session
from weirflow.errors import WeirflowError

SECONDS = 3.0
"""About what a refresh takes."""
VICTIMS = ("an executor", "all executors", "Python on an executor")


@pytest.fixture
def lake(own_spark, mortal_cluster, request):
    require_connectors(request.param)
    own_spark()
    settings = {"driver_memory": "1g", "spark_conf": {"spark.executor.memory": "512m"}}
    with Session.distributed(mortal_cluster.url, packages=[request.param], **settings) as session:
        opened = shop.Lake(session, request.param)
        opened.fill()
        yield opened


def executors(cluster):
    return [pid for worker in cluster.workers for pid in alive(java_children(worker.pid))]


def kill_some(cluster, victim, chosen, delay):
    """Wait for a moment, and kill what then is there; returns how many processes that were."""
    time.sleep(delay)
    pids = executors(cluster)
    if victim != "all executors":
        pids = chosen.sample(pids, min(1, len(pids)))
    if victim == "Python on an executor":
        pids = [one for pid in pids for one in descendants(pid)]
    for pid in pids:
        try:
            psutil.Process(pid).kill()
        except psutil.NoSuchProcess:
            """It has just ended by itself."""
    return len(pids)


@pytest.mark.campaign
@pytest.mark.parametrize("lake", ["iceberg", "delta"], indirect=True)
def test_a_view_whose_executors_are_killed_at_any_moment_holds_what_it_names(lake, mortal_cluster, capsys):
    show, outcomes = shown(capsys), Counter()
    view = lake.view(shop.TOTALS)
    view.refresh()
    for seed in seeds(25):
        chosen = random.Random(seed)
        path, victim, delay = chosen.choice(list(shop.PATHS)), chosen.choice(VICTIMS), chosen.random() * SECONDS
        lake.change(chosen, seed)
        wait_until(lambda: len(executors(mortal_cluster)) == 2, 60.0, "with two executors")
        killed = []
        killer = Thread(
            target=lambda: killed.append(kill_some(mortal_cluster, victim, chosen, delay))  # noqa: B023 - it is joined
        )
        begun = time.monotonic()
        with pytest.MonkeyPatch.context() as patch:
            shop.go(path, patch)
            killer.start()
            try:
                how = view.refresh().mode
            except WeirflowError as error:
                how = f"{error.code}: {error.message.splitlines()[0][:120]}"
            took = time.monotonic() - begun
            killer.join()
        hit = bool(killed[0]) and delay < took
        outcomes["killed" if hit else "too late"] += 1
        show(f"seed {seed}: {victim} killed {delay:.1f} s from the beginning, {path}: {how} in {took:.1f} s")
        assert shop.holds_what_it_names(lake.session, view.name)
        view.refresh()
        assert shop.is_current(lake.session, view.name)
    assert outcomes["killed"] >= len(seeds(25)) // 2, outcomes
