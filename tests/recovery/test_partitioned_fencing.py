"""A coordinator that slept past its lease: another one has taken the flow over, and nothing it writes counts."""

import sys
from itertools import pairwise
from pathlib import Path

import pytest
from support import partitioned_rivals, partitioned_shop, shop_flow
from support.generator.campaign import seeds
from support.processes import ChildProcess

TESTS = Path(__file__).parent.parent
TICKS = partitioned_rivals.TICKS


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.campaign)])
def uri(request, tmp_path):
    return request.getfixturevalue("postgres").make_uri() if request.param == "postgresql" else f"{tmp_path}/leases.db"


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    path = tmp_path_factory.mktemp("undisturbed")
    with partitioned_shop.open_shop(path / "shop") as flow:
        assert len(list(partitioned_shop.run(flow, TICKS, path / "told"))) == TICKS
        return shop_flow.contents(flow), partitioned_shop.told(path / "told")


def check(uri, folder, chosen, undisturbed):
    """Play schedules; returns in how many of them the first one came back and was refused."""
    command = [sys.executable, partitioned_rivals.__file__, uri, folder, *map(str, chosen)]
    with ChildProcess(command, name="rivals", env={"PYTHONPATH": str(TESTS)}) as rivals:
        assert rivals.wait(60 + 20 * len(chosen)) == 0, rivals.log
        refused = rivals.log.count("lost its lease")
    for seed in chosen:
        ticks = partitioned_rivals.published(folder / str(seed))
        for (number, epoch, fence), (next_number, next_epoch, next_fence) in pairwise(ticks):
            assert (number < next_number, epoch < next_epoch, fence <= next_fence) == (True, True, True), f"seed {seed}"
        for (number, fence), (next_number, next_fence) in pairwise(partitioned_rivals.commits(folder / str(seed))):
            assert (number + 1, fence <= next_fence) == (next_number, True), f"seed {seed}"
        with partitioned_shop.open_shop(folder / str(seed) / "shop") as flow:
            assert flow.epoch == TICKS, f"seed {seed}"
            found = shop_flow.contents(flow), partitioned_rivals.told(folder / str(seed))
            assert found == undisturbed, f"seed {seed}"
    return refused


def test_one_that_slept_past_its_lease_is_refused(uri, tmp_path, undisturbed):
    assert check(uri, tmp_path, range(3), undisturbed) > 0


@pytest.mark.campaign
def test_one_that_slept_past_its_lease_is_refused_in_many_schedules(uri, tmp_path, undisturbed, capsys):
    refused = check(uri, tmp_path, seeds(50), undisturbed)
    with capsys.disabled():
        sys.stdout.write(f"{refused} were refused\n")
    assert refused > len(seeds(50)) / 2
