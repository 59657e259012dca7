"""Four processes compete for a lease while some are stopped and killed: never two have it, and tokens only grow."""

import sys
from itertools import pairwise
from pathlib import Path

import pytest
from support import lease_players
from support.generator.campaign import seeds
from support.processes import ChildProcess

TESTS = Path(__file__).parent.parent


@pytest.fixture(params=["sqlite", "postgresql"])
def uri(request, tmp_path):
    return request.getfixturevalue("postgres").make_uri() if request.param == "postgresql" else f"{tmp_path}/leases.db"


def check(uri, folder, chosen):
    command = [sys.executable, lease_players.__file__, uri, folder, *map(str, chosen)]
    with ChildProcess(command, name="leases", env={"PYTHONPATH": str(TESTS)}) as games:
        assert games.wait(60 + 5 * len(chosen)) == 0, games.log
    owners = set()
    for seed in chosen:
        held = lease_players.notes(folder / str(seed))
        assert all(len({owner for _, owner in times}) == 1 for times in held.values()), f"seed {seed}"
        spans = [(times[0][0], times[-1][0]) for times in held.values()]
        overlaps = [(one, two) for one, two in pairwise(spans) if one[1] >= two[0]]
        assert overlaps == [], f"seed {seed}"
        owners |= {(seed, times[0][1]) for times in held.values()}
    assert len(owners) > len(chosen), "the lease hardly changed hands"


def test_a_lease_has_one_owner_at_a_time(uri, tmp_path):
    check(uri, tmp_path, range(5))


@pytest.mark.campaign
def test_a_lease_has_one_owner_at_a_time_in_many_schedules(uri, tmp_path):
    check(uri, tmp_path, seeds(60))
