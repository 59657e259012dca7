"""What a flow acknowledged and synced survives a disk that loses power, fills up or fails, at every call in turn."""

from __future__ import annotations

import contextlib
import errno
import random

import pytest
from support.interrupted_flow import Shop, declare, delta, reopened, shown
from support.simulated_disk import SimulatedDisk

from weirflow.errors import StorageError
from weirflow.ivm.flow import IncrementalFlow


class Shops:
    """A flow on a simulated disk, and the shop after each of its ticks."""

    def __init__(self, seed, folder):
        self.dice = random.Random(seed)
        self.disk = SimulatedDisk(folder)
        self.path = folder / "flow"
        self.fsync = self.dice.choice([0, 1, 1, 3])
        self.every = self.dice.choice([0, 2, 5])
        self.shops = [Shop()]
        self.acknowledged = 0
        self.flow = None

    def open(self):
        flow = IncrementalFlow("shop", path=self.path, fsync=self.fsync, checkpoint_every=self.every)
        try:
            declare(flow)
        except StorageError:
            with contextlib.suppress(StorageError):
                flow.close()
            raise
        self.flow = flow

    def tick(self):
        """A tick; what was begun is known even if it is not acknowledged."""
        shop = self.shops[-1].copy()
        inserted = [(self.dice.randrange(3), self.dice.randrange(4)) for _ in range(self.dice.choice([1, 2, 40]))]
        held = sorted(shop.orders.elements())
        retracted = self.dice.sample(held, min(len(held), self.dice.randrange(3)))
        shop.orders.update(inserted)
        shop.orders.subtract(retracted)
        self.shops.append(shop)
        self.flow.tick("orders", delta(inserted, retracted))
        self.acknowledged = len(self.shops) - 1

    def give_up(self):
        """The last tick failed and is discarded."""
        self.flow.discard()
        self.shops.pop()

    @property
    def least(self):
        """How many ticks must survive a power failure."""
        return 0 if self.fsync == 0 else max(0, self.acknowledged - self.fsync + 1)


def opened(path, shops, least):
    """Which of the shops the flow in a folder is: none that is older than the least."""
    with reopened(path) as flow:
        if not flow.sources:
            assert least == 0
            return 0
        declare(flow)
        found = shown(flow)
        known = [number for number, shop in enumerate(shops) if shop.views() == found]
        assert known, "a state that never was"
        assert known[-1] >= least, f"{known} of {len(shops) - 1}, but {least} were acknowledged and synced"
        flow.tick("orders", [{"customer": 1, "amount": 1}])
        found = shown(flow)
    with reopened(path) as flow:
        assert shown(flow) == found
    return known[-1]


def power_failure(seed, folder):
    """Ticks, a power failure after a random number of calls, and another life from what is left."""
    shops = Shops(seed, folder / "disk")
    with shops.disk.mounted():
        shops.disk.fail(shops.dice.randrange(1, 120), errno.EIO, lasting=True)
        with contextlib.suppress(StorageError):
            shops.open()
            for _ in range(30):
                shops.tick()
        shops.disk.lose_power(folder / "after", shops.dice)
        shops.disk.fail(None)
        if shops.flow is not None:
            with contextlib.suppress(StorageError):
                shops.flow.close()
    opened(folder / "after" / "flow", shops.shops, shops.least)


def failing_call(seed, folder, failure):
    """Ticks while one call fails: nothing acknowledged is lost; the flow goes on, or says that it must be reopened."""
    shops = Shops(seed, folder / "disk")
    with shops.disk.mounted():
        shops.disk.fail(1 + seed % 90, failure)
        while shops.flow is None:
            with contextlib.suppress(StorageError):
                shops.open()
        for _ in range(15):
            try:
                shops.tick()
            except StorageError as error:
                shops.give_up()
                assert shown(shops.flow) == shops.shops[-1].views()
                if "open it again" in str(error.hint):
                    with contextlib.suppress(StorageError):
                        shops.flow.close()
                    shops.open()
                    if shown(shops.flow) != shops.shops[-1].views():
                        pytest.fail("an acknowledged tick is lost, or one that was given up is back")
        with contextlib.suppress(StorageError):  # the last sync is that of closing
            shops.flow.close()
    assert opened(shops.path, shops.shops, len(shops.shops) - 1) == len(shops.shops) - 1


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "disk").mkdir()
    return tmp_path


@pytest.mark.parametrize("seed", range(25))
def test_what_was_synced_survives_a_power_failure(folder, seed):
    power_failure(seed, folder)


@pytest.mark.parametrize("failure", [errno.EIO, errno.ENOSPC], ids=["EIO", "ENOSPC"])
@pytest.mark.parametrize("seed", range(0, 90, 6))
def test_a_call_that_fails_loses_nothing(folder, seed, failure):
    failing_call(seed, folder, failure)


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(1000, 1700))
def test_what_was_synced_survives_many_power_failures(folder, seed):
    power_failure(seed, folder)


@pytest.mark.campaign
@pytest.mark.parametrize("failure", [errno.EIO, errno.ENOSPC], ids=["EIO", "ENOSPC"])
@pytest.mark.parametrize("seed", range(1080, 1240))
def test_any_call_that_fails_loses_nothing(folder, seed, failure):
    failing_call(seed, folder, failure)
