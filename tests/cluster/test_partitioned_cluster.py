"""A partitioned flow on a real cluster whose executors, workers and drivers are killed: no tick is lost or doubled."""

import random
import sys
import time
from pathlib import Path

import psutil
import pytest
from support import partitioned_driver, partitioned_shop, shop_flow
from support.processes import ChildProcess, alive, java_children, wait_until

from weirflow.ivm.flow import IncrementalFlow

TESTS = Path(__file__).parent.parent
TICK_SECONDS = 120.0


class Shop:
    """The flow on its cluster, and what can happen to it."""

    def __init__(self, cluster, folder, chance):
        self.cluster = cluster
        self.folder = folder
        self.chance = chance
        self.driver = self.start_driver()

    def start_driver(self):
        command = [sys.executable, partitioned_driver.__file__, self.cluster.url, self.folder]
        return ChildProcess(command, name="driver", env={"PYTHONPATH": str(TESTS)})

    def wait_ticks(self, count):
        """Until so many more ticks are told; a driver that ends by itself has failed."""
        goal = self.epoch + count
        self.driver.wait_until(lambda: self.epoch >= goal, TICK_SECONDS, f"at epoch {goal}")

    @property
    def epoch(self):
        return partitioned_shop.seen(self.folder / "told")

    def executors(self):
        running = [worker for worker in self.cluster.workers if worker.returncode is None]
        return [psutil.Process(pid) for worker in running for pid in sorted(alive(java_children(worker.pid)))]

    def kill(self, kind):
        """Kill one of a kind in the midst of a tick, and replace what Spark does not."""
        self.wait_ticks(1)
        time.sleep(self.chance.uniform(0.0, 1.0))
        if kind == "executor":
            wait_until(self.executors, TICK_SECONDS, "in possession of executors")
            self.chance.choice(self.executors()).kill()
        elif kind == "worker":
            running = [at for at, worker in enumerate(self.cluster.workers) if worker.returncode is None]
            self.cluster.kill_worker(self.chance.choice(running))
            self.cluster.start_worker()
        else:
            self.driver.kill()
            self.driver.stop()
            self.driver = self.start_driver()

    def finish(self):
        self.wait_ticks(2)
        (self.folder / "stop").touch()
        assert self.driver.wait(TICK_SECONDS) == 0, self.driver.log


def check(cluster, folder, kinds, chance):
    """Run the flow while one after the other is killed, and compare it with one that was left alone."""
    shop = Shop(cluster, folder, chance)
    try:
        for kind in kinds:
            shop.kill(kind)
        shop.finish()
    finally:
        shop.driver.stop()
    with partitioned_shop.open_shop(folder / "shop") as flow:
        ticks = flow.epoch
        found = shop_flow.contents(flow)
    with IncrementalFlow("shop") as whole:
        shop_flow.declare(whole)
        shop_flow.run(whole, ticks)
        assert found == shop_flow.contents(whole)
    with partitioned_shop.open_shop(folder / "undisturbed") as flow:
        assert len(list(partitioned_shop.run(flow, ticks, folder / "undisturbed-told"))) == ticks
    assert partitioned_shop.told(folder / "told") == partitioned_shop.told(folder / "undisturbed-told")
    return ticks


@pytest.mark.campaign
def test_one_of_each_kind_is_killed(exclusive_spark, mortal_cluster, tmp_path):
    check(mortal_cluster, tmp_path, ["executor", "worker", "driver"], random.Random(1))


@pytest.mark.campaign
def test_twenty_of_each_kind_are_killed(exclusive_spark, mortal_cluster, tmp_path, capsys):
    kinds = ["executor", "worker", "driver"] * 20
    chance = random.Random(2)
    chance.shuffle(kinds)
    begin = time.monotonic()
    ticks = check(mortal_cluster, tmp_path, kinds, chance)
    with capsys.disabled():
        sys.stdout.write(f"{len(kinds)} kills, {ticks} ticks, {time.monotonic() - begin:.0f} s\n")
